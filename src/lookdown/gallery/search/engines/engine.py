"""What an engine does: find the vectors nearest to a query, among all chips or those a filter keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.gallery.search.where import Where
from lookdown.gallery.store.snapshot import Rows

__all__ = ["Engine", "Lists", "Nearest", "VectorStream", "Vectors"]

Vectors = NDArray[np.float32]  # (n, r), z = transform(x): L2 distance between them ranks as the metric's score does
Lists = NDArray[np.int32]  # the list that each row is in, -1 where it is in none yet

_AT_ONCE = 1 << 16  # rows


@dataclass(frozen=True, slots=True)
class VectorStream:
    """All vectors of a gallery in the order of its table, a batch at a time and as often as asked."""

    rows: int
    dimensions: int
    batches: Callable[[], Iterator[Vectors]]

    def numbered(self) -> Iterator[tuple[slice, Vectors]]:
        """Yield the batches with their places in the table, large ones in parts; too few or too many are refused."""
        begin = 0
        for batch in self.batches():
            for first in range(0, len(batch), _AT_ONCE):
                part = batch[first : first + _AT_ONCE]
                if begin + len(part) > self.rows or part.shape[1] != self.dimensions:
                    raise InputError(
                        f"vectors of shape {part.shape} came after {begin} of {self.rows} x {self.dimensions}; the "
                        "table has changed, open the gallery again"
                    )
                yield slice(begin, begin + len(part)), part
                begin += len(part)
        if begin != self.rows:
            raise InputError(
                f"{begin} vectors came for {self.rows} rows; the table has changed, open the gallery again"
            )


class Nearest(NamedTuple):
    """Rows of the table, nearest first, and equal ones by rising row."""

    rows: Rows
    closeness: NDArray[np.float64]  # -|z - y|^2 / 2, from the differences: the score without the metric's offset


class Engine(Protocol):
    """Vectors and filters behind one search."""

    name: str
    assignment: Lists  # worth keeping: an engine that is given it again need not look for lists; empty without lists
    lists_changed: bool  # whether it is other than what the engine was given

    def nearest(self, queries: Vectors, k: int, where: Where | None = None) -> list[Nearest]:
        """Return for each query the k nearest rows that the filter keeps, or all of them if there are fewer.

        Without a filter an engine may be approximate; with one it is exact, for approximate search and filters
        together lose what is looked for. Which of several equally near rows make it over the cut at k is not defined.
        """

    def reaching(self, query: Vectors, closeness: float, where: Where | None = None) -> Nearest:
        """Return every row at least this close to one query (r,), exactly."""

    def count(self, where: Where | None = None) -> int:
        """Return how many rows the filter keeps."""

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of some rows."""

    def come_into_use(self) -> None:
        """Be told that its metric is the one in use, and let others know."""
