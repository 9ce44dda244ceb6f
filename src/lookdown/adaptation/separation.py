"""How far clusters of a target domain stand apart: whether adaptation is supported, and by how many clusters."""

from __future__ import annotations

import numpy as np

from lookdown.adaptation.k_means import Clusters, find_clusters, mean_silhouette, sample
from lookdown.adaptation.shards import Rows
from lookdown.adaptation.ward_tree import WardTree
from lookdown.metrics.inputs import Embeddings
from lookdown.progress import Progress, no_progress

__all__ = ["ENOUGH", "choose_clusters", "separation", "separation_of", "silhouette"]

ENOUGH = 0.12  # one round cloud of a thousand images has no more in eight dimensions, and 0.01 in sixty-four
_CHIPS_PER_CLUSTER = 10
_COUNTS = (5, 8, 12, 16, 24, 48, 96)  # not fewer: any oblong cloud falls into two or three
_ROWS = 1024  # that are looked at
_ROWS_OF_CLUSTERS = 512  # where clusters are at hand: judging them should take less time than finding them
_CHOICES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
_CHOICE_ROWS = 4096  # that a number of clusters is chosen on
_FEWEST_CLUSTERS = 12
_CLUSTERS_PER_GROUP = 3


def separation(X: Rows, *, normalize: bool, seed: int = 0) -> float:
    """Return how far clusters stand apart, at the number of clusters where they do so best: 0 for a cloud, at most 1.

    It needs no label, and cannot tell kinds of objects from other things that cluster, such as sensors.
    """
    rows = _distinct_sample(X, seed, _ROWS)
    counts = [count for count in _COUNTS if count * _CHIPS_PER_CLUSTER <= len(rows)]
    return max((silhouette(rows, count, normalize=normalize, seed=seed, starts=1) for count in counts), default=0.0)


def separation_of(clusters: Clusters | WardTree, X: Rows, seed: int = 0) -> float:
    """Return how far these clusters stand apart."""
    rows = _distinct_sample(X, seed, _ROWS_OF_CLUSTERS)
    return mean_silhouette(clusters.mapped(rows), clusters.cuts[0][clusters.assign(rows)[0]])


def silhouette(rows: Embeddings, clusters: int, *, normalize: bool, seed: int, starts: int) -> float:
    """Return the mean silhouette of K-means clusters: 1 where each is a point, 0 where they touch."""
    partition = find_clusters(rows, clusters, normalize=normalize, seed=seed, starts=starts)
    return mean_silhouette(partition.mapped(rows), partition.assign(rows)[0])


def choose_clusters(X: Rows, *, normalize: bool, seed: int = 0, progress: Progress = no_progress) -> int:
    """Return three times the number of clusters that stand apart best, at least 12 where there are rows enough.

    The silhouette finds coarse groups, each of several kinds of objects. Clusters that hold two kinds teach the metric
    to overlook what tells them apart, while a kind in several clusters costs little: too many are better than too few.
    """
    rows = X[:] if len(X) <= _CHOICE_ROWS else X[sample(len(X), _CHOICE_ROWS, seed)]
    choices = [clusters for clusters in _CHOICES if clusters <= max(2, len(rows) // _CHIPS_PER_CLUSTER)]
    silhouettes = {}
    for done, clusters in enumerate(choices, 1):
        silhouettes[clusters] = silhouette(rows, clusters, normalize=normalize, seed=seed, starts=2)
        progress(done, len(choices), "numbers of clusters")
    best = max(silhouettes, key=lambda clusters: silhouettes[clusters])
    return min(max(_CLUSTERS_PER_GROUP * best, _FEWEST_CLUSTERS), max(2, len(X) // _CHIPS_PER_CLUSTER))


def _distinct_sample(X: Rows, seed: int, rows: int) -> Embeddings:
    """Return some rows, each once: copies of an image would pass for the tightest of clusters."""
    return np.asarray(np.unique(X[np.random.default_rng(seed).permutation(len(X))[:rows]], axis=0))
