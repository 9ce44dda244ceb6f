"""The best matches of each query, without ever holding all scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import InputError
from lookdown.metrics.inputs import Embeddings, as_embeddings
from lookdown.metrics.metric import L2Metric, Metric
from lookdown.metrics.pairwise import centred, half_squares

__all__ = ["Ranking", "top_k"]

_QUERIES = 256
_ROWS = 2048  # with the queries above: a block of scores that stays in the cache
_GAPS = 1 << 21  # numbers in the differences that are formed at a time


class Ranking(NamedTuple):
    """The best gallery rows of each query, best first."""

    indices: NDArray[np.intp]  # (queries, k)
    scores: Embeddings  # (queries, k)


def top_k(metric: Metric, queries: ArrayLike, gallery: ArrayLike, k: int) -> Ranking:
    """Return the `k` best gallery rows of each query (all rows, where the gallery has fewer), with their scores.

    A metric that is Euclidean after `transform` is searched there, both sides being transformed once, and the scores
    of what is returned are worked out again from the differences, without the rounding of the matrix product. Equal
    scores come by rising row; which of them make it over the cut at `k` is not defined.
    """
    if not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k must be a whole number of at least 1, got {k!r}")
    metric._require_fit()
    if isinstance(metric, L2Metric) and metric.is_euclidean:
        a, b = centred(metric._transform(queries, "queries"), metric._transform(gallery, "gallery"))
        halves = half_squares(b)
        half_squares(a)  # refuses what cannot be squared
        parts = [_exactly(metric.offset_, some, b, _best(_similarities(some, b, halves), k)) for some in _blocks(a)]
    else:
        a, b = as_embeddings(queries, name="queries"), as_embeddings(gallery, name="gallery")
        parts = [_best(_scores(metric, some, b), k) for some in _blocks(a)]
    return Ranking(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _blocks(queries: Embeddings) -> Iterator[Embeddings]:
    return (queries[begin : begin + _QUERIES] for begin in range(0, len(queries), _QUERIES))


def _scores(metric: Metric, queries: Embeddings, gallery: Embeddings) -> Iterator[tuple[int, Embeddings]]:
    for begin in range(0, len(gallery), _ROWS):
        yield begin, metric.score(queries, gallery[begin : begin + _ROWS])


def _exactly(offset: float, queries: Embeddings, gallery: Embeddings, found: Ranking) -> Ranking:
    """Score what was found by explicit differences, a slice of the ranks at a time."""
    scores = np.empty_like(found.scores)
    ranks = max(1, _GAPS // (len(queries) * queries.shape[1] + 1))
    for begin in range(0, scores.shape[1], ranks):
        gaps = queries[:, None] - gallery[found.indices[:, begin : begin + ranks]]
        scores[:, begin : begin + ranks] = offset - np.einsum("qkd,qkd->qk", gaps, gaps) / 2
    return _sorted(found.indices, scores)


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
    """Order by falling score, equal scores by rising row."""
    order = np.lexsort((indices, -scores), axis=1)
    return Ranking(np.take_along_axis(indices, order, axis=1), np.take_along_axis(scores, order, axis=1))
