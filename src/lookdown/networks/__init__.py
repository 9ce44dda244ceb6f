"""Chips in, embeddings out: timm's backbones, weights from where there are some, and a projection."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookdown.networks.embedder import Embedder
    from lookdown.networks.embedding import EmbeddedChips
    from lookdown.networks.exported import ExportedEmbedder
    from lookdown.networks.settings import Settings

__all__ = ["EmbeddedChips", "Embedder", "ExportedEmbedder", "Settings"]

# Where each name lives; imported on first use, since an exported network needs no torch.
_HOMES = {
    "EmbeddedChips": "lookdown.networks.embedding",
    "Embedder": "lookdown.networks.embedder",
    "ExportedEmbedder": "lookdown.networks.exported",
    "Settings": "lookdown.networks.settings",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lookdown.networks' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
