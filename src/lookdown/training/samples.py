"""Training chips as tensors: whole chips for a network that is trained, cached features for a frozen trunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookdown.chips.augmentation import Augmentation, Strengths
from lookdown.training.features import FrozenFeatures

__all__ = ["ChipSamples", "FeatureSamples", "Samples"]

Indices = NDArray[np.int64]
_BLOCK = 256  # chips a pass takes at a time


class Samples(Protocol):
    """What a batch is drawn from; chips are counted from 0."""

    def __len__(self) -> int:
        """Return the number of chips."""

    def drawn(self, indices: Indices, seed: int, first: int = 0) -> Tensor:
        """Return chips as the network is trained on them, each in a random view.

        The chips are those of a batch from place `first` on: with the same seed, parts of a batch are drawn as the
        whole would be.
        """

    def plain(self, turn: int = 0) -> Iterator[tuple[Indices, Tensor]]:
        """Yield all chips in their order, as they are, or all turned by some quarter turns."""


class FeatureSamples:
    """The pooled features of a frozen trunk; a random view is one of the turns that were cached."""

    def __init__(self, features: FrozenFeatures, rows: Indices) -> None:
        self.features, self.rows = features, rows

    def __len__(self) -> int:
        return len(self.rows)

    def drawn(self, indices: Indices, seed: int, first: int = 0) -> Tensor:
        """Return features of random views."""
        draws = torch.randint(
            len(self.features.array), (first + len(indices),), generator=torch.Generator().manual_seed(seed)
        )
        views = draws[first:].numpy()
        return torch.from_numpy(np.asarray(self.features.array[views, self.rows[indices]]))

    def plain(self, turn: int = 0) -> Iterator[tuple[Indices, Tensor]]:
        """Yield the features of chips as they lie, or turned, if such views were cached."""
        for start in range(0, len(self.rows), _BLOCK):
            some = np.arange(start, min(start + _BLOCK, len(self.rows)))
            yield some, torch.from_numpy(np.asarray(self.features.array[turn, self.rows[some]]))


class ChipSamples:
    """Chips read once, letterboxed; a random view is an augmentation."""

    def __init__(self, images: NDArray[np.uint8], strengths: Strengths) -> None:
        self.images, self.augment = images, Augmentation(strengths)

    def __len__(self) -> int:
        return len(self.images)

    def drawn(self, indices: Indices, seed: int, first: int = 0) -> Tensor:
        """Return augmented chips."""
        generator = torch.Generator().manual_seed(seed)
        chips: Tensor = self.augment(torch.from_numpy(self.images[indices]), generator, first)
        return chips

    def plain(self, turn: int = 0) -> Iterator[tuple[Indices, Tensor]]:
        """Yield chips as they are, or turned."""
        for start in range(0, len(self.images), _BLOCK):
            some = np.arange(start, min(start + _BLOCK, len(self.images)))
            yield some, torch.rot90(torch.from_numpy(self.images[some]), turn, (2, 3))
