"""A query: one point in the space of the engine that stands for all examples, and its expansion by the best hits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import InputError
from lookdown.metrics.metric import L2Metric

__all__ = ["Query", "expansion_weights"]

Embeddings = NDArray[np.float32]
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Query:
    """Examples with their weights, as one point.

    The weighted mean over examples of |z_i - y|^2 / 2 is |point - y|^2 / 2 + spread, so one search serves all of them.
    """

    examples: Embeddings  # (n, d)
    weights: Array  # (n,), which sum to 1
    point: NDArray[np.float32]  # (r,)
    spread: float

    @classmethod
    def of(cls, examples: Embeddings, weights: Array, space: L2Metric) -> Query:
        """Average examples in the space of a metric."""
        z = space.transform(examples).astype(np.float64)
        shares = weights / weights.sum()
        point = shares @ z
        return cls(examples, shares, point.astype(np.float32), float(shares @ ((z - point) ** 2).sum(axis=1)) / 2)


def expansion_weights(scores: ArrayLike, own: float, *, alpha: float = 3.0) -> Array:
    """Return the weights of the query, which is 1, and of m hits with these scores, in an array of m + 1.

    own: the score of the query against itself: 1 for a cosine, the metric's `offset_` for a likelihood ratio.
    alpha: the exponent in weight = (score / own)^alpha, which lies between 0 and 1.

    Cosines are thus weighted as in alpha-QE (Radenovic, Tolias and Chum, PAMI 2019, the source of the default 3).
    Log-likelihood ratios can be weighted in the same way, because zero is neutral in both: a hit that scores no more
    than zero is evidence against the query's kind and gets weight 0. So does every hit where `own` is not above zero.

    The mean of the vectors with these weights is the new query. It ranks like the mean of the pairwise scores, where
    scores are L2 distances after `transform`.

    The weights are not relative to the best hit: otherwise it would always count in full, even where the gallery holds
    nothing of the query's kind.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any():
        raise InputError(f"scores must be one number per hit, none of them NaN; got shape {values.shape}")
    if not np.isfinite(own):
        raise InputError(f"own, the score of the query against itself, must be a finite number; got {own}")
    if not 0 < alpha < np.inf:
        raise InputError(f"alpha must be a number above 0; got {alpha}")
    weights = np.zeros(len(values) + 1)
    weights[0] = 1
    if own > 0:
        weights[1:] = (values.clip(0, own) / own) ** alpha
    return weights
