"""The best matches of each query, without all scores in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.metrics.inputs import Embeddings, as_count, as_embeddings
from lookdown.metrics.metric import L2Metric, Metric
from lookdown.metrics.pairwise import centred, half_squares

__all__ = ["Ranking", "Rows", "best", "query_blocks", "row_blocks", "similarities", "top_k"]

Rows = NDArray[np.intp]  # row numbers of the gallery

_BLOCK_QUERIES = 256
_BLOCK_ROWS = 2048  # gallery rows that a metric's own `score` compares with these queries at a time
_BLOCK_SCORES = 1 << 19  # similarities at a time, which stay in the cache
_FEWEST_ROWS, _MOST_ROWS = 1 << 13, 1 << 16  # of a block: more amortise Python overhead, fewer save memory
_BLOCK_NUMBERS = 1 << 21  # in the differences that are formed at a time


class Ranking(NamedTuple):
    """The best gallery rows of each query, best first."""

    indices: Rows  # (queries, k)
    scores: Embeddings  # (queries, k)


def top_k(metric: Metric, queries: ArrayLike, gallery: ArrayLike, k: int) -> Ranking:
    """Return the `k` best gallery rows of each query (all rows, where the gallery has fewer), with their scores.

    A metric that is Euclidean after `transform` is searched there; both sides are transformed once. The returned
    scores are computed again from the differences, without the rounding of a matrix product. Equal scores come by
    rising row; which of them are cut off at `k` is not defined.
    """
    k = as_count(k, "k")
    metric._require_fit()
    if isinstance(metric, L2Metric) and metric.is_euclidean:
        a, b = centred(*metric._transform_both(queries, gallery, "queries", "gallery"))
        halves = half_squares(b)
        half_squares(a)  # refuses what cannot be squared
        parts = [
            _exactly(metric.offset_, block, b, best(_similarities(block, b, halves), k)) for block in query_blocks(a)
        ]
    else:
        a, b = as_embeddings(queries, name="queries"), as_embeddings(gallery, name="gallery")
        parts = [best(_scores(metric, block, b), k) for block in query_blocks(a)]
    return Ranking(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def query_blocks(queries: Embeddings) -> Iterator[Embeddings]:
    """Split queries into blocks."""
    return (queries[begin : begin + _BLOCK_QUERIES] for begin in range(0, len(queries), _BLOCK_QUERIES))


def row_blocks(rows: int, queries: int) -> Iterator[slice]:
    """Split a gallery into blocks of rows, larger ones for fewer queries."""
    step = min(max(_BLOCK_SCORES // queries, _FEWEST_ROWS), _MOST_ROWS)
    return (slice(begin, min(begin + step, rows)) for begin in range(0, rows, step))


def similarities(queries: Embeddings, gallery: Embeddings, halves: Embeddings) -> Embeddings:
    """Return x'y - |y|^2 / 2, given these `halves`: the score up to a constant of the query."""
    block: Embeddings = queries @ gallery.T
    block -= halves
    return block


def best(blocks: Iterable[tuple[Rows, Embeddings]], k: int) -> Ranking:
    """Keep the best k of each query over (queries, rows) blocks of scores, each with its row numbers.

    Only the few columns that beat the worst of the best so far are merged.
    """
    blocks = iter(blocks)
    numbers, scores = next(blocks)
    top = _partition(np.broadcast_to(numbers, scores.shape), scores, k)
    for numbers, block in blocks:
        if top.scores.shape[1] < k:
            rows, columns = np.nonzero(np.ones(block.shape, dtype=np.bool_))
        else:
            rows, columns = np.divmod(np.flatnonzero(block > top.scores.min(axis=1)[:, None]), block.shape[1])
        if not len(rows):
            continue
        better = np.bincount(rows, minlength=len(block))
        position = np.arange(len(rows)) - (better.cumsum() - better)[rows]
        more = np.full((len(block), better.max()), -np.inf, dtype=block.dtype)
        indices = np.zeros(more.shape, dtype=np.intp)
        more[rows, position], indices[rows, position] = block[rows, columns], numbers[columns]
        top = _partition(np.hstack([top.indices, indices]), np.hstack([top.scores, more]), k)
    return _sorted(*top)


def _scores(metric: Metric, queries: Embeddings, gallery: Embeddings) -> Iterator[tuple[Rows, Embeddings]]:
    for begin in range(0, len(gallery), _BLOCK_ROWS):
        block = gallery[begin : begin + _BLOCK_ROWS]
        yield np.arange(begin, begin + len(block)), metric.score(queries, block)


def _similarities(queries: Embeddings, gallery: Embeddings, halves: Embeddings) -> Iterator[tuple[Rows, Embeddings]]:
    for rows in row_blocks(len(gallery), len(queries)):
        yield np.arange(rows.start, rows.stop), similarities(queries, gallery[rows], halves[rows])


def _exactly(offset: float, queries: Embeddings, gallery: Embeddings, ranking: Ranking) -> Ranking:
    """Score a ranking again by explicit differences, a slice of the ranks at a time."""
    scores = np.empty_like(ranking.scores)
    ranks = max(1, _BLOCK_NUMBERS // (len(queries) * queries.shape[1] + 1))
    for begin in range(0, scores.shape[1], ranks):
        gaps = queries[:, None] - gallery[ranking.indices[:, begin : begin + ranks]]
        scores[:, begin : begin + ranks] = offset - np.einsum("qkd,qkd->qk", gaps, gaps) / 2
    return _sorted(ranking.indices, scores)


def _partition(indices: Rows, scores: Embeddings, k: int) -> Ranking:
    if scores.shape[1] <= k:
        return Ranking(indices, scores)
    chosen = np.argpartition(scores, -k, axis=1)[:, -k:]
    return Ranking(np.take_along_axis(indices, chosen, axis=1), np.take_along_axis(scores, chosen, axis=1))


def _sorted(indices: Rows, scores: Embeddings) -> Ranking:
    """Order by falling score, equal scores by rising row."""
    order = np.lexsort((indices, -scores), axis=1)
    return Ranking(np.take_along_axis(indices, order, axis=1), np.take_along_axis(scores, order, axis=1))
