"""The best matches of each query, without all scores in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from lookdown.metrics.inputs import Embeddings, as_count, as_embeddings
from lookdown.metrics.metric import L2Metric, Metric
from lookdown.metrics.pairwise import (
    Ranking,
    Rows,
    best,
    best_first,
    centred,
    half_squares,
    query_blocks,
    row_blocks,
    similarities,
)

__all__ = ["top_k"]

_BLOCK_ROWS = 2048  # gallery rows that a metric's own `score` compares with these queries at a time
_BLOCK_NUMBERS = 1 << 21  # in the differences that are formed at a time


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
    return best_first(ranking.indices, scores)
