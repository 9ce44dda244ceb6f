"""k-reciprocal re-ranking of the best hits (Zhong, Zheng, Cao and Li, CVPR 2017)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist, squareform

from lookdown.errors import InputError
from lookdown.gallery.store.snapshot import Rows
from lookdown.metrics.inputs import Embeddings, refuse_non_finite

__all__ = ["reciprocal_distances", "rerank"]

Distances = NDArray[np.float64]


def rerank(query: Embeddings, shortlist: Embeddings, *, k1: int = 20, k2: int = 6, original: float = 0.3) -> Rows:
    """Return the order of a shortlist by rising `reciprocal_distances`; ties keep their order.

    query: (r,).
    shortlist: (n, r), best first. Memory and time grow with n^2, so it has a few thousand rows.
    """
    return np.argsort(reciprocal_distances(query, shortlist, k1=k1, k2=k2, original=original), kind="stable")


def reciprocal_distances(
    query: Embeddings, shortlist: Embeddings, *, k1: int = 20, k2: int = 6, original: float = 0.3
) -> Distances:
    """Return `(1 - original) jaccard + original d` of the query to each row, both parts from 0 to 1.

    Two are k-reciprocal neighbours if each is among the k nearest of the other, and a row is described by those it has:
    R(p, k1), joined by R(q, k1 / 2) of each q in it that has two thirds of them in R(p, k1) already, with weight
    exp(-d), and averaged over the k2 nearest, the row itself being the first of them. `jaccard` compares descriptions.
    d is the squared L2 distance divided by the largest of its row, as in the authors' code: the weights would vanish
    for likelihood ratios, whose squared distances go into the hundreds.

    Equal vectors count as one, so copies of a chip get equal distances, and do not fill each other's neighbourhoods.
    """
    _check(query, shortlist, k1, k2, original)
    points, positions = _distinct(np.concatenate([query[None], shortlist]).astype(np.float64))
    squares = squareform(pdist(points, "sqeuclidean"), checks=False)
    distances = squares / np.maximum(squares.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    neighbours = _nearest(squares, max(k1 + 1, k2))
    described = _relation(neighbours[:, :k2]) @ _descriptions(distances, neighbours, k1)  # sums suffice: see _jaccard
    final = (1 - original) * _jaccard(described) + original * distances[0]
    return np.asarray(final[positions[1:]])


def _check(query: Embeddings, shortlist: Embeddings, k1: int, k2: int, original: float) -> None:
    if query.ndim != 1 or shortlist.ndim != 2 or shortlist.shape[1] != len(query):
        raise InputError(f"a query (r,) and a shortlist (n, r) are needed, got {query.shape} and {shortlist.shape}")
    refuse_non_finite(query[None], "the query")
    refuse_non_finite(shortlist, "the shortlist")
    if min(k1, k2) < 1:
        raise InputError(f"k1 and k2 must be at least 1, got {k1} and {k2}")
    if not 0 <= original <= 1:
        raise InputError(f"original is the share of the original distance, from 0 to 1; got {original}")


def _distinct(points: Distances) -> tuple[Distances, Rows]:
    """Return the distinct rows by first appearance, and the position of each row among them."""
    _, firsts, inverse = np.unique(points, axis=0, return_index=True, return_inverse=True)
    chosen = np.sort(firsts)
    return points[chosen], np.searchsorted(chosen, firsts[inverse.ravel()])


def _nearest(squares: Distances, count: int) -> Rows:
    """Return the `count` nearest of each row, itself first; equally near ones keep their order."""
    count = min(count, len(squares))
    away = squares.copy()
    np.fill_diagonal(away, -1)  # a row is its own nearest, even where a square underflows
    last = np.partition(away, count - 1, axis=1)[:, [count - 1]]
    nearer, level = away < last, away == last
    room = count - nearer.sum(axis=1, keepdims=True)
    columns = np.nonzero(nearer | (level & (level.cumsum(axis=1) <= room)))[1].reshape(-1, count)
    order = np.argsort(np.take_along_axis(away, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def _descriptions(distances: Distances, neighbours: Rows, k1: int) -> csr_array:
    """Return exp(-d) where a row has another among its extended k-reciprocal neighbours, else 0."""
    near, close = _reciprocal(neighbours[:, : k1 + 1]), _reciprocal(neighbours[:, : round(k1 / 2) + 1])
    common = ((near @ close.T) * near).tocoo()
    joined = 3 * common.data >= 2 * close.sum(axis=1)[common.col]
    donors = csr_array((common.data[joined], (common.row[joined], common.col[joined])), shape=common.shape)
    extended = near + donors @ close
    rows, columns = extended.nonzero()
    return csr_array((np.exp(-distances[rows, columns]), (rows, columns)), shape=extended.shape)


def _reciprocal(neighbours: Rows) -> csr_array:
    relation = _relation(neighbours)
    return (relation * relation.T).tocsr()


def _relation(neighbours: Rows) -> csr_array:
    """Return the matrix with a one where a column is among the neighbours of a row."""
    rows, count = neighbours.shape
    begins = np.arange(0, rows * count + 1, count)
    return csr_array((np.ones(rows * count, dtype=np.int64), neighbours.ravel(), begins), shape=(rows, rows))


def _jaccard(described: csr_array) -> Distances:
    """Return 1 - sum of minima / sum of maxima of the first row with each; a common factor does not matter."""
    sums = np.asarray(described.sum(axis=1))
    own = described[[0]].toarray()[0]
    support = np.flatnonzero(own)  # elsewhere a minimum with it is 0
    common = np.minimum(described[:, support].toarray(), own[support]).sum(axis=1)
    return np.asarray(1 - common / (sums[0] + sums - common))
