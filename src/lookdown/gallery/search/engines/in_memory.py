"""What engines that hold the vectors in memory have in common: single precision proposes, double precision decides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lookdown.gallery.search.engines.engine import Lists, Nearest, Vectors
from lookdown.gallery.search.engines.measuring import SPARE, as_points, closeness_to, nearest_first, nothing
from lookdown.gallery.search.where import Where
from lookdown.gallery.store.snapshot import FilterColumns, Rows
from lookdown.metrics.inputs import Embeddings, as_count, as_number
from lookdown.metrics.pairwise import half_squares
from lookdown.metrics.ranking import best, query_blocks, row_blocks, similarities

__all__ = ["InMemory", "Mask"]

Mask = NDArray[np.bool_]  # which rows a filter keeps

_SCANNED = 16  # rows that are scanned in the time that it takes to fetch one
_GAPS = 1 << 21  # numbers in the differences that are formed at a time


class InMemory(ABC):
    """Vectors less the mean of the gallery.

    Distances are the same without the mean, but a product of vectors far from the origin has no digits left for what
    they differ by. What an engine proposes is measured again by differences in double precision, so the closeness of
    a row does not depend on the engine.
    """

    name: str
    assignment: Lists
    lists_changed: bool

    def __init__(self, rows: int, columns: FilterColumns, centre: Vectors) -> None:
        self._rows, self._columns, self._centre = rows, columns, centre

    @abstractmethod
    def _propose(self, points: Vectors, k: int, mask: Mask | None) -> Rows:
        """Return (queries, k) rows that the filter keeps; it keeps as many."""

    @abstractmethod
    def _suspects(self, point: Vectors, closeness: float) -> Rows:
        """Return every row that is at least so close to one point, and maybe some that only seem to be."""

    @abstractmethod
    def _fetch(self, rows: Rows) -> Vectors:
        """Return vectors less the mean."""

    def nearest(self, queries: Vectors, k: int, where: Where | None = None) -> list[Nearest]:
        """Return for each query the k nearest rows that the filter keeps, or all of them if there are fewer."""
        points = as_points(queries, self._centre)
        mask, kept = self._kept(where)
        k = min(as_count(k, "k"), kept)
        asked = min(k + SPARE, kept)
        if not kept:
            return [nothing() for _ in points]
        found = []
        for some in query_blocks(points):
            if mask is not None and kept * _SCANNED <= self._rows * len(some):
                candidates = self._among(some, np.flatnonzero(mask), asked)
            else:
                candidates = self._propose(some, asked, mask)
            for point, rows in zip(some, candidates, strict=True):
                ordered = nearest_first(rows, self._closeness(point, rows))
                found.append(Nearest(ordered.rows[:k], ordered.closeness[:k]))
        return found

    def reaching(self, query: Vectors, closeness: float, where: Where | None = None) -> Nearest:
        """Return every row at least this close to one query (r,), exactly."""
        (point,) = as_points(np.asarray(query)[None], self._centre)
        least = as_number(closeness, "closeness")
        mask, kept = self._kept(where)
        if least > 0 or not kept:
            return nothing()
        if mask is not None and kept * _SCANNED <= self._rows:
            rows = np.flatnonzero(mask)
        else:
            rows = self._suspects(point, least)
            rows = rows if mask is None else rows[mask[rows]]
        exact = self._closeness(point, rows)
        enough = exact >= least
        return nearest_first(rows[enough], exact[enough])

    def come_into_use(self) -> None:  # noqa: B027 - there is nothing that every engine must do
        """Do nothing: who holds the vectors has no others to tell."""

    def count(self, where: Where | None = None) -> int:
        """Return how many rows the filter keeps."""
        return self._kept(where)[1]

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of some rows, but for a rounding."""
        return self._fetch(np.asarray(rows, np.intp)) + self._centre

    def _kept(self, where: Where | None) -> tuple[Mask | None, int]:
        if where is None:
            return None, self._rows
        mask = self._columns.matching(where)
        kept = int(np.count_nonzero(mask))
        return (None if kept == self._rows else mask), kept

    def _among(self, points: Vectors, rows: Rows, k: int) -> Rows:
        """Return the best k of a choice of rows, fetched a block at a time."""

        def blocks() -> Iterator[tuple[Rows, Embeddings]]:
            for block in row_blocks(len(rows), len(points)):
                some = self._fetch(rows[block])
                yield rows[block], similarities(points, some, half_squares(some))

        return best(blocks(), k).indices

    def _closeness(self, point: Vectors, rows: Rows) -> NDArray[np.float64]:
        exact = np.empty(len(rows))
        step = max(1, _GAPS // len(point))
        for begin in range(0, len(rows), step):
            some = slice(begin, begin + step)
            exact[some] = closeness_to(point, self._fetch(rows[some]))
        return exact
