"""Embeddings in several parts, on several machines perhaps: work on all of them is done where they are."""

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
        """Fetch rows, in their order."""

    @abstractmethod
    def map(self, work: Callable[[Embeddings, int], T]) -> Iterable[T]:
        """Call `work` with the rows of each part and the number of the first of them; yield its results in order."""


Rows: TypeAlias = "Embeddings | Shards"


def over_shards(X: Rows, work: Callable[[Embeddings, int], T]) -> Iterable[T]:
    """Call `work` on all rows, part by part; an array is one part."""
    return X.map(work) if isinstance(X, Shards) else [work(X, 0)]
