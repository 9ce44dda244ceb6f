"""Exact moments against one matrix product, sampling and enumeration; scoring against faiss."""

from __future__ import annotations

import faiss
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lookdown.metrics import GaussianLikelihoodRatio, PairMoments, top_k
from sidebyside import QUICK, Row, compare, report

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

LARGE = 20_000 if QUICK else 1_000_000
GALLERY = 5_000 if QUICK else 100_000


def sampled_covariances(X: Array, y: Labels, pairs: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Estimate both covariances from `pairs` same and `pairs` different pairs, uniform over all pairs of each kind.

    The peer, made as quick as we know how: rows are grouped once, same pairs are a class drawn by its number of pairs
    and two distinct members, different pairs are drawn blindly and the same ones among them drawn again.
    """
    order = np.argsort(y, kind="stable")
    counts = np.bincount(y)
    starts = np.cumsum(counts) - counts
    weights = counts * (counts - 1.0)
    drawn = rng.choice(len(counts), size=pairs, p=weights / weights.sum())
    first = rng.integers(counts[drawn])
    second = (first + 1 + rng.integers(counts[drawn] - 1)) % counts[drawn]
    same = X[order[starts[drawn] + first]] - X[order[starts[drawn] + second]]
    i, j = rng.integers(len(X), size=(2, pairs))
    while (clash := np.flatnonzero(y[i] == y[j])).size:
        i[clash], j[clash] = rng.integers(len(X), size=(2, len(clash)))
    different = X[i] - X[j]
    return same.T @ same / pairs, different.T @ different / pairs


def enumerated_covariances(X: Array, y: Labels, rows: int = 64) -> tuple[Array, Array]:
    """Average over every pair, a block of rows against all later ones at a time."""
    d = X.shape[1]
    sums, counts = {True: np.zeros((d, d)), False: np.zeros((d, d))}, {True: 0, False: 0}
    for begin in range(0, len(X), rows):
        block = X[begin : begin + rows]
        later = np.arange(begin, len(X)) > np.arange(begin, begin + len(block))[:, None]
        same = y[begin : begin + rows, None] == y[begin:]
        for hypothesis in (True, False):
            i, j = np.nonzero(later & (same == hypothesis))
            differences = block[i] - X[begin + j]
            sums[hypothesis] += differences.T @ differences
            counts[hypothesis] += len(i)
    return sums[True] / counts[True], sums[False] / counts[False]


def large_moments(rng: np.random.Generator) -> Row:
    """A million embeddings of a thousand classes against the product that any covariance costs."""
    X, y = rng.normal(size=(LARGE, 64)), rng.integers(1000, size=LARGE)
    return compare(
        f"moments, {LARGE:,} x 64, 1,000 classes", lambda: PairMoments.of(X, y), "X.T @ X", lambda: X.T @ X, limit=4
    )


def paper_sized_moments(rng: np.random.Generator) -> list[Row]:
    """The paper's 2,558 images: all 3.3 million pairs exactly, against samples and against a loop."""
    y = rng.integers(20, size=2558)
    X = rng.normal(size=(20, 64))[y] + rng.normal(size=(2558, 64))
    exact = PairMoments.of(X, y).covariances()
    np.testing.assert_allclose(enumerated_covariances(X, y), exact, rtol=1e-9)
    np.testing.assert_allclose(sampled_covariances(X, y, 20_000, rng), exact, atol=0.25)

    def ours() -> object:
        return PairMoments.of(X, y).covariances()

    return [
        compare(
            "covariances over all pairs, 2,558 x 64",
            ours,
            "estimate from 20,000 + 20,000 sampled pairs",
            lambda: sampled_covariances(X, y, 20_000, rng),
            limit=1,
        ),
        compare(
            "covariances over all pairs, 2,558 x 64",
            ours,
            "enumeration of all pairs",
            lambda: enumerated_covariances(X, y),
            limit=0.01,
        ),
    ]


def scoring(rng: np.random.Generator) -> Row:
    """Exact top 50 for 1,000 queries; ours maps the raw embeddings too, faiss gets them mapped."""
    y = rng.integers(50, size=4000)
    centres = rng.normal(size=(50, 64))
    metric = GaussianLikelihoodRatio(shrinkage=0.1).fit(centres[y] + rng.normal(size=(4000, 64)), y)
    queries, gallery = (
        (centres[rng.integers(50, size=n)] + rng.normal(size=(n, 64))).astype(np.float32) for n in (1000, GALLERY)
    )
    mapped_queries, mapped_gallery = metric.transform(queries), metric.transform(gallery)
    index = faiss.IndexFlatL2(mapped_gallery.shape[1])
    index.add(mapped_gallery)
    ours, theirs = top_k(metric, queries, gallery, 50).indices, index.search(mapped_queries, 50)[1]
    overlap = np.mean([len(set(a) & set(b)) / 50 for a, b in zip(ours, theirs, strict=True)])
    assert overlap > 0.999, overlap
    return compare(
        f"top 50 of 1,000 x {GALLERY:,}, float32, rank {metric.rank_}",
        lambda: top_k(metric, queries, gallery, 50),
        "faiss IndexFlatL2",
        lambda: index.search(mapped_queries, 50),
        limit=1.1,
    )


def main() -> None:
    """Measure everything with one BLAS and one OpenMP thread."""
    faiss.omp_set_num_threads(1)
    rng = np.random.default_rng(0)
    with threadpool_limits(1):
        rows = [large_moments(rng), *paper_sized_moments(rng), scoring(rng)]
    report("The Gaussian metric", rows)


if __name__ == "__main__":
    main()
