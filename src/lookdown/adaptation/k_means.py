"""K-means of unlabelled embeddings; of a very large set a sample is clustered, and every row is assigned."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from lookdown.adaptation.shards import Rows, over_shards
from lookdown.metrics.inputs import Embeddings, unit

__all__ = ["SAMPLE_ROWS", "STARTS", "Clusters", "all_alike", "find_clusters", "mapped", "mean_silhouette", "sample"]

Array = NDArray[np.float64]

SAMPLE_ROWS = 65_536  # that K-means is run on; a set of no more is clustered whole
STARTS = 10  # of K-means, of which the tightest is taken
_BLOCK_ROWS = 8192  # assigned at a time, fewer where there are many centres
_BLOCK_DISTANCES = 2**21  # held at a time
_SILHOUETTE_MEGABYTES = 16  # of distances held at a time


@dataclass(frozen=True, slots=True)
class Clusters:
    """Centres of rows that are normalized if `normalize`, taken as directions from `centre`, and mapped by `map`."""

    centres: Embeddings  # (k, r)
    normalize: bool
    map: Array | None = None  # (d, r): the space of an adapted metric
    centre: Array | None = None  # (d,): of unit rows

    @property
    def count(self) -> int:
        """The number of clusters."""
        return len(self.centres)

    @property
    def description(self) -> str:
        """The number of clusters, in words."""
        return f"{self.count} clusters"

    @property
    def cuts(self) -> NDArray[np.int64]:
        """The one cut, in which each cluster is a kind: see `WardTree`."""
        return np.arange(self.count)[None]

    def assign(self, X: Embeddings) -> tuple[NDArray[np.int64], Array]:
        """Return the nearest centre of each row, and the squared distance to it, block by block."""
        labels, distances = np.empty(len(X), np.int64), np.empty(len(X))
        block = max(1, min(_BLOCK_ROWS, _BLOCK_DISTANCES // len(self.centres)))
        for begin in range(0, len(X), block):
            rows = slice(begin, begin + block)
            apart = self.squared_distances(X[rows])
            labels[rows] = apart.argmin(axis=1)
            distances[rows] = apart.min(axis=1)
        return labels, distances

    def mapped(self, X: Embeddings) -> Embeddings:
        """Return rows in the space of the centres."""
        return mapped(X, self.normalize, self.map, self.centre)

    def squared_distances(self, X: Embeddings) -> Array:
        """Return the squared distances of rows to centres, (rows, centres)."""
        origin = self.centres.mean(axis=0)  # near the data, so that differences of squares keep their digits
        points, centres = self.mapped(X) - origin, self.centres - origin
        squares = np.einsum("ij,ij->i", centres, centres)
        own = np.einsum("ij,ij->i", points, points)
        return np.asarray(np.maximum(own[:, None] + squares - 2 * points @ centres.T, 0))


def find_clusters(
    X: Rows, clusters: int, *, normalize: bool, map: Array | None = None, seed: int = 0, starts: int = STARTS
) -> Clusters:
    """Cluster rows by K-means; the same seed gives the same clusters."""
    from sklearn.cluster import KMeans  # heavy, and a search never clusters

    whole = X[:] if len(X) <= SAMPLE_ROWS else None
    points = _mapped_sample(X, normalize, map, seed) if whole is None else mapped(whole, normalize, map)
    # One thread: several would add numbers in the order they finish, and the last bits would differ from run to run.
    with _thread_pools().limit(limits=1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # there may be fewer distinct rows than clusters
        fitted = KMeans(clusters, n_init=starts, random_state=seed, copy_x=points is whole).fit(points)
    return Clusters(fitted.cluster_centers_[np.unique(fitted.labels_)], normalize, map)


def mean_silhouette(points: Embeddings, labels: NDArray[np.int64]) -> float:
    """Return 1 where each cluster is a point, 0 where clusters touch, and -1 where there are none to compare."""
    from sklearn.metrics import silhouette_score  # heavy, and a search never clusters

    if not 2 <= len(np.unique(labels)) < len(points):
        return -1.0
    with config_context(working_memory=_SILHOUETTE_MEGABYTES, assume_finite=True):
        return float(silhouette_score(points, labels))


def all_alike(X: Rows, *, normalize: bool) -> bool:
    """Whether rows differ by no more than rounding, after they are normalized if `normalize`."""
    first = mapped(X[:1], normalize, None)
    rounding = 16 * np.finfo(X.dtype).eps * np.abs(first).max()
    return all(over_shards(X, partial(_all_near, first=first, rounding=rounding, normalize=normalize)))


def mapped(X: Embeddings, normalize: bool, map: Array | None, centre: Array | None = None) -> Embeddings:
    """Return rows in the space that they are clustered in; see `Clusters`."""
    points = unit(X) if normalize else X
    if centre is not None:
        points = _directions(points - centre.astype(points.dtype, copy=False))
    return points if map is None else points @ map.astype(points.dtype, copy=False)


def sample(size: int, rows: int, seed: int) -> NDArray[np.intp]:
    """Draw so many of `size` rows, in their order."""
    return np.sort(np.random.default_rng(seed).choice(size, rows, replace=False))


def _all_near(X: Embeddings, begin: int, *, first: Embeddings, rounding: float, normalize: bool) -> bool:
    blocks = (X[begin : begin + _BLOCK_ROWS] for begin in range(0, len(X), _BLOCK_ROWS))
    return all(np.abs(mapped(rows, normalize, None) - first).max() <= rounding for rows in blocks)


def _directions(points: Embeddings) -> Embeddings:
    """Return points on the unit sphere; the origin has no direction and stays."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(np.divide(points, lengths, out=np.zeros_like(points), where=lengths > 0))


@cache
def _thread_pools() -> ThreadpoolController:
    """Find the libraries once: it takes milliseconds, and they are all loaded by now."""
    return ThreadpoolController()


def _mapped_sample(X: Rows, normalize: bool, map: Array | None, seed: int) -> Embeddings:
    """Return a sample of rows, mapped block by block, since mapping makes several copies."""
    chosen = sample(len(X), SAMPLE_ROWS, seed)
    blocks = (chosen[begin : begin + _BLOCK_ROWS] for begin in range(0, SAMPLE_ROWS, _BLOCK_ROWS))
    return np.concatenate([mapped(X[rows], normalize, map) for rows in blocks])
