"""K-means of unlabelled embeddings; of a very large set a sample is clustered, and every row is assigned."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from lookdown.adaptation.shards import Rows, over_shards
from lookdown.metrics.inputs import Embeddings, unit

__all__ = ["SAMPLE", "STARTS", "Clusters", "all_alike", "find_clusters", "mapped"]

Array = NDArray[np.float64]

SAMPLE = 65_536  # rows that K-means is run on; a set of no more is clustered whole
_BLOCK = 8192  # rows assigned at a time, fewer where there are many centres
_DISTANCES = 2**21  # held at a time
STARTS = 10  # of K-means, of which the tightest is taken


@dataclass(frozen=True, slots=True)
class Clusters:
    """Centres, for rows that are put on the unit sphere first if `normalize`, seen from `centre`, mapped by `map`."""

    centres: Embeddings  # (k, r)
    normalize: bool
    map: Array | None = None  # (d, r): the space of an adapted metric
    centre: Array | None = None  # (d,): of unit rows; directions from it are compared instead

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.centres)

    @property
    def told(self) -> str:
        """The number of clusters, for a reader."""
        return f"{self.count} clusters"

    @property
    def cuts(self) -> NDArray[np.int64]:
        """The one way in which they are the kinds: see `Hierarchy`."""
        return np.arange(self.count)[None]

    def assign(self, X: Embeddings) -> tuple[NDArray[np.int64], Array]:
        """Return the nearest centre of each row, and the squared distance to it; memory is that of a block."""
        labels, distances = np.empty(len(X), np.int64), np.empty(len(X))
        block = max(1, min(_BLOCK, _DISTANCES // len(self.centres)))
        for begin in range(0, len(X), block):
            rows = slice(begin, begin + block)
            apart = self.squared_distances(X[rows])
            labels[rows] = apart.argmin(axis=1)
            distances[rows] = apart.min(axis=1)
        return labels, distances

    def mapped(self, X: Embeddings) -> Embeddings:
        """Return rows as they were clustered."""
        return mapped(X, self.normalize, self.map, self.centre)

    def squared_distances(self, X: Embeddings) -> Array:
        """Return (rows, centres)."""
        origin = self.centres.mean(axis=0)  # near the data: far from it, squares would drown what they differ by
        points, centres = self.mapped(X) - origin, self.centres - origin
        squares = np.einsum("ij,ij->i", centres, centres)
        own = np.einsum("ij,ij->i", points, points)
        return np.asarray(np.maximum(own[:, None] + squares - 2 * points @ centres.T, 0))


def find_clusters(
    X: Rows, clusters: int, *, normalize: bool, map: Array | None = None, seed: int = 0, starts: int = STARTS
) -> Clusters:
    """Cluster rows by K-means; the same seed gives the same clusters."""
    from sklearn.cluster import KMeans  # heavy, and who searches a gallery never clusters

    whole = X[:] if len(X) <= SAMPLE else None
    points = _mapped_sample(X, normalize, map, seed) if whole is None else mapped(whole, normalize, map)
    # One thread: with several, sums are taken in whichever order they finish, and the last bits differ from run to run.
    with _threads().limit(limits=1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # there may be fewer distinct rows than clusters
        found = KMeans(clusters, n_init=starts, random_state=seed, copy_x=points is whole).fit(points)
    return Clusters(found.cluster_centers_[np.unique(found.labels_)], normalize, map)


def all_alike(X: Rows, *, normalize: bool) -> bool:
    """Whether rows differ by no more than rounding, on the unit sphere if `normalize`: such clusters mean nothing."""
    first = mapped(X[:1], normalize, None)
    rounding = 16 * np.finfo(X.dtype).eps * np.abs(first).max()
    return all(over_shards(X, partial(_all_near, first=first, rounding=rounding, normalize=normalize)))


def _all_near(X: Embeddings, begin: int, *, first: Embeddings, rounding: float, normalize: bool) -> bool:
    blocks = (X[begin : begin + _BLOCK] for begin in range(0, len(X), _BLOCK))
    return all(np.abs(mapped(rows, normalize, None) - first).max() <= rounding for rows in blocks)


def mapped(X: Embeddings, normalize: bool, map: Array | None, centre: Array | None = None) -> Embeddings:
    """Return rows as they are clustered."""
    points = unit(X) if normalize else X
    if centre is not None:
        points = _directions(points - centre.astype(points.dtype, copy=False))
    return points if map is None else points @ map.astype(points.dtype, copy=False)


def _directions(points: Embeddings) -> Embeddings:
    """Return points on the unit sphere; one that lies in the centre itself has no direction and stays there."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(np.divide(points, lengths, out=np.zeros_like(points), where=lengths > 0))


@cache
def _threads() -> ThreadpoolController:
    """Return what limits threads; to find the libraries takes milliseconds, and they are all loaded by now."""
    return ThreadpoolController()


def _mapped_sample(X: Rows, normalize: bool, map: Array | None, seed: int) -> Embeddings:
    """Return a sample of rows as they are clustered, mapped in blocks: mapping makes several copies."""
    chosen = np.sort(np.random.default_rng(seed).choice(len(X), SAMPLE, replace=False))
    blocks = (chosen[begin : begin + _BLOCK] for begin in range(0, SAMPLE, _BLOCK))
    return np.concatenate([mapped(X[rows], normalize, map) for rows in blocks])
