"""Query expansion: the best hits join the query, by how much they are to be trusted."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import InputError

__all__ = ["expand"]


def expand(scores: ArrayLike, own: float, *, alpha: float = 3.0) -> NDArray[np.float64]:
    """Return the weights of the query, which is 1, and of m hits with these scores, in an array of m + 1.

    weight = (score / own)^alpha, from 0 to 1, where `own` is the score of the query against itself: 1 for a cosine,
    the metric's `offset_` for a likelihood ratio. Cosines thus weigh as in alpha-QE (Radenovic, Tolias and Chum, PAMI
    2019, from where the 3 is), and log-likelihood ratios just so, since zero is neutral in both: a hit that scores no
    more speaks against being of the query's kind, and is left out. So is every hit where `own` is not above zero.

    The mean of the vectors with these weights is the new query. It ranks as the mean of the pairwise scores does, where
    scores are L2 distances after `transform`.

    Trust is not measured by the other hits: by them the best would always count in full, and where nothing of the
    query's kind is there to be found, the query would become a mean of what it is not.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any():
        raise InputError(f"scores must be a row of numbers, one a hit and none NaN; got shape {values.shape}")
    if not np.isfinite(own):
        raise InputError(f"own, the score of the query against itself, must be a finite number; got {own}")
    if not 0 < alpha < np.inf:
        raise InputError(f"alpha must be a number above 0; got {alpha}")
    weights = np.zeros(len(values) + 1)
    weights[0] = 1
    if own > 0:
        weights[1:] = (values.clip(0, own) / own) ** alpha
    return weights
