"""Clusters as pseudo-labels: the covariances of pairs that they call same and different."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from lookdown.adaptation.adaptation_settings import AdaptationSettings
from lookdown.adaptation.k_means import Clusters
from lookdown.adaptation.shards import Rows, Shards, over_shards
from lookdown.adaptation.ward_tree import WardTree
from lookdown.errors import InputError
from lookdown.metrics.inputs import Embeddings, unit
from lookdown.metrics.pair_moments import PairMoments, Weighting

__all__ = ["Covariances", "SoftMoments", "nearest_rows", "pseudo_moments", "soft_covariances"]

Array = NDArray[np.float64]

_BLOCK_ROWS = 65_536  # taken in at a time


@dataclass(frozen=True, slots=True)
class Covariances:
    """Covariances of differences of same and of different kinds, and the number of chips behind them."""

    same: Array
    different: Array
    mean: Array
    free: tuple[float, float]  # independent chips, less the means taken off

    @classmethod
    def of(cls, moments: PairMoments, weighting: Weighting, cuts: NDArray[np.int64] | None = None) -> Covariances:
        """Return the covariances of all pairs under labels, true or not; with several `cuts` of them, the mean."""
        free = moments.samples - len(moments.classes), moments.samples - 1
        if cuts is None or len(cuts) == 1:
            return cls(*moments.covariances(weighting), moments.mean, free)
        each = [moments.regrouped(cut[moments.classes]).covariances(weighting) for cut in cuts]
        same, different = (np.mean(parts, axis=0) for parts in zip(*each, strict=True))
        return cls(same, different, moments.mean, free)

    def blended(self, other_same: Array, other_different: Array, share: float) -> Covariances:
        """Return a blend in which the other covariances have a share of 0 to 1."""
        same = (1 - share) * self.same + share * other_same
        different = (1 - share) * self.different + share * other_different
        return Covariances(same, different, self.mean, self.free)


def pseudo_moments(X: Rows, clusters: Clusters | WardTree, settings: AdaptationSettings, by: Rows) -> PairMoments:
    """Return the moments of all pairs, each chip labelled by its cluster; `by` holds the rows that are clustered."""
    if settings.nearest < 1:  # the nearest rows can only be told from all of them
        X, by = X[:], by[:]
    other = None if by is X or isinstance(by, Shards) else by
    return reduce(add, over_shards(X, partial(_moments, clusters=clusters, nearest=settings.nearest, by=other)))


def soft_covariances(X: Embeddings, clusters: Clusters, settings: AdaptationSettings, by: Embeddings) -> Covariances:
    """Return the covariances where a chip belongs to clusters by exp(-distance / temperature)."""
    rows = np.asarray(unit(X) if clusters.normalize else X, dtype=np.float64)
    apart = clusters.squared_distances(by)
    temperature = settings.softness * apart.min(axis=1).mean()
    if not temperature > 0:
        raise InputError("every chip lies in the centre of its cluster, so softness has no scale; use softness=0")
    logits = -apart / temperature
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    used = shares.sum(axis=0) > 1e-12
    moments = SoftMoments(rows, shares[:, used])
    return Covariances(*moments.covariances(), moments.mean, (len(X) - float(used.sum()), len(X) - 1.0))


class SoftMoments:
    """What `PairMoments` is for labels, for chips that belong to clusters in part; shares of 0 and 1 are labels.

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


def nearest_rows(labels: NDArray[np.int64], distances: Array, share: float) -> NDArray[np.bool_]:
    """Mark in each cluster the share of rows that lie nearest to the centre, at least two where there are two."""
    if share == 1:
        return np.ones(len(labels), np.bool_)
    order = np.lexsort((distances, labels))
    starts = np.flatnonzero(np.r_[True, np.diff(labels[order]) > 0])
    sizes = np.diff(np.r_[starts, len(labels)])
    rank = np.arange(len(labels)) - np.repeat(starts, sizes)
    counted = np.zeros(len(labels), np.bool_)
    counted[order] = rank < np.repeat(np.maximum(np.ceil(share * sizes), 2), sizes)
    return counted


def _moments(
    X: Embeddings, begin: int, *, clusters: Clusters | WardTree, nearest: float, by: Embeddings | None
) -> PairMoments:
    labels, distances = clusters.assign(X if by is None else by)
    counted = nearest_rows(labels, distances, nearest)
    moments = PairMoments(normalize=clusters.normalize)
    for first in range(0, len(X), _BLOCK_ROWS):
        rows = counted[first : first + _BLOCK_ROWS]
        if rows.any():
            moments.update(X[first : first + _BLOCK_ROWS][rows], labels[first : first + _BLOCK_ROWS][rows])
    return moments


def _scatter(centred: Array, weights: Array) -> Array:
    return np.asarray((centred * weights[:, None]).T @ centred)
