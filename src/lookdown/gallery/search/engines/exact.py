"""Exact search: every query is compared with every vector, as fast as memory can be read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lookdown.gallery.search.engines.engine import Vectors, VectorStream, mean_of
from lookdown.gallery.search.engines.in_memory import InMemoryEngine, Mask
from lookdown.gallery.store.snapshot import FilterColumns, Rows
from lookdown.metrics.inputs import Embeddings
from lookdown.metrics.pairwise import half_squares
from lookdown.metrics.ranking import best, row_blocks, similarities

__all__ = ["ExactEngine"]

_ROUNDING = float(np.finfo(np.float32).eps)
_BATCH_ROWS = 1 << 14  # centred at a time


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
