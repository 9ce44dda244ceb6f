"""Which of several forms of a network is used, and which are refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.networks.exports import network, owner

from lookdown.errors import MissingExtraError, StoredEmbedderError
from lookdown.networks import Embedder, ExportedEmbedder, network_folder
from lookdown.networks.exported_embedder import read_description, write_export
from lookdown.networks.network_folder import copy_network, fastest, fingerprint_at, list_exports
from lookdown.networks.runtimes import FILES

pytestmark = pytest.mark.export


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A copy of the network and its four exports."""
    return Path(shutil.copytree(owner(), tmp_path / "owner"))


def timed(folder: Path, times: float) -> None:
    about = read_description(folder)
    model = {name: (folder / name).read_bytes() for name in FILES[about.runtime]}
    write_export(folder, replace(about, measured={"times torch": times}), model, overwrite=True)


def test_the_one_measured_as_fastest_is_taken(whole: Path) -> None:
    for name, times in (("onnx", 3.0), ("openvino", 2.0), ("onnx-int8", 4.0), ("openvino-int8", 5.0)):
        timed(whole / "exported" / name, times)
    made = fastest(whole)
    assert isinstance(made, ExportedEmbedder)
    assert made.description.name == "openvino-int8"
    same = fastest(whole, network().fingerprint)
    assert isinstance(same, ExportedEmbedder)
    assert same.description.name == "onnx", "int8 has embeddings of its own"
    again = fastest(whole, made.fingerprint)
    assert again.fingerprint == made.fingerprint


def test_torch_is_what_is_left(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = read_description(whole / "exported" / "onnx-int8").fingerprint
    monkeypatch.setattr(network_folder, "installed", lambda runtime: False)
    found = fastest(whole, network().fingerprint)
    assert isinstance(found, Embedder)
    assert found.fingerprint == network().fingerprint
    with pytest.raises(MissingExtraError, match=r"whose embeddings come from onnx-int8, needs .*lookdown\[onnx\]"):
        fastest(whole, small)
    shutil.rmtree(whole / "exported")
    assert isinstance(fastest(whole), Embedder)


def test_an_export_of_another_network_is_refused(whole: Path, tmp_path: Path) -> None:
    shutil.rmtree(whole / "embedder")
    Embedder("test_resnet", size=32, dimension=8, weights="none", seed=1).save(whole / "embedder")
    with pytest.raises(StoredEmbedderError, match=r"onnx was made of another network than that of .*owner; remove it"):
        fastest(whole)
    with pytest.raises(StoredEmbedderError, match="another network"):
        fastest(whole, fingerprint_at(whole))


def test_a_network_is_copied_with_its_exports_and_what_is_there_stays(whole: Path, tmp_path: Path) -> None:
    there = tmp_path / "gallery" / "exported" / "onnx"
    there.mkdir(parents=True)
    copy_network(whole, tmp_path / "gallery")
    assert list(there.iterdir()) == []
    there.rmdir()
    copy_network(whole, tmp_path / "gallery")
    assert list_exports(tmp_path / "gallery").keys() == {
        tmp_path / "gallery" / "exported" / name for name in ("onnx", "onnx-int8", "openvino", "openvino-int8")
    }
    assert fingerprint_at(tmp_path / "gallery") == network().fingerprint
    assert fingerprint_at(tmp_path) is None
