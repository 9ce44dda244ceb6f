"""How far clusters stand apart: the mean silhouette, in little memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context

from lookdown.metrics.inputs import Embeddings

__all__ = ["silhouette_of"]

_MEGABYTES = 16  # of distances held at a time


def silhouette_of(points: Embeddings, labels: NDArray[np.int64]) -> float:
    """Return 1 where each cluster is a point, 0 where they touch, and -1 where there are none to compare."""
    from sklearn.metrics import silhouette_score  # heavy, and who searches a gallery never clusters

    if not 2 <= len(np.unique(labels)) < len(points):
        return -1.0
    with config_context(working_memory=_MEGABYTES, assume_finite=True):
        return float(silhouette_score(points, labels))
