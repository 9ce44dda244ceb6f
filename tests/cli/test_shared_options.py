"""Engines by options, as they are typed; and one JSON document, whatever is in it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image
from tests.gallery.galleries import vector_gallery
from tests.gallery.scale.running_milvus import free_ports
from typer.testing import CliRunner

from lookdown.cli import app
from lookdown.cli.shared_options import print_json
from lookdown.errors import EngineError, InputError
from lookdown.gallery.scale.milvus_server import MilvusServer


def run(*typed: object) -> str:
    found = CliRunner().invoke(app, [*map(str, typed)], catch_exceptions=False)
    assert found.exit_code == 0
    return found.stdout


def test_the_engine_is_chosen_by_name(tmp_path: Path) -> None:
    _, _, rows = vector_gallery(tmp_path / "g", 60)
    for engine in ("exact", "ivf"):
        found = json.loads(run("search", tmp_path / "g", rows[0]["id"], "--engine", engine, "--json"))
        assert found["engine"] == engine
    with pytest.raises(InputError, match="exact searches in this process and has no address; omit --uri"):
        run("search", tmp_path / "g", rows[0]["id"], "--engine", "exact", "--uri", "http://host")


def test_a_server_that_is_nowhere_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, rows = vector_gallery(tmp_path / "g", 20)
    typed = ("search", tmp_path / "g", rows[0]["id"], "--engine", "milvus")
    monkeypatch.delenv("LOOKDOWN_MILVUS_URI", raising=False)
    with pytest.raises(InputError, match="pass --uri or set LOOKDOWN_MILVUS_URI"):
        run(*typed)
    monkeypatch.setattr("lookdown.gallery.scale.milvus_server._CONNECT_SECONDS", 0.5)
    with pytest.raises(EngineError, match="does not answer"):
        run(*typed, "--uri", f"http://127.0.0.1:{free_ports(1)[0]}")


@pytest.mark.server
def test_what_is_indexed_is_on_the_server_and_found_there(tmp_path: Path, milvus: MilvusServer) -> None:
    (tmp_path / "chips").mkdir()
    for number in range(12):
        Image.new("RGB", (40, 40), (20 * number, 255 - 20 * number, 90)).save(tmp_path / "chips" / f"{number}.png")
    served = ("--engine", "milvus", "--uri", milvus.uri)
    network = ("--embedder", "tf_efficientnet_lite0", "--dimension", 4)
    run("index", tmp_path / "chips", "-o", tmp_path / "typed", *network, *served)
    names = milvus.call("list_collections")
    (collection,) = [name for name in names if name.startswith("lookdown_typed_")]
    query = {"collection_name": collection, "filter": "key >= 0", "output_fields": ["count(*)"]}
    assert milvus.call("query", **query)[0]["count(*)"] == 12
    found = json.loads(run("search", tmp_path / "typed", tmp_path / "chips" / "3.png", "-k", 2, *served, "--json"))
    assert found["engine"] == "milvus"
    assert found["hits"][0]["id"].endswith("3.png")


@dataclass(frozen=True)
class Part:
    path: Path
    share: float


def test_every_value_becomes_plain_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"parts": [Part(Path("a/船"), math.nan), Part(Path("bad\udcff"), 0.5)], 3: (True, None, math.inf)})
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert shown.count("\n") == 1
    assert json.loads(shown) == {
        "parts": [{"path": "a/船", "share": None}, {"path": "bad\udcff", "share": 0.5}],
        "3": [True, None, None],
    }
