"""Embedders on disk: a folder with `embedder.json` and `embedder.safetensors`; data, never code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from lookdown.atomic import StoredKind
from lookdown.errors import InputError, StoredEmbedderError
from lookdown.networks.backbones import resolve_name
from lookdown.networks.embedder import Embedder
from lookdown.networks.embedding import EmbedderSettings

__all__ = ["load_embedder", "plain_tensors", "save_embedder"]

FOLDER = StoredKind(
    name="an embedder",
    marker="embedder.json",
    files=("embedder.json", "embedder.safetensors"),
    format="lookdown-embedder",
    version=1,
    written_by="embedder.save",
    again="copy the whole folder again, or save the embedder anew",
    error=StoredEmbedderError,
    required={"made with": dict, "settings": dict, "origin": str, "fingerprint": str},
)
INPUT = (
    "uint8 (n, bands, size, size), letterboxed with the mean colour of the chip; divided by 255, minus mean, divided "
    "by std; then trunk, pooling over positions, head"
)
_PRECISIONS = {torch.bfloat16, torch.float16, torch.float32, torch.float64}


def save_embedder(embedder: Embedder, path: str | Path, *, overwrite: bool = False) -> None:
    """Write an embedder to the folder `path`, whole or not at all; a replaced one is never lost in between."""
    tensors = plain_tensors(embedder.state_dict())
    _precision(tensors)
    description = {
        "made with": {package: version(package) for package in ("lookdown", "timm", "torch")},
        "settings": asdict(embedder.settings),
        "input": INPUT,
        "origin": embedder.origin,
        "fingerprint": embedder.fingerprint,
    }
    FOLDER.write(path, description, {"embedder.safetensors": save_tensors(tensors)}, overwrite=overwrite)


def load_embedder(path: str | Path) -> Embedder:
    """Read an embedder that `save` wrote, in evaluation mode; a damaged folder is refused by name.

    Tensors are compared with what the settings call for before anything of a stated size is built.
    """
    description = FOLDER.describe(path)
    files = FOLDER.read(path, description, ["embedder.safetensors"])
    try:
        embedder = _build(description["settings"], load_tensors(files["embedder.safetensors"]))
    except (InputError, TypeError, KeyError, RuntimeError, SafetensorError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise StoredEmbedderError(
            f"{path} cannot be used with timm {version('timm')}: {reason}; it was made with "
            f"{description['made with']}: install that"
        ) from error
    if embedder.fingerprint != description["fingerprint"]:
        raise FOLDER.changed(Path(path))
    embedder.origin = description["origin"]
    return embedder.eval()


def plain_tensors(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return copies of a `state_dict` that safetensors takes: on the CPU, in plain order, none sharing memory."""
    return {name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in state.items()}


def _build(stored: dict[str, Any], tensors: dict[str, Tensor]) -> Embedder:
    settings = EmbedderSettings.of_stored(stored)
    resolve_name(settings.backbone)
    precision = _precision(tensors)
    with torch.device("meta"):  # names and shapes, no values
        wanted = Embedder.of_settings(settings).to(precision).state_dict()
    for name in sorted(wanted.keys() | tensors.keys()):
        if _kind(wanted.get(name)) != _kind(tensors.get(name)):
            raise InputError(f"{name} should be {_kind(wanted.get(name))} and is {_kind(tensors.get(name))}")
    embedder = Embedder.of_settings(settings).to(precision)
    embedder.load_state_dict(tensors)
    return embedder


def _kind(tensor: Tensor | None) -> str:
    return "absent" if tensor is None else f"{tensor.dtype} {tuple(tensor.shape)}"


def _precision(tensors: Mapping[str, Tensor]) -> torch.dtype:
    """Return the one floating-point type of an embedder."""
    precisions = {value.dtype for value in tensors.values() if value.is_floating_point()}
    if len(precisions) != 1 or not precisions <= _PRECISIONS:
        names = ", ".join(sorted(map(str, precisions))) or "no floating-point type"
        raise InputError(f"an embedder is stored in one precision, these weights have {names}; call embedder.float()")
    return precisions.pop()
