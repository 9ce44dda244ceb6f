"""Retrieval scores against scikit-learn's average precision and against sorting indices, query by query."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score
from threadpoolctl import threadpool_limits

from lookdown.evaluation import evaluate
from lookdown.metrics import GaussianLikelihoodRatio
from sidebyside import Row, compare, report

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
CLASSES = 20


def by_scikit_learn(scores: Array, query_labels: Labels, gallery_labels: Labels) -> list[float]:
    """Return the average precision of each query, and nothing else."""
    return [
        average_precision_score(gallery_labels == label, row) for label, row in zip(query_labels, scores, strict=True)
    ]


def by_sorted_indices(scores: Array, query_labels: Labels, gallery_labels: Labels, k: int = 50) -> list[Array]:
    """Return the same four scores as we do from the whole ranking of each query, ties in whatever order."""
    ranks = np.arange(1, scores.shape[1] + 1)
    rows = []
    for label, row in zip(query_labels, scores, strict=True):
        hits = gallery_labels[np.argsort(-row)] == label
        relevant, first = hits.sum(), hits[:k].sum()
        gains = (hits.cumsum() / ranks)[hits].sum()
        rows.append(np.array([gains / relevant, first / relevant, first / k, hits[0]]))
    return rows


def on_scores(rng: np.random.Generator, rows: int, *, limit: float) -> list[Row]:
    """The same scores for everyone; sorting indices neither minds ties nor checks anything."""
    query_labels, gallery_labels = rng.integers(CLASSES, size=100), rng.integers(CLASSES, size=rows)
    scores = rng.normal(size=(100, rows)) + (query_labels[:, None] == gallery_labels)
    found = evaluate(scores, None, query_labels, None, gallery_labels).queries
    np.testing.assert_allclose(found.average_precision, by_scikit_learn(scores, query_labels, gallery_labels))
    np.testing.assert_allclose(found.values, by_sorted_indices(scores, query_labels, gallery_labels))

    def ours() -> object:
        return evaluate(scores, None, query_labels, None, gallery_labels)

    what = f"mAP, R@50, P@50, hit@1 from scores, 100 x {rows:,}"
    return [
        compare(
            what,
            ours,
            "scikit-learn average_precision_score a query, mAP only",
            lambda: by_scikit_learn(scores, query_labels, gallery_labels),
            limit=0.5,
        ),
        compare(
            what,
            ours,
            "numpy argsort a query",
            lambda: by_sorted_indices(scores, query_labels, gallery_labels),
            limit=limit,
        ),
    ]


def whole_evaluation(rng: np.random.Generator) -> None:
    """Print time and memory of a metric on galleries of 100,000, for queries that grow in number."""
    centres = rng.normal(size=(CLASSES, 64))

    def chips(count: int) -> tuple[NDArray[np.float32], Labels]:
        labels = rng.integers(CLASSES, size=count)
        return (0.7 * centres[labels] + rng.normal(size=(count, 64))).astype(np.float32), labels

    metric = GaussianLikelihoodRatio(shrinkage=0.1).fit(*chips(4000))
    gallery, gallery_labels = chips(100_000)
    print("| queries x gallery, float32 | s | all scores, MB | peak memory, MB |\n|---|---|---|---|")
    for count in (250, 500, 1000):
        queries, labels = chips(count)
        begin = time.perf_counter()
        evaluate(metric, queries, labels, gallery, gallery_labels)
        seconds = time.perf_counter() - begin
        tracemalloc.start()
        evaluate(metric, queries, labels, gallery, gallery_labels)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"| {count:,} x 100,000 | {seconds:.1f} | {count * 0.4:.0f} | {peak / 1e6:.0f} |")


def main() -> None:
    """Measure with one BLAS thread."""
    rng = np.random.default_rng(0)
    with threadpool_limits(1):
        whole_evaluation(rng)
        print()
        rows = [*on_scores(rng, 1_000, limit=1.5), *on_scores(rng, 100_000, limit=1)]
    report("Retrieval scores", rows)


if __name__ == "__main__":
    main()
