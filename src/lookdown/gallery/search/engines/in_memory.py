"""Engines with all vectors in memory: their base, and the exact one, as fast as memory can be read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lookdown.gallery.search.engines.engine import (
    SPARE,
    Lists,
    Nearest,
    Vectors,
    VectorStream,
    as_points,
    closeness_to,
    mean_of,
    nearest_first,
    nothing,
)
from lookdown.gallery.search.filters import Where
from lookdown.gallery.store.snapshot import FilterColumns, Rows
from lookdown.metrics.inputs import Embeddings, as_count, as_number
from lookdown.metrics.pairwise import best, half_squares, query_blocks, row_blocks, similarities

__all__ = ["ExactEngine", "InMemoryEngine", "Mask"]

Mask = NDArray[np.bool_]  # which rows a filter keeps

_SCANNED_ROWS = 16  # in the time that it takes to fetch one
_BATCH_NUMBERS = 1 << 21  # in the differences that are formed at a time
_ROUNDING = float(np.finfo(np.float32).eps)
_BATCH_ROWS = 1 << 14  # centred at a time


class InMemoryEngine(ABC):
    """Vectors less the mean of the gallery.

    Distances are the same without the mean, but products of vectors far from the origin lose the digits in which they
    differ. Candidates are measured again by differences in double precision, so the closeness of a row does not depend
    on the engine.
    """

    name: str
    assignment: Lists
    lists_changed: bool

    def __init__(self, rows: int, columns: FilterColumns, centre: Vectors) -> None:
        self._rows, self._columns, self._centre = rows, columns, centre

    @abstractmethod
    def _propose(self, points: Vectors, k: int, mask: Mask | None) -> Rows:
        """Return (queries, k) rows that the filter keeps; it keeps at least k."""

    @abstractmethod
    def _suspects(self, point: Vectors, closeness: float) -> Rows:
        """Return every row that is at least this close to one point, and possibly a few that are not."""

    @abstractmethod
    def _fetch(self, rows: Rows) -> Vectors:
        """Return vectors less the mean."""

    def nearest(self, queries: Vectors, k: int, where: Where | None = None) -> list[Nearest]:
        """Return for each query the k nearest rows that the filter keeps, or all of them if there are fewer."""
        points = as_points(queries, self._centre)
        mask, kept = self._kept(where)
        k = min(as_count(k, "k"), kept)
        candidates = min(k + SPARE, kept)
        if not kept:
            return [nothing() for _ in points]
        results = []
        for block in query_blocks(points):
            if mask is not None and kept * _SCANNED_ROWS <= self._rows * len(block):
                proposed = self._among(block, np.flatnonzero(mask), candidates)
            else:
                proposed = self._propose(block, candidates, mask)
            for point, rows in zip(block, proposed, strict=True):
                results.append(nearest_first(rows, self._closeness(point, rows)).at(slice(k)))
        return results

    def reaching(self, query: Vectors, closeness: float, where: Where | None = None) -> Nearest:
        """Return every row at least this close to one query (r,), exactly."""
        (point,) = as_points(np.asarray(query)[None], self._centre)
        least = as_number(closeness, "closeness")
        mask, kept = self._kept(where)
        if least > 0 or not kept:
            return nothing()
        if mask is not None and kept * _SCANNED_ROWS <= self._rows:
            rows = np.flatnonzero(mask)
        else:
            rows = self._suspects(point, least)
            rows = rows if mask is None else rows[mask[rows]]
        near = nearest_first(rows, self._closeness(point, rows))
        return near.at(near.closeness >= least)

    def come_into_use(self) -> None:  # noqa: B027 - there is nothing that every engine must do
        """Do nothing: other processes do not see this engine."""

    def count(self, where: Where | None = None) -> int:
        """Return how many rows the filter keeps."""
        return self._kept(where)[1]

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of rows, up to rounding."""
        return self._fetch(np.asarray(rows, np.intp)) + self._centre

    def _kept(self, where: Where | None) -> tuple[Mask | None, int]:
        if where is None:
            return None, self._rows
        mask = self._columns.matching(where)
        kept = int(np.count_nonzero(mask))
        return (None if kept == self._rows else mask), kept

    def _among(self, points: Vectors, rows: Rows, k: int) -> Rows:
        """Return the best k of some rows, fetched a block at a time."""

        def blocks() -> Iterator[tuple[Rows, Embeddings]]:
            for block in row_blocks(len(rows), len(points)):
                vectors = self._fetch(rows[block])
                yield rows[block], similarities(points, vectors, half_squares(vectors))

        return best(blocks(), k).indices

    def _closeness(self, point: Vectors, rows: Rows) -> NDArray[np.float64]:
        exact = np.empty(len(rows))
        step = max(1, _BATCH_NUMBERS // len(point))
        for begin in range(0, len(rows), step):
            batch = slice(begin, begin + step)
            exact[batch] = closeness_to(point, self._fetch(rows[batch]))
        return exact


class ExactEngine(InMemoryEngine):
    """All vectors in one array."""

    name = "exact"
    lists_changed = False

    def __init__(self, stream: VectorStream, columns: FilterColumns) -> None:
        self._z = np.empty((stream.rows, stream.dimensions), np.float32)
        total = np.zeros(stream.dimensions)
        for rows, batch in stream.numbered():
            self._z[rows] = batch
            total += batch.sum(axis=0, dtype=np.float64)
        super().__init__(stream.rows, columns, mean_of(total, stream.rows))
        for begin in range(0, stream.rows, _BATCH_ROWS):
            self._z[begin : begin + _BATCH_ROWS] -= self._centre
        self._halves = half_squares(self._z)
        self.assignment = np.empty(0, np.int32)

    def _propose(self, points: Vectors, k: int, mask: Mask | None) -> Rows:
        return best(self._blocks(points, mask), k).indices

    def _suspects(self, point: Vectors, closeness: float) -> Rows:
        """Compare with the similarity at this closeness, less the largest rounding error of a sum of products."""
        own = float(half_squares(point[None])[0])
        longest, length = np.sqrt(2 * float(self._halves.max())), np.sqrt(2 * own)
        rounding = (len(point) + 4) * _ROUNDING * (longest * (longest + length) + own - closeness)
        least = float(closeness + own - rounding)
        return np.concatenate([rows[block[0] >= least] for rows, block in self._blocks(point[None], None)])

    def _fetch(self, rows: Rows) -> Vectors:
        return self._z.take(rows, axis=0)

    def _blocks(self, points: Vectors, mask: Mask | None) -> Iterator[tuple[Rows, Embeddings]]:
        """Yield similarities to all rows, -inf where the filter drops a row."""
        for rows in row_blocks(self._rows, len(points)):
            halves = self._halves[rows]
            if mask is not None:
                halves = np.where(mask[rows], halves, np.inf)
            yield np.arange(rows.start, rows.stop), similarities(points, self._z[rows], halves)
