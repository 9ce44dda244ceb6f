"""Embedders on disk: a folder with `embedder.json` and `embedder.safetensors`; data, never code."""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from lookdown.errors import InputError, StoredEmbedderError
from lookdown.networks.backbones import resolve_name
from lookdown.networks.embedder import Embedder
from lookdown.networks.settings import Settings

__all__ = ["load_embedder", "save_embedder"]

FORMAT = "lookdown-embedder"
VERSION = 1
FILES = {"embedder.json", "embedder.safetensors"}
INPUT = (
    "uint8 (n, bands, size, size), letterboxed with the mean colour of the chip; divided by 255, minus mean, divided "
    "by std; then trunk, pooling over positions, head"
)


def save_embedder(embedder: Embedder, path: str | Path, *, overwrite: bool = False) -> None:
    """Write an embedder to the folder `path`: beside it first, then renamed, so that it is whole or absent."""
    folder = Path(path)
    _refuse_to_replace(folder, overwrite=overwrite)
    # Copies in plain order: parts may share memory or lie with their bands last, which safetensors does not store.
    tensors = {
        name: value.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, value in embedder.state_dict().items()
    }
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
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as beside:
            fresh, old = Path(beside, "fresh"), Path(beside, "old")
            fresh.mkdir()
            (fresh / "embedder.safetensors").write_bytes(payload)
            (fresh / "embedder.json").write_text(json.dumps(description, indent=2) + "\n")
            if folder.exists():
                folder.rename(old)
            try:
                fresh.rename(folder)
            except OSError:
                if old.exists():
                    old.rename(folder)
                raise
    except OSError as error:
        raise StoredEmbedderError(
            f"{folder} could not be written: {error}; free the disk or name another place"
        ) from error


def load_embedder(path: str | Path) -> Embedder:
    """Read an embedder that `save` wrote, without its weights' source; a damaged file is refused by name."""
    folder = Path(path)
    description = _read_description(folder / "embedder.json")
    file = folder / "embedder.safetensors"
    try:
        payload = file.read_bytes()
        tensors = load_tensors(payload)
    except (OSError, SafetensorError) as error:
        raise StoredEmbedderError(f"{file} cannot be read: {error}; copy the embedder again or save it anew") from error
    recorded = description.pop("sha256", None)
    if recorded != _digest(description, payload):
        raise StoredEmbedderError(
            f"{folder} is not as it was saved: embedder.json or embedder.safetensors was changed or damaged; copy the "
            "whole folder again"
        )
    try:
        stored = description["settings"]
        settings = Settings(**{**stored, "mean": tuple(stored["mean"]), "std": tuple(stored["std"])})
        resolve_name(settings.backbone)
        embedder = Embedder.of_settings(settings)
        embedder.load_state_dict(tensors)
    except (InputError, TypeError, KeyError, RuntimeError) as error:
        made_with = description.get("made with")
        raise StoredEmbedderError(
            f"{folder} cannot be used with timm {version('timm')}: {str(error).splitlines()[0]}; it was made with "
            f"{made_with}: install that"
        ) from error
    embedder.origin = description["origin"]
    return embedder


def _read_description(file: Path) -> dict[str, Any]:
    try:
        description = json.loads(file.read_text())
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
        raise StoredEmbedderError(f"{folder} is not an embedder, or holds other files as well; nothing was written")
