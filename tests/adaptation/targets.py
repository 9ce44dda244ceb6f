"""Target domains with and without clusters, and what the formulas say of them, pair by pair."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from lookdown.metrics import Metric

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


def kinds(count: int = 5, each: int = 30, dim: int = 6, *, gap: float = 6.0, seed: int = 0) -> tuple[Array, Labels]:
    """Return shuffled chips of kinds that lie about `gap` times as far apart as they spread."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(count), each))
    spread = np.geomspace(2, 0.5, dim)
    return gap * rng.normal(size=(count, dim))[labels] + spread * rng.normal(size=(len(labels), dim)), labels


def blob(rows: int = 400, dim: int = 16, *, seed: int = 0) -> Array:
    """Return one cloud, in which there is nothing to find."""
    return np.random.default_rng(seed).normal(size=(rows, dim))


def on_sphere(X: Array) -> Array:
    return np.stack([row / np.sqrt(sum(value**2 for value in row)) for row in X])


def k_means(points: NDArray[Any], clusters: int, seed: int = 0) -> KMeans:
    with threadpool_limits(1):
        return KMeans(clusters, n_init=10, random_state=seed).fit(points)


def loop_covariances(X: Array, y: Labels, weighting: str = "pairs") -> tuple[Array, Array]:
    """Average (x - y)(x - y)' over all same and all different pairs, by pair, or by class and pair of classes."""
    sums: dict[tuple[int, int], Array] = {}
    pairs: dict[tuple[int, int], int] = {}
    for i, j in combinations(range(len(X)), 2):
        cell = min(y[i], y[j]), max(y[i], y[j])
        gap = X[i] - X[j]
        sums[cell] = sums.get(cell, 0) + np.outer(gap, gap)
        pairs[cell] = pairs.get(cell, 0) + 1
    found = []
    for same in (True, False):
        cells = [cell for cell in sums if (cell[0] == cell[1]) == same]
        if weighting == "pairs":
            found.append(sum(sums[cell] for cell in cells) / sum(pairs[cell] for cell in cells))
        else:
            found.append(sum(sums[cell] / pairs[cell] for cell in cells) / len(cells))
    return np.asarray(found[0]), np.asarray(found[1])


def ratio_matrix(same: Array, different: Array, shrinkage: tuple[float, float], *, clip: bool = True) -> Array:
    """Return S1^-1 - S0^-1 of shrunk covariances, without its negative part if `clip`."""
    sphere = np.eye(len(same)) / len(same)
    near, far = ((1 - a) * c + a * np.trace(c) * sphere for c, a in zip((same, different), shrinkage, strict=True))
    values, vectors = np.linalg.eigh(np.linalg.inv(near) - np.linalg.inv(far))
    return np.asarray((vectors * (values.clip(min=0) if clip else values)) @ vectors.T)


@cache
def digits() -> tuple[Array, Labels]:
    """Return handwritten digits in 30 dimensions."""
    X, y = load_digits(return_X_y=True)
    return PCA(30, random_state=0).fit_transform(X), y


def mean_average_precision(metric: Metric, X: Array, y: Labels) -> float:
    """Return the mAP in percent of the first 200 rows as queries for the others."""
    relevant = y[:200, None] == y[200:]
    order = np.argsort(-metric.score(X[:200], X[200:]), axis=1, kind="stable")
    hits = np.take_along_axis(relevant, order, axis=1)
    precision = hits.cumsum(axis=1) / np.arange(1, hits.shape[1] + 1)
    return float(100 * ((precision * hits).sum(axis=1) / hits.sum(axis=1)).mean())
