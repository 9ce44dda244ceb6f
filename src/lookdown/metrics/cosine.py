"""Cosine similarity behind the protocol of the learnt metrics."""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike

from lookdown.metrics.inputs import Embeddings, as_embeddings, unit
from lookdown.metrics.metric import L2Metric

__all__ = ["Cosine"]


class Cosine(L2Metric):
    """score = x'y / (|x| |y|), from -1 to 1; on the unit sphere that is 1 - |x - y|^2 / 2.

    It learns nothing, so that it scores without a fit.
    """

    _needs_labels = _learns = False
    offset_ = 1.0

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Note the number of dimensions; there is nothing to learn, and `y` is not read."""
        self._begin(as_embeddings(X).shape[1])
        return self

    def _transform(self, X: ArrayLike, name: str) -> Embeddings:
        """Put the embeddings on the unit sphere."""
        return unit(self._embeddings(X, name), name)
