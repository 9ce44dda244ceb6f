"""The best matches of each query, without ever holding all scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import InputError
from lookdown.metrics.inputs import Embeddings, as_embeddings
from lookdown.metrics.metric import L2Metric, Metric

__all__ = ["Ranking", "top_k"]

_QUERIES = 256
_ROWS = 2048  # with the queries above: a block of scores that stays in the cache


class Ranking(NamedTuple):
    """The best gallery rows of each query, best first."""

    indices: NDArray[np.intp]  # (queries, k)
    scores: Embeddings  # (queries, k)


def top_k(metric: Metric, queries: ArrayLike, gallery: ArrayLike, k: int) -> Ranking:
    """Return the `k` best gallery rows of each query (all rows, where the gallery has fewer), with their scores.

    A metric that is Euclidean after `transform` is searched there, both sides being transformed once. The scores of
    what is returned are worked out again from the differences, so they have no rounding of the matrix product.
    """
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    if isinstance(metric, L2Metric) and metric.is_euclidean:
        return _top_k_by_distance(metric.offset_, metric.transform(queries), metric.transform(gallery), k)
    queries, gallery = as_embeddings(queries, name="queries"), as_embeddings(gallery, name="gallery")
    parts = [
        _best(
            ((begin, metric.score(some, gallery[begin : begin + _ROWS])) for begin in range(0, len(gallery), _ROWS)), k
        )
        for some in (queries[begin : begin + _QUERIES] for begin in range(0, len(queries), _QUERIES))
    ]
    return Ranking(np.concatenate([part.indices for part in parts]), np.concatenate([part.scores for part in parts]))


def _top_k_by_distance(offset: float, queries: Embeddings, gallery: Embeddings, k: int) -> Ranking:
    centre = gallery.mean(axis=0, dtype=np.float64).astype(gallery.dtype)
    queries, gallery = queries - centre, gallery - centre
    halves = np.einsum("ij,ij->i", gallery, gallery) / 2
    parts = []
    for first in range(0, len(queries), _QUERIES):
        some = queries[first : first + _QUERIES]
        found = _best(_similarities(some, gallery, halves), k)
        gaps = some[:, None] - gallery[found.indices]
        scores = offset - np.einsum("qkd,qkd->qk", gaps, gaps) / 2
        parts.append(_sorted(found.indices, scores))
    return Ranking(np.concatenate([part.indices for part in parts]), np.concatenate([part.scores for part in parts]))


def _similarities(queries: Embeddings, gallery: Embeddings, halves: Embeddings) -> Iterator[tuple[int, Embeddings]]:
    """Yield x'y - |y|^2 / 2 in blocks of the gallery: the score but for a constant of the query."""
    for begin in range(0, len(gallery), _ROWS):
        block = queries @ gallery[begin : begin + _ROWS].T
        block -= halves[begin : begin + _ROWS]
        yield begin, block


def _best(blocks: Iterator[tuple[int, Embeddings]], k: int) -> Ranking:
    """Keep the best k of each row while blocks of columns go by.

    Few columns beat the worst of the best so far, and only those are merged.
    """
    begin, scores = next(blocks)
    indices = np.broadcast_to(np.arange(begin, begin + scores.shape[1]), scores.shape)
    best = _partition(indices, scores, k)
    for begin, block in blocks:
        if best.scores.shape[1] < k:
            rows, columns = np.nonzero(np.ones(block.shape, dtype=np.bool_))
        else:
            rows, columns = np.divmod(np.flatnonzero(block > best.scores.min(axis=1)[:, None]), block.shape[1])
        if not len(rows):
            continue
        hits = np.bincount(rows, minlength=len(block))
        place = np.arange(len(rows)) - (hits.cumsum() - hits)[rows]
        more = np.full((len(block), hits.max()), -np.inf, dtype=block.dtype)
        where = np.zeros(more.shape, dtype=np.intp)
        more[rows, place], where[rows, place] = block[rows, columns], begin + columns
        best = _partition(np.hstack([best.indices, where]), np.hstack([best.scores, more]), k)
    return _sorted(*best)


def _partition(indices: NDArray[np.intp], scores: Embeddings, k: int) -> Ranking:
    if scores.shape[1] <= k:
        return Ranking(indices, scores)
    chosen = np.argpartition(scores, -k, axis=1)[:, -k:]
    return Ranking(np.take_along_axis(indices, chosen, axis=1), np.take_along_axis(scores, chosen, axis=1))


def _sorted(indices: NDArray[np.intp], scores: Embeddings) -> Ranking:
    """Order by falling score; equal scores by rising row, so that the answer does not depend on the blocks."""
    order = np.lexsort((indices, -scores), axis=1)
    return Ranking(np.take_along_axis(indices, order, axis=1), np.take_along_axis(scores, order, axis=1))
