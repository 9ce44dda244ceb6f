"""Metrics that learn nothing and score without a fit: cosine similarity and Euclidean distance."""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike

from lookdown.metrics.inputs import Embeddings, as_embeddings, unit
from lookdown.metrics.metric import L2Metric

__all__ = ["Cosine", "Euclidean"]


class _FixedMetric(L2Metric):
    """An L2 metric without parameters."""

    _needs_labels = _learns = False

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Record the number of dimensions; `y` is not read."""
        self._begin(as_embeddings(X).shape[1])
        return self


class Cosine(_FixedMetric):
    """Cosine similarity: score = x'y / (|x| |y|), from -1 to 1; on the unit sphere that is 1 - |x - y|^2 / 2.

    It takes no arguments and scores without `fit`. Rates and thresholds need `calibrate`.

    Attributes: `offset_`, 1, the score of equal embeddings; `n_features_in_`, dimensions, only after `fit`.

    >>> import lookdown
    >>> lookdown.Cosine().score([[1.0, 0.0]], [[2.0, 0.0], [0.0, 1.0]])
    array([[1., 0.]])
    """

    offset_ = 1.0

    def _transform(self, X: ArrayLike, name: str) -> Embeddings:
        """Put the embeddings on the unit sphere."""
        return unit(self._embeddings(X, name), name)


class Euclidean(_FixedMetric):
    """Euclidean distance: score = -|x - y|^2 / 2, a likelihood ratio that knows only that same pairs are closer.

    It takes no arguments and scores without `fit`. Rates and thresholds need `calibrate`.

    Attributes: `offset_`, 0, the score of equal embeddings; `n_features_in_`, dimensions, only after `fit`.

    >>> import lookdown
    >>> metric = lookdown.Euclidean()
    >>> metric.score([[1.0, 0.0]], [[3.0, 0.0]]), metric.distance([[1.0, 0.0]], [[3.0, 0.0]])
    (array([[-2.]]), array([[2.]]))
    """

    offset_ = 0.0

    def _transform(self, X: ArrayLike, name: str) -> Embeddings:
        """Return the embeddings as they are."""
        return self._embeddings(X, name)
