"""Whether a target domain supports adaptation: do its images fall into clusters, or are they one cloud?"""

from __future__ import annotations

import numpy as np

from lookdown.adaptation.clustering import Clusters, find_clusters
from lookdown.adaptation.hierarchy import Hierarchy
from lookdown.adaptation.shards import Rows
from lookdown.adaptation.silhouettes import silhouette_of
from lookdown.metrics.inputs import Embeddings

__all__ = ["ENOUGH", "separation", "separation_of", "silhouette"]

ENOUGH = 0.18
_LADDER = (5, 8, 12, 16, 24, 48, 96)  # not fewer: any oblong cloud falls into two or three
_ROWS = 1024  # that are looked at
_ROWS_OF_GIVEN = 512  # where the clusters are given: judging them should take less time than finding them
_ROWS_A_CLUSTER = 10


def separation(X: Rows, *, normalize: bool, seed: int = 0) -> float:
    """Return how far clusters stand apart, at the number of clusters where they do so best: 0 for a cloud, at most 1.

    It needs no label, and cannot tell kinds of objects from other things that cluster, such as sensors.
    """
    rows = _looked_at(X, seed, _ROWS)
    counts = [count for count in _LADDER if count * _ROWS_A_CLUSTER <= len(rows)]
    return max((silhouette(rows, count, normalize=normalize, seed=seed, starts=1) for count in counts), default=0.0)


def separation_of(clusters: Clusters | Hierarchy, X: Rows, seed: int = 0) -> float:
    """Return how far these clusters stand apart."""
    rows = _looked_at(X, seed, _ROWS_OF_GIVEN)
    return silhouette_of(clusters.mapped(rows), clusters.cuts[0][clusters.assign(rows)[0]])


def silhouette(rows: Embeddings, clusters: int, *, normalize: bool, seed: int, starts: int) -> float:
    """Return the mean silhouette of K-means clusters: 1 where each is a point, 0 where they touch."""
    found = find_clusters(rows, clusters, normalize=normalize, seed=seed, starts=starts)
    return silhouette_of(found.mapped(rows), found.assign(rows)[0])


def _looked_at(X: Rows, seed: int, rows: int) -> Embeddings:
    """Return some rows, each once: copies of an image would pass for the tightest of clusters."""
    return np.asarray(np.unique(X[np.random.default_rng(seed).permutation(len(X))[:rows]], axis=0))
