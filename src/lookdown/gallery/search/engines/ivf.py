"""Approximate search: vectors lie in lists of near ones, and a query is compared with those in the nearest lists.

How many lists to probe is measured by the exact neighbours of trial queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple, Self

import faiss as typed_faiss
import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.gallery.search.engines.engine import SPARE, Lists, Vectors, VectorStream
from lookdown.gallery.search.engines.in_memory import InMemoryEngine, Mask
from lookdown.gallery.search.engines.partition import Partition, adopt_lists, find_lists, number_of_lists, place_rows
from lookdown.gallery.store.snapshot import FilterColumns, Rows
from lookdown.metrics.inputs import Embeddings
from lookdown.metrics.pairwise import best, half_squared_distances, half_squares, similarities

__all__ = ["IVFEngine", "ProbeCount", "Ranks", "Trials", "list_ranks"]

faiss: Any = typed_faiss  # its types lack half of what is used here

Ranks = NDArray[np.intp]  # 0 for the list whose centroid is nearest to the query

_ROUNDING = float(np.finfo(np.float32).eps)
_BATCH_WITNESSES = 1 << 13
_LEAST_IN_NEAREST = 0.75  # share of rows in the list with the nearest centroid; about 0.9 in lists found for the metric
_TRIAL_QUERIES = 384  # most miss no neighbour and a few miss many, so a mean needs this many
_WITNESS_ROWS, _LEAST_SHARE = 100_000, 0.1  # rows, and the least share of all, that trials are compared with
_NEIGHBOURS = (50, 100, 200, 500, 1000)  # for which probes are measured
_RECALL = 0.994  # 0.99 is promised; other queries may fare slightly worse than the trials


class IVFEngine(InMemoryEngine):
    """faiss' IndexIVFFlat with the only copy of the vectors; with a filter, and for `reaching`, it compares all rows.

    lists: the `assignment` of an earlier engine, even one of another metric, with -1 for rows added since. It saves
        the clustering, which takes most of the time. Where it does not suit the vectors, new lists are found.

    `probes` is the number of lists that are probed for 50 neighbours, and `recall` the share of the exact neighbours
    of trial queries that they hold. `rebuilt` is True if `lists` did not suit the vectors.
    """

    name = "ivf"

    def __init__(
        self, stream: VectorStream, columns: FilterColumns, lists: Lists | None = None, *, seed: int = 0
    ) -> None:
        trials = Trials.drawn(stream.rows, seed)
        built = None
        if lists is not None and _is_usable(lists, stream.rows):
            built = _build(stream, adopt_lists(stream, trials.rows, lists), trials)
            if not built.fits:
                built = None  # frees its memory before more is taken
        self.rebuilt = lists is not None and built is None
        if built is None:
            built = _build(stream, find_lists(stream, trials.rows, seed), trials)
        super().__init__(stream.rows, columns, built.partition.centre)
        self._index, self._probe_count = built.index, built.probe_count
        self.assignment = built.partition.lists
        self.lists_changed = lists is None or not np.array_equal(self.assignment, lists)
        self.probes, self.recall = self._probe_count.probes(1), self._probe_count.recall

    def _propose(self, points: Vectors, k: int, mask: Mask | None) -> Rows:
        if mask is not None:
            kept = faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
            return self._search(points, k, nprobe=self._index.nlist, sel=kept)
        rows = self._search(points, k, nprobe=self._probe_count.probes(k - SPARE))
        short = np.flatnonzero(rows[:, -1] < 0)  # the lists held fewer than k rows
        if len(short):
            rows[short] = self._search(points[short], k, nprobe=self._index.nlist)
        return rows

    def _search(self, points: Vectors, k: int, **settings: Any) -> Rows:
        rows: Rows = self._index.search(points, k, params=faiss.SearchParametersIVF(**settings))[1]
        return rows

    def _suspects(self, point: Vectors, closeness: float) -> Rows:
        rounding = 1 + (len(point) + 4) * _ROUNDING
        radius = -2 * closeness * rounding + float(np.finfo(np.float32).tiny)  # faiss keeps what is below it
        everywhere = faiss.SearchParametersIVF(nprobe=self._index.nlist)
        rows: Rows = self._index.range_search(point[None], radius, params=everywhere)[2]
        return rows

    def _fetch(self, rows: Rows) -> Vectors:
        vectors: Vectors = self._index.reconstruct_batch(rows)
        return vectors


class _FilledIndex(NamedTuple):
    index: Any  # faiss.IndexIVFFlat
    partition: Partition
    probe_count: ProbeCount
    fits: bool


def _is_usable(lists: Lists, rows: int) -> bool:
    """Whether the number of lists still suits the gallery; it may have grown or shrunk."""
    if lists.shape != (rows,) or lists.dtype != np.int32 or lists.min(initial=-1) < -1:
        raise InputError(f"lists must be {rows} numbers of type int32, -1 for a row in none; got {lists!r}")
    count, wanted = int(lists.max(initial=-1)) + 1, number_of_lists(rows)
    return wanted <= 2 * count <= 8 * wanted


def _build(stream: VectorStream, partition: Partition, trials: Trials) -> _FilledIndex:
    """Fill the lists, and measure how many of them a search must probe."""
    place_rows(stream, partition)
    index = _empty_index(partition)
    nearest = np.empty((0, 0), np.intp)
    if stream.rows:
        nearest = best(_fill(index, stream, partition, trials), trials.wanted).indices
    index.set_direct_map_type(faiss.DirectMap.Array)  # rows can be fetched
    holders = partition.lists[np.column_stack([trials.rows, trials.others(nearest)])]
    own, *_ = ranks = list_ranks(partition.picked, partition.centroids, holders).T
    probe_count = ProbeCount.measured(ranks[1:].T, index.nlist, trials.share)
    # They fit if few lists suffice, or if most rows are in the nearest list, as they would be in new lists.
    fits = 4 * probe_count.probes(1) <= index.nlist or np.count_nonzero(own == 0) > _LEAST_IN_NEAREST * len(own)
    return _FilledIndex(index, partition, probe_count, bool(fits))


def _empty_index(partition: Partition) -> Any:
    """Return an index with exactly the memory that each list needs; lists that grow take up to twice as much."""
    count, dimensions = partition.centroids.shape
    quantizer = faiss.IndexFlatL2(dimensions)
    quantizer.add(partition.centroids)
    index = faiss.IndexIVFFlat(quantizer, dimensions, count)
    index.is_trained = True
    for number, size in enumerate(np.bincount(partition.lists, minlength=count)):
        index.invlists.resize(number, int(size))
        index.invlists.resize(number, 0)  # the memory stays
    return index


def _fill(index: Any, stream: VectorStream, partition: Partition, trials: Trials) -> Iterator[tuple[Rows, Embeddings]]:
    """Add all rows, and yield the similarities of the witnesses among them to the trials, a batch at a time."""
    rows, points, halves = np.empty(0, np.intp), np.empty((0, stream.dimensions), np.float32), np.empty(0, np.float32)
    for span, batch in stream.numbered():
        added = np.subtract(batch, partition.centre, dtype=np.float32)
        numbers, lists = np.arange(span.start, span.stop), partition.lists[span].astype(np.int64)
        index.add_core(len(added), faiss.swig_ptr(added), faiss.swig_ptr(numbers), faiss.swig_ptr(lists))
        here = np.flatnonzero(trials.witnesses[span])
        rows, points = np.append(rows, numbers[here]), np.concatenate([points, added[here]])
        halves = np.append(halves, half_squares(added)[here])
        if len(rows) >= _BATCH_WITNESSES or span.stop == stream.rows:
            yield rows, similarities(partition.picked, points, halves)
            rows, points, halves = rows[:0], points[:0], halves[:0]


@dataclass(frozen=True, slots=True)
class Trials:
    """Rows that serve as queries, and the rows that they are compared with.

    Of a large gallery only a random share is compared. It holds the same share of the neighbours of a query, so recall
    is the same, and many queries cost as little as a few would with all rows.
    """

    rows: Rows  # rising
    witnesses: NDArray[np.bool_]
    share: float

    @classmethod
    def drawn(cls, rows: int, seed: int) -> Self:
        """Draw trials from a gallery with this many rows."""
        rng = np.random.default_rng(seed)
        share = min(max(_WITNESS_ROWS / max(rows, 1), _LEAST_SHARE), 1.0)
        chosen = np.sort(rng.choice(rows, min(_TRIAL_QUERIES, rows), replace=False))
        return cls(chosen, rng.random(rows) < share, share)

    @property
    def wanted(self) -> int:
        """How many nearest witnesses to find; one of them may be the query itself."""
        return min(ceil(_NEIGHBOURS[-1] * self.share) + 1, int(np.count_nonzero(self.witnesses)))

    def others(self, nearest: Rows) -> Rows:
        """Return (trials, wanted) rows, nearest first, without the trials themselves."""
        count = max(self.wanted - 1, 0)
        pairs = zip(self.rows, nearest, strict=True)
        return np.array([rows[rows != own][:count] for own, rows in pairs], np.intp).reshape(len(self.rows), count)


def list_ranks(queries: Vectors, centroids: Vectors, lists: Lists) -> Ranks:
    """Return the rank of each of (queries, k) lists: how many others have a centroid nearer to the query."""
    order = np.argsort(half_squared_distances(queries, centroids), axis=1)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(len(centroids))[None], axis=1)
    return np.take_along_axis(ranks, lists.astype(np.intp), axis=1)


@dataclass(frozen=True, slots=True)
class ProbeCount:
    """Numbers of neighbours and, for each, the least number of lists that hold almost all of them."""

    lists: int
    steps: tuple[tuple[int, int], ...]  # (neighbours, probes), rising
    recall: float  # of the first step, measured

    @classmethod
    def measured(cls, ranks: Ranks, lists: int, share: float) -> Self:
        """Count probes by the ranks of the lists that hold the (trials, k) neighbours.

        A row is found if its list is probed, so the recall with p probes is the share of ranks below p.

        share: of the gallery that the trials were compared with.
        """
        measured = ranks.shape[1]
        if not ranks.size:
            return cls(lists, ((_NEIGHBOURS[0], lists),), 1.0)
        parts = [(k, ceil(k * share)) for k in _NEIGHBOURS if ceil(k * share) < measured] + [
            (int(measured / share), measured)
        ]
        steps = [(k, _least_probes(ranks[:, :part])) for k, part in parts]
        return cls(lists, tuple(steps), float(np.mean(ranks[:, : parts[0][1]] < steps[0][1])))

    def probes(self, k: int) -> int:
        """Return how many lists to probe for k neighbours; in proportion beyond those that were measured."""
        for neighbours, probes in self.steps:
            if k <= neighbours:
                return probes
        return min(ceil(probes * k / neighbours), self.lists)


def _least_probes(ranks: Ranks) -> int:
    return int(np.sort(ranks, axis=None)[ceil(_RECALL * ranks.size) - 1]) + 1
