"""Plain Euclidean distance behind the protocol of the learnt metrics."""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike

from lookdown.metrics.inputs import Embeddings, as_embeddings
from lookdown.metrics.metric import L2Metric

__all__ = ["Euclidean"]


class Euclidean(L2Metric):
    """score = -|x - y|^2 / 2: a likelihood ratio that knows only that same pairs are closer.

    It learns nothing, so that it scores without a fit.
    """

    _needs_labels = _learns = False
    offset_ = 0.0

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Note the number of dimensions; there is nothing to learn, and `y` is not read."""
        self._begin(as_embeddings(X).shape[1])
        return self

    def _transform(self, X: ArrayLike, name: str) -> Embeddings:
        """Return the embeddings as they are."""
        return self._embeddings(X, name)
