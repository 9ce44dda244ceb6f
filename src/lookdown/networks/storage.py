"""Embedders on disk: a folder with `embedder.json` and `embedder.safetensors`; data, never code."""

from __future__ import annotations

import hashlib
import json
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

from lookdown.atomic import finish_replacement, readable_folder, write_folder
from lookdown.errors import InputError, StoredEmbedderError
from lookdown.networks.backbones import resolve_name
from lookdown.networks.embedder import Embedder
from lookdown.networks.settings import Settings

__all__ = ["load_embedder", "plain_tensors", "save_embedder"]

FORMAT = "lookdown-embedder"
VERSION = 1
FILES = {"embedder.json", "embedder.safetensors"}
KEYS = {"made with": dict, "settings": dict, "origin": str, "fingerprint": str, "sha256": str}
INPUT = (
    "uint8 (n, bands, size, size), letterboxed with the mean colour of the chip; divided by 255, minus mean, divided "
    "by std; then trunk, pooling over positions, head"
)
_PRECISIONS = {torch.bfloat16, torch.float16, torch.float32, torch.float64}


def save_embedder(embedder: Embedder, path: str | Path, *, overwrite: bool = False) -> None:
    """Write an embedder to the folder `path`, whole or not at all; an older one is lost at no moment."""
    folder = Path(path)
    tensors = plain_tensors(embedder.state_dict())
    _precision(tensors)
    payload = save_tensors(tensors)
    description: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "made with": {package: version(package) for package in ("lookdown", "timm", "torch")},
        "settings": asdict(embedder.settings),
        "input": INPUT,
        "origin": embedder.origin,
        "fingerprint": embedder.fingerprint,
    }
    description["sha256"] = _digest(description, payload)
    try:
        finish_replacement(folder, known=FILES)
        _refuse_to_replace(folder, overwrite=overwrite)
        text = json.dumps(description, indent=2) + "\n"
        write_folder(folder, {"embedder.safetensors": payload, "embedder.json": text.encode()})
    except OSError as error:
        raise StoredEmbedderError(
            f"{folder} could not be written: {error}; free the disk or name another place"
        ) from error


def load_embedder(path: str | Path) -> Embedder:
    """Read an embedder that `save` wrote, without its weights' source, in evaluation mode.

    A damaged file is refused by name, and tensors are compared with what the settings call for before anything of a
    stated size is built.
    """
    folder = readable_folder(Path(path))
    try:
        return _load(folder)
    except RecursionError as error:
        raise StoredEmbedderError(
            f"{folder / 'embedder.json'} is nested too deeply to be an embedder's; copy the embedder again"
        ) from error


def plain_tensors(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return copies of a `state_dict` that safetensors takes: on the CPU, in plain order, none sharing memory."""
    return {name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in state.items()}


def _load(folder: Path) -> Embedder:
    description = _read_description(folder / "embedder.json")
    file = folder / "embedder.safetensors"
    try:
        payload = file.read_bytes()
        tensors = load_tensors(payload)
    except (OSError, SafetensorError) as error:
        raise StoredEmbedderError(f"{file} cannot be read: {error}; copy the embedder again or save it anew") from error
    changed = StoredEmbedderError(
        f"{folder} is not as it was saved: embedder.json or embedder.safetensors was changed or damaged; copy the "
        "whole folder again"
    )
    recorded = description.pop("sha256")
    if recorded != _digest(description, payload):
        raise changed
    try:
        embedder = _build(description["settings"], tensors)
    except (InputError, TypeError, KeyError, RuntimeError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise StoredEmbedderError(
            f"{folder} cannot be used with timm {version('timm')}: {reason}; it was made with "
            f"{description['made with']}: install that"
        ) from error
    if embedder.fingerprint != description["fingerprint"]:
        raise changed
    embedder.origin = description["origin"]
    return embedder.eval()


def _build(stored: dict[str, Any], tensors: dict[str, Tensor]) -> Embedder:
    settings = Settings(**{**stored, "mean": tuple(stored["mean"]), "std": tuple(stored["std"])})
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
    found = {value.dtype for value in tensors.values() if value.is_floating_point()}
    if len(found) != 1 or not found <= _PRECISIONS:
        names = ", ".join(sorted(map(str, found))) or "no floating-point type"
        raise InputError(f"an embedder is stored in one precision, these weights have {names}; call embedder.float()")
    return found.pop()


def _read_description(file: Path) -> dict[str, Any]:
    try:
        description = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StoredEmbedderError(
            f"{file.parent} holds no embedder ({file.name} is missing); give a folder that embedder.save wrote"
        ) from error
    except (OSError, ValueError) as error:
        raise StoredEmbedderError(f"{file} cannot be read: {error}; copy the embedder again or save it anew") from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise StoredEmbedderError(f"{file} does not describe an embedder; give a folder that embedder.save wrote")
    if description.get("version") != VERSION:
        raise StoredEmbedderError(
            f"{file} has format version {description.get('version')}, this lookdown reads version {VERSION}; "
            "save the embedder anew with this version"
        )
    for key, kind in KEYS.items():
        if not isinstance(description.get(key), kind):
            raise StoredEmbedderError(f"{file} lacks {key!r}, or has another kind of it; copy the embedder again")
    return description


def _digest(description: dict[str, Any], payload: bytes) -> str:
    """Return a digest of everything that is stored, so that a change of either file shows."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode() + payload).hexdigest()


def _refuse_to_replace(folder: Path, *, overwrite: bool) -> None:
    """Only a folder that holds an embedder and nothing else may be replaced, and only when asked."""
    if not folder.exists():
        return
    if not overwrite:
        raise StoredEmbedderError(f"{folder} exists; pass overwrite=True to replace it; nothing was written")
    if not folder.is_dir() or {path.name for path in folder.iterdir()} != FILES:
        raise StoredEmbedderError(
            f"{folder} is not an embedder, or holds other files as well; nothing was written, name another folder"
        )
