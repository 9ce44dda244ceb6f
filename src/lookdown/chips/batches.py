"""Chips from files to batches of equal squares; a bad file is skipped with a sentence that says why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from lookdown.chips.reading import as_colour, letterbox, read_chip
from lookdown.errors import ImageError, InputError

__all__ = ["Batch", "ChipBatches", "ChipDataset", "Item", "chip_batches"]


class Item(NamedTuple):
    """One chip, or the reason why there is none."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody asks of an item
    image: Tensor  # uint8 (bands, size, size); zeros where there is a problem
    problem: str | None


class Batch(NamedTuple):
    """The good chips of a batch, and what was wrong with the others."""

    indices: Tensor  # int64 (n,), places in the list of paths
    images: Tensor  # uint8 (n, bands, size, size)
    problems: list[tuple[int, str]]


class ChipDataset(Dataset[Item]):
    """Chips in a list of files, letterboxed to one size."""

    def __init__(self, paths: Sequence[Path], *, size: int = 64, fill: tuple[int, ...] | None = None) -> None:
        if size < 1:
            raise InputError(f"size must be at least 1, got {size}")
        self.paths = list(paths)
        self.size = size
        self.fill = None if fill is None else as_colour(fill)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Item:
        """Return a chip; a file that cannot be read gives zeros and a sentence, never an error."""
        try:
            chip = read_chip(self.paths[index], side=self.size)
        except ImageError as error:
            return Item(index, torch.zeros(3, self.size, self.size, dtype=torch.uint8), str(error))
        square = letterbox(chip, self.size, self.fill)
        return Item(index, torch.from_numpy(np.ascontiguousarray(square.transpose(2, 0, 1))), None)

    def collate(self, items: Sequence[Item]) -> Batch:
        """Return the good items as one batch, in their order; chips with different numbers of bands are refused."""
        good = [item for item in items if item.problem is None]
        for item in good:
            _refuse_other_bands(self.paths, (good[0].index, len(good[0].image)), (item.index, len(item.image)))
        none = torch.empty(0, 3, self.size, self.size, dtype=torch.uint8)
        return Batch(
            indices=torch.tensor([item.index for item in good], dtype=torch.int64),
            images=torch.stack([item.image for item in good]) if good else none,
            problems=[(item.index, item.problem) for item in items if item.problem is not None],
        )


class ChipBatches:
    """Batches of the chips that can be read; `skipped` holds the others of the current epoch, by index."""

    def __init__(self, dataset: ChipDataset, *, batch_size: int, workers: int = 0, seed: int | None = None) -> None:
        if batch_size < 1 or workers < 0:
            raise InputError(f"batch_size must be at least 1 and workers at least 0, got {batch_size} and {workers}")
        self.dataset, self.batch_size, self.workers, self.seed = dataset, batch_size, workers, seed
        self.skipped: dict[int, str] = {}

    def __len__(self) -> int:
        """Batches in an epoch, counting any that will be left out because none of its chips can be read."""
        return math.ceil(len(self.dataset) / self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        self.skipped = {}
        first: tuple[int, int] | None = None
        for batch in self._loader():
            if isinstance(batch, InputError):
                raise batch
            self.skipped.update(batch.problems)
            if not len(batch.indices):
                continue
            found = int(batch.indices[0]), batch.images.shape[1]
            first = first or found
            _refuse_other_bands(self.dataset.paths, first, found)
            yield batch

    def _loader(self) -> DataLoader[Item]:
        return DataLoader(
            self.dataset,
            batch_size=self.batch_size,
            sampler=self._order(),
            num_workers=self.workers,
            collate_fn=self._collate,
            generator=torch.Generator(),  # its own, or the loader would draw from the global one
        )

    def _order(self) -> Sequence[int]:
        if self.seed is None:
            return range(len(self.dataset))
        order: list[int] = np.random.default_rng(self.seed).permutation(len(self.dataset)).tolist()
        return order

    def _collate(self, items: Sequence[Item]) -> Batch | InputError:
        """Return a refusal rather than raise it: a worker would bury the sentence in a traceback."""
        try:
            return self.dataset.collate(items)
        except InputError as error:
            return error


def chip_batches(
    paths: Sequence[Path],
    *,
    size: int,
    batch_size: int,
    workers: int = 0,
    seed: int | None = None,
    fill: tuple[int, ...] | None = None,
) -> ChipBatches:
    """Return batches of letterboxed chips, in the order of the paths or, with a seed, in a shuffled one.

    The order depends on the seed and the number of paths alone, so it is the same at every pass and for any number of
    workers; give each epoch of a training its own seed.
    """
    return ChipBatches(ChipDataset(paths, size=size, fill=fill), batch_size=batch_size, workers=workers, seed=seed)


def _refuse_other_bands(paths: Sequence[Path], first: tuple[int, int], second: tuple[int, int]) -> None:
    (i, bands), (j, other) = first, second
    if bands != other:
        raise InputError(
            f"chips of one run need the same bands, but {paths[i]} has {bands} and {paths[j]} has {other}; "
            "list them apart, or save them with the same bands"
        )
