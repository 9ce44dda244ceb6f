"""Chips in, embeddings out: timm's backbones with their weights, pooling, and a head."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookdown.networks.embedder import Embedder
    from lookdown.networks.embedding import EmbeddedChips, EmbedderSettings
    from lookdown.networks.exported_embedder import ExportedEmbedder

__all__ = ["EmbeddedChips", "Embedder", "EmbedderSettings", "ExportedEmbedder"]

# Where each name lives; imported on first use, because an exported network needs no torch.
_HOMES = {
    "EmbeddedChips": "lookdown.networks.embedding",
    "Embedder": "lookdown.networks.embedder",
    "EmbedderSettings": "lookdown.networks.embedding",
    "ExportedEmbedder": "lookdown.networks.exported_embedder",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lookdown.networks' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
