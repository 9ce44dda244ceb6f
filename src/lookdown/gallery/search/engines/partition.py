"""The lists of an IVF index, each with its centroid: found by K-means, or taken over from another metric.

A metric maps embeddings linearly, so rows that were near one another mostly stay near. The members of a list are kept
and only its centroid is computed again.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

import faiss
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lookdown.gallery.search.engines.engine import Lists, Vectors, VectorStream, mean_of
from lookdown.gallery.store.snapshot import Rows
from lookdown.metrics.pairwise import half_squares

__all__ = ["Partition", "adopt_lists", "find_lists", "number_of_lists", "place_rows"]

_SAMPLE_ROWS = 64  # per list, for K-means; with more, lists take longer to find and are hardly better
_ROUNDS = 10  # of K-means


@dataclass(frozen=True, slots=True)
class Partition:
    """The lists of a gallery, and the vectors of the rows that were picked; all less the mean."""

    centre: Vectors  # (r,), the mean
    centroids: Vectors  # (lists, r)
    lists: Lists
    picked: Vectors


def number_of_lists(rows: int) -> int:
    """Return a power of two near twice the square root, so that centroids cost as much as rows to compare with."""
    return max(1, min(1 << round(1 + log2(max(rows, 1)) / 2), rows))


def find_lists(stream: VectorStream, rows: Rows, seed: int) -> Partition:
    """Find centroids on a sample, in one pass over the stream; no row is in a list yet.

    rows: the rows to pick, in rising order.
    """
    count = number_of_lists(stream.rows)
    drawn = np.random.default_rng(seed).choice(stream.rows, min(_SAMPLE_ROWS * count, stream.rows), replace=False)
    drawn.sort()
    centre, (sample, picked) = _survey(stream, drawn, rows)
    half_squares(sample)  # refuses numbers whose squares overflow: K-means would end the process
    if len(sample) > count:
        kmeans = faiss.Kmeans(
            stream.dimensions,
            count,
            niter=_ROUNDS,
            seed=seed,
            min_points_per_centroid=1,  # no warning about small galleries
            max_points_per_centroid=len(sample),
        )
        kmeans.train(sample)
        sample = np.asarray(kmeans.centroids)
    centroids = sample if len(sample) else np.zeros((1, stream.dimensions), np.float32)
    return Partition(centre, centroids, np.full(stream.rows, -1, np.int32), picked)


def adopt_lists(stream: VectorStream, rows: Rows, lists: Lists) -> Partition:
    """Compute the centroids of lists, in one pass over the stream; empty lists are left out."""
    sizes = np.bincount(lists[lists >= 0])
    numbers = np.append(np.cumsum(sizes > 0) - 1, -1).astype(np.int32)  # the last entry is for -1
    lists, sizes = numbers[lists], sizes[sizes > 0]
    sums = np.zeros((len(sizes), stream.dimensions))
    centre, (picked,) = _survey(stream, rows, sums=sums, lists=lists)
    return Partition(centre, (sums / sizes[:, None] - centre).astype(np.float32), lists, picked)


def place_rows(stream: VectorStream, partition: Partition) -> None:
    """Put every row that is in no list into the one with the nearest centroid, in one pass over the stream."""
    if not (partition.lists < 0).any():
        return
    nearest = faiss.IndexFlatL2(stream.dimensions)
    nearest.add(partition.centroids)
    for rows, batch in stream.numbered():
        missing = np.flatnonzero(partition.lists[rows] < 0)
        if len(missing):
            points = np.asarray(batch[missing] - partition.centre, np.float32)
            half_squares(points)
            partition.lists[rows.start + missing] = nearest.search(points, 1)[1][:, 0]


def _survey(
    stream: VectorStream, *choices: Rows, sums: NDArray[np.float64] | None = None, lists: Lists | None = None
) -> tuple[Vectors, list[Vectors]]:
    """Return the mean of all vectors, and the vectors of each choice of rows less the mean.

    sums: if given, the members of each of the `lists` are added to its row.
    """
    total = np.zeros(stream.dimensions)
    taken = [np.empty((len(rows), stream.dimensions), np.float32) for rows in choices]
    for rows, batch in stream.numbered():
        total += batch.sum(axis=0, dtype=np.float64)
        for chosen, vectors in zip(choices, taken, strict=True):
            here = slice(*np.searchsorted(chosen, (rows.start, rows.stop)))
            vectors[here] = batch[chosen[here] - rows.start]
        if sums is not None and lists is not None:
            sums += _membership(lists[rows], len(sums)) @ batch
    centre = mean_of(total, stream.rows)
    for vectors in taken:
        vectors -= centre
    return centre, taken


def _membership(lists: Lists, count: int) -> csr_array:
    """Return a (lists, rows) matrix with a 1 where a row is in a list; a product with it adds up members."""
    known = lists >= 0
    ends = np.zeros(len(lists) + 1, np.int32)
    np.cumsum(known, out=ends[1:])
    return csr_array((np.ones(ends[-1], np.float32), lists[known], ends), shape=(len(lists), count)).T
