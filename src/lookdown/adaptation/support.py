"""Whether a target domain supports adaptation: do its images fall into clusters, or are they one cloud?"""

from __future__ import annotations

import numpy as np
from sklearn import config_context

from lookdown.adaptation.clustering import Clusters, find_clusters
from lookdown.adaptation.shards import Rows
from lookdown.metrics.inputs import Embeddings

__all__ = ["ENOUGH", "separation", "separation_of", "silhouette"]

ENOUGH = 0.18
_LADDER = (5, 8, 12, 16, 24, 48, 96)  # not fewer: any oblong cloud falls into two or three
_ROWS = 1024  # that are looked at
_ROWS_OF_GIVEN = 512  # where the clusters are given: judging them should take less time than finding them
_ROWS_A_CLUSTER = 10
_MEGABYTES = 16  # of distances held at a time


def separation(X: Rows, *, normalize: bool, seed: int = 0) -> float:
    """Return how far clusters stand apart, at the number of clusters where they do so best: 0 for a cloud, at most 1.

    It needs no label, and cannot tell kinds of objects from other things that cluster, such as sensors.
    """
    rows = _looked_at(X, seed, _ROWS)
    counts = [count for count in _LADDER if count * _ROWS_A_CLUSTER <= len(rows)]
    return max((silhouette(rows, count, normalize=normalize, seed=seed, starts=1) for count in counts), default=0.0)


def separation_of(clusters: Clusters, X: Rows, seed: int = 0) -> float:
    """Return how far these clusters stand apart."""
    return _mean_silhouette(clusters, _looked_at(X, seed, _ROWS_OF_GIVEN))


def silhouette(rows: Embeddings, clusters: int, *, normalize: bool, seed: int, starts: int) -> float:
    """Return the mean silhouette of K-means clusters: 1 where each is a point, 0 where they touch."""
    return _mean_silhouette(find_clusters(rows, clusters, normalize=normalize, seed=seed, starts=starts), rows)


def _mean_silhouette(clusters: Clusters, rows: Embeddings) -> float:
    from sklearn.metrics import silhouette_score  # heavy, and who searches a gallery never clusters

    labels = clusters.assign(rows)[0]
    if not 2 <= len(np.unique(labels)) < len(rows):
        return -1.0
    with config_context(working_memory=_MEGABYTES, assume_finite=True):
        return float(silhouette_score(clusters.mapped(rows), labels))


def _looked_at(X: Rows, seed: int, rows: int) -> Embeddings:
    """Return some rows, each once: copies of an image would pass for the tightest of clusters."""
    return np.asarray(np.unique(X[np.random.default_rng(seed).permutation(len(X))[:rows]], axis=0))
