"""Training chips as tensors: whole chips for a network that is trained, cached features for a frozen trunk.

They are drawn in batches, or embedded all in one pass.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lookdown.chips.augmentation import Augmentation, Strengths
from lookdown.training.frozen_features import FrozenFeatures

__all__ = ["BatchPlan", "ChipSamples", "FeatureSamples", "Samples", "as_array", "draw_batches", "embed_all"]

Indices = NDArray[np.int64]
_BLOCK_CHIPS = 256  # that a pass takes at a time


class Samples(ABC):
    """Chips to draw batches from, counted from 0."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of chips."""

    @abstractmethod
    def draw(self, indices: Indices, seed: int, first: int = 0) -> Tensor:
        """Return chips as the network is trained on them, each in a random view.

        first: the position of these chips in the batch; with the same seed, a part of a batch is drawn as it would be
            within the whole.
        """

    @abstractmethod
    def read(self, indices: Indices, turn: int) -> Tensor:
        """Return chips as they are, or after some quarter turns."""

    def plain(self, turn: int = 0) -> Iterator[tuple[Indices, Tensor]]:
        """Yield all chips in order, block by block, as they are or after some quarter turns."""
        for start in range(0, len(self), _BLOCK_CHIPS):
            indices = np.arange(start, min(start + _BLOCK_CHIPS, len(self)))
            yield indices, self.read(indices, turn)


class FeatureSamples(Samples):
    """The pooled features of a frozen trunk; a random view is one of the turns that were cached."""

    def __init__(self, features: FrozenFeatures, rows: Indices) -> None:
        self.features, self.rows = features, rows

    def __len__(self) -> int:
        return len(self.rows)

    def draw(self, indices: Indices, seed: int, first: int = 0) -> Tensor:
        """Return features of random views."""
        generator = torch.Generator().manual_seed(seed)
        views = torch.randint(len(self.features.array), (first + len(indices),), generator=generator)[first:].numpy()
        return torch.from_numpy(np.asarray(self.features.array[views, self.rows[indices]]))

    def read(self, indices: Indices, turn: int) -> Tensor:
        """Return features of one view, if it was cached."""
        return torch.from_numpy(np.asarray(self.features.array[turn, self.rows[indices]]))


class ChipSamples(Samples):
    """Chips read once, letterboxed; a random view is an augmentation."""

    def __init__(self, images: NDArray[np.uint8], strengths: Strengths) -> None:
        self.images, self.augment = images, Augmentation(strengths)

    def __len__(self) -> int:
        return len(self.images)

    def draw(self, indices: Indices, seed: int, first: int = 0) -> Tensor:
        """Return augmented chips."""
        generator = torch.Generator().manual_seed(seed)
        chips: Tensor = self.augment(torch.from_numpy(self.images[indices]), generator, first)
        return chips

    def read(self, indices: Indices, turn: int) -> Tensor:
        """Return chips as they are, or turned."""
        return torch.rot90(torch.from_numpy(self.images[indices]), turn, (2, 3))


class BatchPlan(NamedTuple):
    """What makes a batch: its chips, the seed of their views, and their position in the batch of all processes."""

    indices: Indices
    seed: int
    first: int


class TrainingBatch(NamedTuple):
    """A batch, and how long the loop waited for it."""

    indices: Indices
    inputs: Tensor
    waited_seconds: float


def draw_batches(samples: Samples, plans: Sequence[BatchPlan], *, ahead: bool) -> Iterator[TrainingBatch]:
    """Yield the batches in order.

    ahead: draw the next batch in a thread. That saves time where another device does the training; on a CPU both would
        share its cores. Either way the batches are the same, since each has a seed of its own.
    """
    pending: Future[Tensor] | None = None
    with ThreadPoolExecutor(max_workers=1) as thread:
        for number, plan in enumerate(plans, 1):
            begin = time.perf_counter()
            inputs = pending.result() if pending else samples.draw(*plan)
            waited = time.perf_counter() - begin
            if ahead and number < len(plans):
                pending = thread.submit(samples.draw, *plans[number])
            yield TrainingBatch(plan.indices, inputs, waited)


def embed_all(network: nn.Module, samples: Samples, dimension: int, turn: int = 0) -> NDArray[np.float64]:
    """Return the embeddings of all chips, as they are or after some quarter turns, in one pass in evaluation mode."""
    embeddings = np.empty((len(samples), dimension))
    training, device = network.training, next(network.parameters()).device
    network.eval()
    with torch.inference_mode():
        for indices, inputs in samples.plain(turn):
            embeddings[indices] = as_array(network(inputs.to(device)))
    network.train(training)
    return embeddings


def as_array(embeddings: Tensor) -> NDArray[np.float64]:
    """Return embeddings from any device in float64, which Apple's GPUs do not have."""
    array: NDArray[np.float64] = embeddings.detach().cpu().double().numpy()
    return array
