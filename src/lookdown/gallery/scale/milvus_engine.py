"""Search by a Milvus server, for galleries that outgrow one machine. We measure its hits again in double precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import EngineError
from lookdown.gallery.scale.milvus_collection import MAX_ROWS, Keys, MilvusCollection, MilvusRows, ScalarFields
from lookdown.gallery.scale.milvus_server import MilvusGallery
from lookdown.gallery.search.engines.engine import (
    SPARE,
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
from lookdown.metrics.inputs import as_count, as_number
from lookdown.metrics.pairwise import half_squares

__all__ = ["MilvusEngine"]

Mask = NDArray[np.bool_]

_ROUNDING = float(np.finfo(np.float32).eps)
_LARGEST_FLOAT = float(np.finfo(np.float32).max)
_LISTED_KEYS = 10_000  # that an expression names one by one


class _Filter(NamedTuple):
    """A filter: the rows it keeps, how many, and an expression that is true of all of them."""

    mask: Mask | None
    kept: int
    expression: str


class MilvusEngine:
    """A collection on the server that is synchronized with the table when the engine is made.

    keys: the keys of the rows. No key is used twice and keys rise, so a higher one is a row that others added later; it
        is left alone.
    read: reads the vectors of these rows, where only few are to be sent; without it the whole stream is read.
    """

    name = "milvus"
    lists_changed = False

    def __init__(
        self,
        stream: VectorStream,
        columns: FilterColumns,
        keys: Keys,
        gallery: MilvusGallery,
        metric: str,
        read: Callable[[Rows], Vectors] | None = None,
    ) -> None:
        self.assignment = np.empty(0, np.int32)
        self._columns, self._keys, self._gallery, self._metric = columns, keys, gallery, metric
        self._order = np.argsort(keys)  # a row that was marked may have moved to the end of the table
        self._sorted_keys = keys[self._order]
        name = gallery.collection(metric)
        if gallery.server.has_collection(name):
            self._collection = MilvusCollection(gallery.server, name)
        else:
            self._collection = MilvusCollection.create(gallery.server, name, _mean(stream))
        if len(self._collection.mean) != stream.dimensions:
            raise EngineError(f"the collection {name} holds vectors of another length; drop it, and open the gallery")
        self._synchronize(stream, read)

    def nearest(self, queries: Vectors, k: int, where: Where | None = None) -> list[Nearest]:
        """Return for each query the k nearest rows that the filter keeps, or all of them if there are fewer."""
        points = as_points(queries, self._collection.mean)
        chosen = self._filter(where)
        k = min(as_count(k, "k"), chosen.kept)
        if not k or not len(points):
            return [nothing() for _ in points]
        asked = min(k + SPARE, chosen.kept)
        if asked > MAX_ROWS:
            return [self._in_parts(point, chosen, k) for point in points]
        results = []
        answers = self._collection.nearest(points, asked, chosen.expression)
        for point, answer in zip(points, answers, strict=True):
            measured = self._measured(point, answer, chosen.mask)
            complete = len(measured.rows) == asked or len(answer.keys) < asked
            results.append(measured.at(slice(k)) if complete else self._in_parts(point, chosen, k))
        return results

    def reaching(self, query: Vectors, closeness: float, where: Where | None = None) -> Nearest:
        """Return every row at least this close to one query (r,), exactly."""
        (point,) = as_points(np.asarray(query)[None], self._collection.mean)
        least = as_number(closeness, "closeness")
        chosen = self._filter(where)
        if least > 0 or not chosen.kept:
            return nothing()
        radius = -2 * least * (1 + (len(point) + 4) * _ROUNDING) + float(np.finfo(np.float32).tiny)
        within = radius if radius < _LARGEST_FLOAT else None
        (answer,) = self._collection.nearest(point[None], MAX_ROWS, chosen.expression, within)
        if len(answer.keys) == MAX_ROWS:
            near = self._in_parts(point, chosen, None, within)
        else:
            near = self._measured(point, answer, chosen.mask)
        return near.at(near.closeness >= least)

    def count(self, where: Where | None = None) -> int:
        """Return how many rows the filter keeps."""
        return len(self._keys) if where is None else int(np.count_nonzero(self._columns.matching(where)))

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of these rows, up to rounding."""
        wanted, inverse = np.unique(np.asarray(rows, np.intp), return_inverse=True)
        vectors = np.full((len(wanted), len(self._collection.mean)), np.nan, np.float32)
        for keys, batch in self._collection.fetch(self._keys[wanted]):
            vectors[np.searchsorted(wanted, self._rows(keys))] = batch
        if np.isnan(vectors).any():
            raise EngineError(f"rows of the collection {self._collection.name} are gone; open the gallery again")
        return (vectors + self._collection.mean)[inverse]

    def come_into_use(self) -> None:
        """Point the alias of the gallery to this collection."""
        self._gallery.use(self._metric)

    def _synchronize(self, stream: VectorStream, read: Callable[[Rows], Vectors] | None) -> None:
        """Send rows that the server lacks or has in an older form; remove those that the table no longer has."""
        fields = ScalarFields.of(self._columns)
        checksums = fields.checksums()
        stored, stored_checksums = self._collection.checksums(self._sorted_keys)
        rows = self._rows(stored)
        known = np.flatnonzero(rows >= 0)
        missing = np.ones(len(self._keys), np.bool_)
        missing[rows[known]] = stored_checksums[known] != checksums[rows[known]]
        for batch, vectors in _vectors_of(missing, stream, read):
            centred = np.subtract(vectors, self._collection.mean, dtype=np.float32)
            half_squares(centred)  # raises where a square overflows
            part = {name: column[batch] for name, column in fields.items()}
            self._collection.put(self._keys[batch], centred, part, checksums[batch])
        self._collection.remove(stored[rows < 0])
        if missing.any() or (rows < 0).any():
            self._collection.settle(flush=bool(np.count_nonzero(missing) >= MAX_ROWS))

    def _filter(self, where: Where | None) -> _Filter:
        """List the keys if a filter keeps or drops few; else compare fields. Rows that others added are excluded."""
        ours = f"key <= {int(self._keys.max(initial=-1))}"
        if where is None:
            return _Filter(None, len(self._keys), ours)
        mask = self._columns.matching(where)
        count = int(np.count_nonzero(mask))
        if count == len(mask):
            return _Filter(None, count, ours)
        if count <= _LISTED_KEYS:
            return _Filter(mask, count, f"key in {self._keys[mask].tolist()}")
        if len(mask) - count <= _LISTED_KEYS:
            return _Filter(mask, count, f"{ours} and key not in {self._keys[~mask].tolist()}")
        return _Filter(mask, count, f"{ours} and {ScalarFields.expression(where)}")

    def _in_parts(self, point: Vectors, chosen: _Filter, k: int | None, radius: float | None = None) -> Nearest:
        """Ask for all rows, one range of keys after the other, and keep the k nearest."""
        best = nothing()
        for begin in range(0, len(self._keys), MAX_ROWS // 2):  # the other half leaves room for rows that are not ours
            keys = self._sorted_keys[begin : begin + MAX_ROWS // 2]
            expression = f"key >= {keys[0]} and key <= {keys[-1]} and {chosen.expression}"
            (answer,) = self._collection.nearest(point[None], MAX_ROWS, expression, radius)
            more = self._measured(point, answer, chosen.mask)
            rows, closeness = np.append(best.rows, more.rows), np.append(best.closeness, more.closeness)
            best = nearest_first(rows, closeness).at(slice(k))
        return best

    def _measured(self, point: Vectors, answer: MilvusRows, mask: Mask | None) -> Nearest:
        """Return the rows of an answer that are ours and that the filter keeps, measured in double precision."""
        rows = self._rows(answer.keys)
        ours = rows >= 0
        if mask is not None:
            ours &= mask[rows]
        return nearest_first(rows[ours], closeness_to(point, answer.vectors[ours]))

    def _rows(self, keys: Keys) -> Rows:
        """Return the rows of keys in the table, -1 where it has no such key."""
        indices = np.searchsorted(self._sorted_keys, keys)
        exists = np.append(self._sorted_keys, -1)[indices] == keys
        return np.where(exists, np.append(self._order, -1)[indices], -1)


def _mean(stream: VectorStream) -> Vectors:
    total = np.zeros(stream.dimensions)
    for _, batch in stream.numbered():
        total += batch.sum(axis=0, dtype=np.float64)
    return mean_of(total, stream.rows)


def _vectors_of(
    wanted: Mask, stream: VectorStream, read: Callable[[Rows], Vectors] | None
) -> Iterator[tuple[Rows, Vectors]]:
    """Yield the wanted rows with their vectors, read directly where they are few."""
    rows = np.flatnonzero(wanted)
    if read is not None and 4 * len(rows) <= len(wanted):
        for begin in range(0, len(rows), MAX_ROWS):
            yield rows[begin : begin + MAX_ROWS], read(rows[begin : begin + MAX_ROWS])
    else:
        for span, batch in stream.numbered():
            inside = np.flatnonzero(wanted[span])
            if len(inside):
                yield inside + span.start, batch[inside]
