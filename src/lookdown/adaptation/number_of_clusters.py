"""How many clusters to look for where nobody has counted the kinds of objects."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookdown.adaptation.shards import Rows
from lookdown.adaptation.support import silhouette
from lookdown.progress import Progress, no_progress

__all__ = ["choose_clusters"]

_LADDER = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
_ROWS = 4096  # that the choice is made on
_CHIPS_A_CLUSTER = 10
_FEWEST = 12
_TIMES = 3


def choose_clusters(X: Rows, *, normalize: bool, seed: int = 0, progress: Progress = no_progress) -> int:
    """Return three times the number of clusters that stand apart best, at least 12 where there are rows enough.

    The silhouette finds the coarse groups, of which several kinds of objects share one. Clusters that hold two kinds
    teach the metric to overlook what tells them apart, while a kind in several clusters costs little: too many are
    better than too few.
    """
    rows = X[:] if len(X) <= _ROWS else X[_sample(len(X), seed)]
    most = max(2, len(rows) // _CHIPS_A_CLUSTER)
    ladder = [clusters for clusters in _LADDER if clusters <= most]
    found = {}
    for tried, clusters in enumerate(ladder, 1):
        found[clusters] = silhouette(rows, clusters, normalize=normalize, seed=seed, starts=2)
        progress(tried, len(ladder), "trials")
    best = max(found, key=lambda clusters: found[clusters]) if found else 2
    return min(max(_TIMES * best, _FEWEST), max(2, len(X) // _CHIPS_A_CLUSTER))


def _sample(size: int, seed: int) -> NDArray[np.intp]:
    return np.sort(np.random.default_rng(seed).choice(size, _ROWS, replace=False))
