"""Search by a Milvus server, for galleries that outgrow one machine: it proposes, double precision decides here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import EngineError
from lookdown.gallery.scale.milvus_collection import MOST, Found, Keys, MilvusCollection, MilvusGallery
from lookdown.gallery.scale.milvus_facts import facts_of, stamps_of, term_of
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
from lookdown.gallery.search.where import Where
from lookdown.gallery.store.snapshot import FilterColumns, Rows
from lookdown.metrics.inputs import as_count, as_number
from lookdown.metrics.pairwise import half_squares

__all__ = ["Milvus"]

Mask = NDArray[np.bool_]

_ROUNDING = float(np.finfo(np.float32).eps)
_LARGEST = float(np.finfo(np.float32).max)
_LISTED = 10_000  # rows that a filter names one by one


class _Chosen(NamedTuple):
    """What a filter keeps: the rows, how many, and a term that is true of all of them."""

    mask: Mask | None
    kept: int
    term: str


class Milvus:
    """A collection of the server that is brought up to the table: what is new is sent, what is gone is removed.

    keys: the numbers of the rows; none is ever given twice, so a row that others have added since is known by a higher
        one, and left alone.
    some: reads vectors of some rows, where few are to be sent; without it the stream is read to its end.
    """

    name = "milvus"
    lists_changed = False

    def __init__(
        self,
        stream: VectorStream,
        columns: FilterColumns,
        keys: Keys,
        place: MilvusGallery,
        metric: str,
        some: Callable[[Rows], Vectors] | None = None,
    ) -> None:
        self.assignment = np.empty(0, np.int32)
        self._columns, self._keys, self._place, self._metric = columns, keys, place, metric
        self._order = np.argsort(keys)  # a row that was marked may have moved to the end of the table
        self._rising = keys[self._order]
        self._last = int(keys.max(initial=-1))
        name = place.collection(metric)
        if MilvusCollection.exists(place.server, name):
            self._collection = MilvusCollection(place.server, name)
        else:
            self._collection = MilvusCollection.make(place.server, name, _mean(stream))
        if len(self._collection.centre) != stream.dimensions:
            raise EngineError(f"the collection {name} holds vectors of another length; drop it, and open the gallery")
        self._bring_up(stream, some)

    def nearest(self, queries: Vectors, k: int, where: Where | None = None) -> list[Nearest]:
        """Return for each query the k nearest rows that the filter keeps, or all of them if there are fewer."""
        points = as_points(queries, self._collection.centre)
        chosen = self._chosen(where)
        k = min(as_count(k, "k"), chosen.kept)
        if not k or not len(points):
            return [nothing() for _ in points]
        asked = min(k + SPARE, chosen.kept)
        if asked > MOST:
            return [self._in_parts(point, chosen, k) for point in points]
        answers = self._collection.nearest(points, asked, chosen.term)
        found = []
        for point, answer in zip(points, answers, strict=True):
            measured = self._measured(point, answer, chosen.mask)
            full = len(measured.rows) == asked or len(answer.keys) < asked
            found.append(_cut(measured, k) if full else self._in_parts(point, chosen, k))
        return found

    def reaching(self, query: Vectors, closeness: float, where: Where | None = None) -> Nearest:
        """Return every row at least this close to one query (r,), exactly."""
        (point,) = as_points(np.asarray(query)[None], self._collection.centre)
        least = as_number(closeness, "closeness")
        chosen = self._chosen(where)
        if least > 0 or not chosen.kept:
            return nothing()
        radius = -2 * least * (1 + (len(point) + 4) * _ROUNDING) + float(np.finfo(np.float32).tiny)
        within = radius if radius < _LARGEST else None
        (answer,) = self._collection.nearest(point[None], MOST, chosen.term, within)
        full = len(answer.keys) == MOST
        near = self._in_parts(point, chosen, None, within) if full else self._measured(point, answer, chosen.mask)
        enough = near.closeness >= least
        return Nearest(near.rows[enough], near.closeness[enough])

    def count(self, where: Where | None = None) -> int:
        """Return how many rows the filter keeps."""
        return len(self._keys) if where is None else int(np.count_nonzero(self._columns.matching(where)))

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of some rows, but for a rounding."""
        wanted, places = np.unique(np.asarray(rows, np.intp), return_inverse=True)
        found = np.full((len(wanted), len(self._collection.centre)), np.nan, np.float32)
        for keys, vectors in self._collection.fetch(self._keys[wanted]):
            found[np.searchsorted(wanted, self._rows(keys))] = vectors
        if np.isnan(found).any():
            raise EngineError(f"rows of the collection {self._collection.name} are gone; open the gallery again")
        return (found + self._collection.centre)[places]

    def come_into_use(self) -> None:
        """Let the alias of the gallery lead to this collection."""
        self._place.use(self._metric)

    def _bring_up(self, stream: VectorStream, some: Callable[[Rows], Vectors] | None) -> None:
        """Send what the server lacks or has in an older form, and remove what is gone from the table."""
        facts = facts_of(self._columns)
        stamps = stamps_of(facts)
        held, held_stamps = self._collection.held(self._rising)
        rows = self._rows(held)
        known = np.flatnonzero(rows >= 0)
        missing = np.ones(len(self._keys), np.bool_)
        missing[rows[known]] = held_stamps[known] != stamps[rows[known]]
        gone = held[rows < 0]
        for part, vectors in _parts(stream, some, missing):
            centred = np.subtract(vectors, self._collection.centre, dtype=np.float32)
            half_squares(centred)  # refuses what cannot be squared
            self._collection.put(
                self._keys[part], centred, {name: column[part] for name, column in facts.items()}, stamps[part]
            )
        self._collection.remove(gone)
        if missing.any() or len(gone):
            self._collection.settle(many=bool(np.count_nonzero(missing) >= MOST))

    def _chosen(self, where: Where | None) -> _Chosen:
        """Name few rows one by one, and leave the others to the server; newer rows of others are not ours."""
        ours = f"key <= {self._last}"
        if where is None:
            return _Chosen(None, len(self._keys), ours)
        mask = self._columns.matching(where)
        count = int(np.count_nonzero(mask))
        if count == len(mask):
            return _Chosen(None, count, ours)
        if count <= _LISTED:
            return _Chosen(mask, count, f"key in {self._keys[mask].tolist()}")
        if len(mask) - count <= _LISTED:
            return _Chosen(mask, count, f"{ours} and key not in {self._keys[~mask].tolist()}")
        return _Chosen(mask, count, f"{ours} and {term_of(where)}")

    def _in_parts(self, point: Vectors, chosen: _Chosen, k: int | None, radius: float | None = None) -> Nearest:
        """Ask for all rows, as many at a time as one answer holds, and keep the k nearest."""
        best = nothing()
        for begin in range(0, len(self._keys), MOST // 2):  # the rest is room for rows that are not ours
            some = self._rising[begin : begin + MOST // 2]
            term = f"key >= {some[0]} and key <= {some[-1]} and {chosen.term}"
            (answer,) = self._collection.nearest(point[None], MOST, term, radius)
            more = self._measured(point, answer, chosen.mask)
            best = _cut(nearest_first(np.append(best.rows, more.rows), np.append(best.closeness, more.closeness)), k)
        return best

    def _measured(self, point: Vectors, answer: Found, mask: Mask | None) -> Nearest:
        """Return what is ours of an answer and kept by the filter, measured in double precision."""
        rows = self._rows(answer.keys)
        ours = rows >= 0
        if mask is not None:
            ours &= mask[rows]
        return nearest_first(rows[ours], closeness_to(point, answer.vectors[ours]))

    def _rows(self, keys: Keys) -> Rows:
        """Return the places of numbers in the table, -1 where it has none such."""
        places = np.searchsorted(self._rising, keys)
        there = np.append(self._rising, -1)[places] == keys
        return np.where(there, np.append(self._order, -1)[places], -1)


def _mean(stream: VectorStream) -> Vectors:
    total = np.zeros(stream.dimensions)
    for _, batch in stream.numbered():
        total += batch.sum(axis=0, dtype=np.float64)
    return mean_of(total, stream.rows)


def _parts(
    stream: VectorStream, some: Callable[[Rows], Vectors] | None, wanted: Mask
) -> Iterator[tuple[Rows, Vectors]]:
    """Yield rows that are wanted, read one by one where they are few."""
    rows = np.flatnonzero(wanted)
    if some is not None and 4 * len(rows) <= len(wanted):
        for begin in range(0, len(rows), MOST):
            yield rows[begin : begin + MOST], some(rows[begin : begin + MOST])
    else:
        for place, batch in stream.numbered():
            inside = np.flatnonzero(wanted[place])
            if len(inside):
                yield inside + place.start, batch[inside]


def _cut(found: Nearest, k: int | None) -> Nearest:
    return Nearest(found.rows[:k], found.closeness[:k])
