"""Embeddings that lie in several places: some are fetched, and work on all of them is done where they lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookdown.metrics.inputs import Embeddings

__all__ = ["Rows", "Shards", "over_shards"]

T = TypeVar("T")


class Shards(ABC):
    """A matrix of embeddings in parts; each part is a run of rows."""

    shape: tuple[int, int]
    dtype: np.dtype[np.floating]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __getitem__(self, rows: slice | NDArray[np.integer]) -> Embeddings:
        """Fetch some rows, in their order."""

    @abstractmethod
    def map(self, work: Callable[[Embeddings, int], T]) -> Iterable[T]:
        """Do work on each part, given its rows and the number of the first; yield what comes of it part by part."""


Rows: TypeAlias = "Embeddings | Shards"


def over_shards(X: Rows, work: Callable[[Embeddings, int], T]) -> Iterable[T]:
    """Do work on all rows; an array is one shard."""
    return X.map(work) if isinstance(X, Shards) else [work(X, 0)]
