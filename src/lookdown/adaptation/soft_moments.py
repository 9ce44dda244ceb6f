"""Moments of pairs where chips belong to clusters in part: a pair is the same as far as both share a cluster."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.metrics.inputs import Embeddings

__all__ = ["SoftMoments"]

Array = NDArray[np.float64]


class SoftMoments:
    """What `PairMoments` is for labels, for shares: with shares of 0 and 1 both give the same covariances.

    With r(i, k) the share of chip i in cluster k, a pair is the same with weight sum_k r(i, k) r(j, k). Summed over
    pairs, (x - y)(x - y)' by these weights is sum_k n_k W_k, where n_k and W_k are the weighted count and scatter.
    """

    def __init__(self, X: Embeddings, shares: Array) -> None:
        rows = X.astype(np.float64, copy=False)
        self.samples = len(rows)
        self.mean = rows.mean(axis=0)
        self.counts = shares.sum(axis=0)  # (k,)
        self.squares = np.square(shares).sum(axis=0)  # (k,): a chip makes no pair with itself
        self.means = shares.T @ rows / self.counts[:, None]
        self.scatters = np.stack([_scatter(rows - m, r) for m, r in zip(self.means, shares.T, strict=True)])
        self.total = _scatter(rows - self.mean, np.ones(len(rows)))

    def covariances(self) -> tuple[Array, Array]:
        """Return the covariances of same and of different differences, (d, d) each; every pair counts by its weight."""
        same_pairs = float((np.square(self.counts) - self.squares).sum() / 2)
        if not same_pairs > 0:
            raise InputError("no two chips share a cluster; use fewer clusters")
        same = np.tensordot(self.counts, self.scatters, axes=1)
        different_pairs = self.samples * (self.samples - 1) / 2 - same_pairs
        return same / same_pairs, (self.samples * self.total - same) / different_pairs


def _scatter(centred: Array, weights: Array) -> Array:
    return np.asarray((centred * weights[:, None]).T @ centred)
