"""Retrieval scores against torchmetrics, pytorch-metric-learning, scikit-learn and sorting indices; their memory."""

from __future__ import annotations

import time
import tracemalloc

import faiss
import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from sklearn.metrics import average_precision_score
from threadpoolctl import threadpool_limits

from lookdown.evaluation import evaluate
from lookdown.evaluation.retrieval import _BLOCK_SCORES
from lookdown.metrics import Euclidean, GaussianLikelihoodRatio
from lookdown.networks import backbones  # noqa: F401  # before torchmetrics, which imports torchvision
from sidebyside import QUICK, Row, compare, report

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
CLASSES, DIMENSIONS = 20, 64
PEERS = (50, 1_000) if QUICK else (500, 10_000)  # queries x gallery
LARGE = (500, 5_000) if QUICK else (5_000, 100_000)


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
    queries = evaluate(scores, None, query_labels, None, gallery_labels).queries
    np.testing.assert_allclose(queries.average_precision, by_scikit_learn(scores, query_labels, gallery_labels))
    np.testing.assert_allclose(queries.values, by_sorted_indices(scores, query_labels, gallery_labels))

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


def chips(rng: np.random.Generator, centres: Array, count: int) -> tuple[NDArray[np.float32], Labels]:
    """Return embeddings of classes that overlap, and labels."""
    labels = rng.integers(len(centres), size=count)
    return (0.7 * centres[labels] + rng.normal(size=(count, DIMENSIONS))).astype(np.float32), labels


def on_embeddings(rng: np.random.Generator) -> list[Row]:
    """The same embeddings for everyone, at the size that the peers can still do.

    torchmetrics takes scores, flat, and counts a relevant row only where its score is above zero, so it gets
    1 / (1 + d) of torch's own distances. pytorch-metric-learning finds neighbours by faiss, here all of them.
    """
    from torchmetrics.retrieval import RetrievalMAP

    centres = rng.normal(size=(CLASSES, DIMENSIONS))
    (queries, labels), (gallery, gallery_labels) = chips(rng, centres, PEERS[0]), chips(rng, centres, PEERS[1])
    metric = Euclidean().fit(gallery)
    x, y, others, names = (torch.from_numpy(part) for part in (queries, labels, gallery, gallery_labels))

    def ours() -> float:
        return evaluate(metric, queries, labels, gallery, gallery_labels).mean_average_precision

    def by_torchmetrics() -> float:
        metric = RetrievalMAP()
        scores, number = 1 / (1 + torch.cdist(x, others)), torch.arange(len(x)).repeat_interleave(len(others))
        metric.update(scores.flatten(), (y[:, None] == names).flatten(), number)
        return float(metric.compute())

    def by_calculator() -> float:
        calculator = AccuracyCalculator(include=("mean_average_precision",), k=len(others), device=torch.device("cpu"))
        return float(calculator.get_accuracy(x, y, others, names, ref_includes_query=False)["mean_average_precision"])

    peers = {
        "torchmetrics RetrievalMAP": by_torchmetrics,
        "pytorch-metric-learning AccuracyCalculator, mAP only": by_calculator,
    }
    for peer in peers.values():
        np.testing.assert_allclose(peer(), ours(), rtol=1e-5)
    what = f"mAP, R@50, P@50, hit@1 from embeddings, {PEERS[0]:,} x {PEERS[1]:,}"
    return [compare(what, ours, name, peer, limit=1 / 5) for name, peer in peers.items()]


def memory(rng: np.random.Generator) -> list[Row]:
    """What a large evaluation takes beyond the embeddings that it is given.

    The metric maps both sides, which holds them twice for a moment; then there is one block of scores and what is
    worked out from it, however many queries there are.
    """
    centres = rng.normal(size=(CLASSES, DIMENSIONS))
    metric = GaussianLikelihoodRatio(shrinkage=0.1).fit(*chips(rng, centres, 4000))
    gallery, gallery_labels = chips(rng, centres, LARGE[1])
    print("| queries x gallery, float32 | s | all scores, MB | peak memory, MB |\n|---|---|---|---|")
    peaks = []
    for count in (LARGE[0] // 10, LARGE[0]):
        queries, labels = chips(rng, centres, count)
        begin = time.perf_counter()
        evaluate(metric, queries, labels, gallery, gallery_labels)
        seconds = time.perf_counter() - begin
        tracemalloc.start()
        evaluate(metric, queries, labels, gallery, gallery_labels)
        peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
        tracemalloc.stop()
        size, scores = f"{count:,} x {len(gallery):,}", count * len(gallery) * 4e-6
        print(f"| {size} | {seconds:.1f} | {scores:,.0f} | {peaks[-1]:.0f} |")
    print()
    inputs, block = (queries.nbytes + gallery.nbytes) / 1e6, _BLOCK_SCORES * 8e-6
    few, many = peaks
    what = f"memory beyond the embeddings, {size}"
    limit = f"the embeddings mapped, {2 * inputs:.0f} MB, and a block of {_BLOCK_SCORES:,} doubles"
    return [
        Row.of(what, limit, many, 2 * inputs + block, limit=1, unit="MB"),
        Row.of(what, "a tenth of the queries", many, few, limit=1.1, unit="MB"),
    ]


def main() -> None:
    """Measure with one thread."""
    rng = np.random.default_rng(0)
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    with threadpool_limits(1):
        rows = [*memory(rng), *on_embeddings(rng), *on_scores(rng, 1_000, limit=1.5)]
        rows += on_scores(rng, LARGE[1], limit=1)
    report("Retrieval scores", rows)


if __name__ == "__main__":
    main()
