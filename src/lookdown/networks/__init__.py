"""Chips in, embeddings out: timm's backbones, weights from where there are some, and a projection."""

from lookdown.networks.embedder import EmbeddedChips, Embedder
from lookdown.networks.settings import Settings

__all__ = ["EmbeddedChips", "Embedder", "Settings"]
