"""Engines by name."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from tests.gallery.search.engines.vectors import clustered, columns, stream

from lookdown.errors import InputError
from lookdown.gallery.scale.milvus_server import MilvusServer
from lookdown.gallery.search import engines
from lookdown.gallery.search.engines import chosen_engine, make_engine

Z = clustered(200)


@pytest.mark.parametrize(
    ("kind", "many", "name"), [("auto", 200, "exact"), ("auto", 199, "ivf"), ("exact", 1, "exact"), ("ivf", 500, "ivf")]
)
def test_auto_is_exact_until_rows_are_many(kind: Any, many: int, name: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(engines, "EXACT_ROWS", many)
    engine = make_engine(kind, stream(Z), columns(200))
    assert engine.name == name
    assert engine.nearest(Z[:1], 1)[0].rows.tolist() == [0]
    assert len(engine.assignment) == (200 if name == "ivf" else 0)
    assert engine.lists_changed == (name == "ivf")


def test_lists_are_read_only_where_they_are_used() -> None:
    lists = make_engine("ivf", stream(Z), columns(200)).assignment
    for given in (lists, lambda: lists):
        engine = make_engine("ivf", stream(Z), columns(200), given)
        assert not engine.lists_changed
        np.testing.assert_array_equal(engine.assignment, lists)
    assert make_engine("ivf", stream(Z), columns(200), lambda: None).lists_changed

    def refuse() -> None:
        raise AssertionError

    make_engine("exact", stream(Z), columns(200), refuse)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(InputError, match="no engine 'hnsw'; known are auto, exact, ivf"):
        make_engine("hnsw", stream(Z), columns(200))  # type: ignore[arg-type]


def test_faiss_is_not_imported_for_nothing() -> None:
    code = "import sys, lookdown.gallery.search.engines; sys.exit('faiss' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_choice_is_a_name_or_a_server(monkeypatch: Any) -> None:
    monkeypatch.setenv("LOOKDOWN_MILVUS_URI", "http://there")
    server = MilvusServer(uri="http://here")
    assert [chosen_engine(name) for name in ("auto", "exact", "ivf")] == ["auto", "exact", "ivf"]
    assert chosen_engine(server) is server
    assert chosen_engine("milvus", "http://here") == server
    assert chosen_engine("milvus") == MilvusServer(uri="http://there")
    with pytest.raises(InputError, match="no engine 'hnsw'; known are auto, exact, ivf, milvus"):
        chosen_engine("hnsw")
    with pytest.raises(InputError, match="ivf searches in this process and has no address"):
        chosen_engine("ivf", "http://here")


def test_the_client_of_milvus_is_not_imported_for_nothing() -> None:
    code = "import sys, lookdown.gallery; sys.exit('pymilvus' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
