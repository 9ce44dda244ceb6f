"""All scores of some queries at a time, never of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import InputError
from lookdown.metrics.inputs import Embeddings, as_embeddings, as_numpy
from lookdown.metrics.metric import L2Metric, Metric
from lookdown.metrics.pairwise import centred, half_squares

__all__ = ["BLOCK", "ScoreBlocks"]

BLOCK = 1 << 21  # scores at a time: 16 MB in double precision


class ScoreBlocks:
    """Rows of the (queries, gallery) scores, in blocks of about two million, or of one query if the gallery is larger.

    `metric_or_scores` is a fitted metric, or the scores themselves; then embeddings are not read. A block may be
    overwritten by the next one.
    """

    def __init__(
        self, metric_or_scores: Metric | ArrayLike, queries: ArrayLike | None, gallery: ArrayLike | None
    ) -> None:
        if isinstance(metric_or_scores, Metric):
            if queries is None or gallery is None:
                raise InputError("a metric needs embeddings to compare; give queries and gallery, or scores instead")
            metric_or_scores._require_fit()
            self._metric = metric_or_scores
            self._queries = as_embeddings(queries, name="queries")
            self._gallery = as_embeddings(gallery, name="gallery")
            self.shape = len(self._queries), len(self._gallery)
            self._blocks = self._by_distance if _is_euclidean(self._metric) else self._by_metric
        else:
            self._scores = _as_scores(metric_or_scores)
            self.shape = self._scores.shape[0], self._scores.shape[1]
            self._blocks = self._as_given

    def __iter__(self) -> Iterator[NDArray[Any]]:
        rows = max(1, BLOCK // self.shape[1])
        return self._blocks([slice(begin, begin + rows) for begin in range(0, self.shape[0], rows)])

    def _as_given(self, blocks: list[slice]) -> Iterator[NDArray[Any]]:
        return (self._scores[block] for block in blocks)

    def _by_metric(self, blocks: list[slice]) -> Iterator[Embeddings]:
        return (self._metric.score(self._queries[block], self._gallery) for block in blocks)

    def _by_distance(self, blocks: list[slice]) -> Iterator[Embeddings]:
        """Work out `metric.score`, but with both sides mapped once and one buffer for every block."""
        metric = self._metric
        assert isinstance(metric, L2Metric)
        a, b = centred(*metric._transform_both(self._queries, self._gallery, "queries", "gallery"))
        own, other = half_squares(a), half_squares(b)
        buffer = np.empty((len(a[blocks[0]]), len(b)), dtype=np.result_type(a, b))
        for block in blocks:
            scores = buffer[: len(a[block])]
            np.matmul(a[block], b.T, out=scores)
            np.subtract(own[block, None], scores, out=scores)
            scores += other
            np.maximum(scores, 0, out=scores)  # rounding may put equal rows closer than zero
            yield np.subtract(metric.offset_, scores, out=scores)


def _is_euclidean(metric: Metric) -> bool:
    return isinstance(metric, L2Metric) and metric.is_euclidean


def _as_scores(scores: ArrayLike) -> NDArray[Any]:
    try:
        matrix = np.asarray(as_numpy(scores))
    except (ValueError, TypeError) as error:
        raise InputError(f"neither a metric nor scores: {str(error).splitlines()[0]}") from error
    if matrix.ndim != 2 or matrix.dtype.kind not in "fui":
        raise InputError(
            "the first argument is a fitted metric or scores of shape (queries, gallery), higher for more alike; got "
            f"{type(scores).__name__} of {matrix.dtype} and shape {matrix.shape}"
        )
    return matrix
