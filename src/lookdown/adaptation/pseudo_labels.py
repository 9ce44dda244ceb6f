"""From clusters to the covariances of pairs that they call same and different."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from lookdown.adaptation.clustering import Clusters
from lookdown.adaptation.hierarchy import Hierarchy
from lookdown.adaptation.settings import Settings
from lookdown.adaptation.shards import Rows, Shards, over_shards
from lookdown.adaptation.soft_moments import SoftMoments
from lookdown.errors import InputError
from lookdown.metrics.inputs import Embeddings, unit
from lookdown.metrics.pair_moments import PairMoments, Weighting

__all__ = ["Covariances", "nearest_rows", "pseudo_moments", "soft_covariances"]

Array = NDArray[np.float64]

_BLOCK = 65_536  # rows taken in at a time


@dataclass(frozen=True, slots=True)
class Covariances:
    """Covariances of same and different differences, and how many chips are behind them."""

    same: Array
    different: Array
    mean: Array
    free: tuple[float, float]  # independent chips, less the means taken off

    @classmethod
    def of(cls, moments: PairMoments, weighting: Weighting, cuts: NDArray[np.int64] | None = None) -> Covariances:
        """Return what labels, true or not, make of all pairs; with several `cuts` of them, the mean over these."""
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


def pseudo_moments(X: Rows, clusters: Clusters | Hierarchy, settings: Settings, by: Rows) -> PairMoments:
    """Return the moments of all pairs, each chip labelled by the cluster that `by` has it in; memory is a block's."""
    if settings.nearest < 1:  # which rows lie nearest is known only where all of them are
        X, by = X[:], by[:]
    other = None if by is X or isinstance(by, Shards) else by
    return reduce(add, over_shards(X, partial(_moments, clusters=clusters, nearest=settings.nearest, by=other)))


def soft_covariances(X: Embeddings, clusters: Clusters, settings: Settings, by: Embeddings) -> Covariances:
    """Return the covariances where a chip belongs to clusters by exp(-distance / temperature)."""
    rows = np.asarray(unit(X) if clusters.normalize else X, dtype=np.float64)
    apart = clusters.squared_distances(by)
    temperature = settings.softness * apart.min(axis=1).mean()
    if not temperature > 0:
        raise InputError("every chip lies in the centre of its cluster, so nothing can be shared; use softness=0")
    logits = -apart / temperature
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    used = shares.sum(axis=0) > 1e-12
    moments = SoftMoments(rows, shares[:, used])
    return Covariances(*moments.covariances(), moments.mean, (len(X) - float(used.sum()), len(X) - 1.0))


def nearest_rows(labels: NDArray[np.int64], distances: Array, share: float) -> NDArray[np.bool_]:
    """Mark in each cluster the share of rows that lie nearest to the centre, at least two where there are two."""
    if share == 1:
        return np.ones(len(labels), np.bool_)
    order = np.lexsort((distances, labels))
    starts = np.flatnonzero(np.r_[True, np.diff(labels[order]) > 0])
    sizes = np.diff(np.r_[starts, len(labels)])
    place = np.arange(len(labels)) - np.repeat(starts, sizes)
    counted = np.zeros(len(labels), np.bool_)
    counted[order] = place < np.repeat(np.maximum(np.ceil(share * sizes), 2), sizes)
    return counted


def _moments(
    X: Embeddings, begin: int, *, clusters: Clusters | Hierarchy, nearest: float, by: Embeddings | None
) -> PairMoments:
    labels, distances = clusters.assign(X if by is None else by)
    counted = nearest_rows(labels, distances, nearest)
    moments = PairMoments(normalize=clusters.normalize)
    for first in range(0, len(X), _BLOCK):
        rows = counted[first : first + _BLOCK]
        if rows.any():
            moments.update(X[first : first + _BLOCK][rows], labels[first : first + _BLOCK][rows])
    return moments
