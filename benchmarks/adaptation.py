"""Adaptation against its K-means or tree alone; all pairs against samples of them (Table VIII); a million images."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from lookdown.adaptation import adapt
from lookdown.adaptation.k_means import STARTS
from lookdown.evaluation import evaluate
from lookdown.lab.synthetic.gaussian_world import GaussianWorld
from lookdown.metrics import GaussianLikelihoodRatio, PairMoments
from metric import sampled_covariances
from sidebyside import QUICK, Row, compare, peak_memory, report

Array = NDArray[np.float64]

IMAGES = 2558  # of the paper's target domain
PAPER = {20_000: 3.9, 30_000: 5.3, 40_000: 6.0}  # Table VIII, s: differences of so many pairs of each kind, and update
LARGE = (5_000, 20_000) if QUICK else (250_000, 1_000_000)
MEMORY = 2.0  # peak growth of the process over the size of the data, the data included, below
DRAWS = 2 if QUICK else 10


def against_k_means(kinds: str, gap: float) -> Row:
    """Algorithm 3 end to end: K-means, whether its clusters stand apart, moments of all pairs, the metric."""
    world, rng = GaussianWorld.random(64, gap=gap), np.random.default_rng(0)
    source = GaussianLikelihoodRatio(normalize=False).fit(*world.chips(60, 10, rng))
    X = rng.permutation(world.chips(8, 320, rng)[0])[:IMAGES]

    def theirs() -> KMeans:
        return KMeans(8, n_init=STARTS, random_state=0).fit(X)

    metric = adapt(source, X, clusters=8, method="cplfpa").metric
    assert isinstance(metric, GaussianLikelihoodRatio)
    expected = PairMoments.of(X, theirs().labels_).same_covariance
    np.testing.assert_allclose(metric.same_covariance_, expected, rtol=1e-6, atol=1e-9)
    return compare(
        f"adapt, {IMAGES:,} x 64, 8 clusters, all pairs, kinds {kinds}",
        lambda: adapt(source, X, clusters=8, method="cplfpa"),
        f"scikit-learn KMeans alone, {STARTS} starts",
        theirs,
        limit=1.5,
        turns=15,
    )


def against_tree() -> Row:
    """The default end to end: whether images fall into clusters, the tree and its cuts, moments, the metric."""
    world, rng = GaussianWorld.random(64, gap=2.0), np.random.default_rng(0)
    source = GaussianLikelihoodRatio().fit(*world.chips(60, 10, rng))
    X = rng.permutation(world.chips(8, 320, rng)[0])[:IMAGES]
    assert adapt(source, X).helped
    return compare(
        f"adapt as it comes, {IMAGES:,} x 64",
        lambda: adapt(source, X),
        "scipy's linkage by Ward's rule alone",
        lambda: linkage(X, "ward"),
        limit=5.0,
        turns=5,
    )


def table_viii() -> None:
    """Print what estimating the metric takes and is worth, from samples of pairs and from all of them."""
    rng = np.random.default_rng(0)
    X, y = GaussianWorld.random(64, gap=0.35).chips(9, 400, rng)
    order = rng.permutation(len(X))
    X, y = X[order], y[order]
    chips, labels, queries, gallery = X[:IMAGES], y[:IMAGES], slice(IMAGES, IMAGES + 200), slice(IMAGES + 200, None)

    def fitted(covariances: tuple[Array, Array]) -> GaussianLikelihoodRatio:
        metric = GaussianLikelihoodRatio(normalize=False)
        return metric.fit_covariances(*covariances, chips.mean(axis=0), free=(IMAGES - 9, IMAGES - 1))

    def sampled(pairs: int) -> GaussianLikelihoodRatio:
        return fitted(sampled_covariances(chips, labels, pairs, rng))

    def line(name: str, estimate: Callable[[], GaussianLikelihoodRatio], paper: str) -> None:
        seconds, scores = [], []
        for _ in range(DRAWS):
            begin = time.perf_counter()
            metric = estimate()
            seconds.append(time.perf_counter() - begin)
            scores.append(100 * evaluate(metric, X[queries], y[queries], X[gallery], y[gallery]).mean_average_precision)
        spread = f"{statistics.mean(scores):.2f} | {min(scores):.2f} to {max(scores):.2f}"
        print(f"| {name} | {statistics.median(seconds):.4f} | {spread} | {paper} |")

    print(f"Table VIII: the metric of {IMAGES:,} x 64, 9 classes, once they have labels; {DRAWS} draws\n")
    print("| pairs of each kind | s | mAP | lowest to highest | paper, s |\n|---|---|---|---|---|")
    for pairs, paper in PAPER.items():
        line(f"{pairs:,} sampled", partial(sampled, pairs), f"{paper}")
    moments = PairMoments.of(chips, labels)
    every = f"all: {moments.same_pairs:,} same, {moments.different_pairs:,} different"
    line(every, lambda: fitted(PairMoments.of(chips, labels).covariances()), "")
    print()


def measure_large(rows: int) -> None:
    """Adapt to a large target in this process, and print seconds and by how much its peak memory grew, in bytes."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(100, 64)).astype(np.float32)
    X, y = GaussianWorld.random(64).chips(60, 10, rng)
    source = GaussianLikelihoodRatio().fit(X, y)
    adapt(source, X, clusters=8)  # what libraries take once is not the data's fault
    before = peak_memory()
    large = np.empty((rows, 64), dtype=np.float32)
    for begin in range(0, rows, 50_000):
        block = large[begin : begin + 50_000]
        rng.standard_normal(out=block, dtype=np.float32)
        for centre, members in zip(centres, np.array_split(rng.permutation(len(block)), 100), strict=True):
            block[members] += centre
    start = time.perf_counter()
    adaptation = adapt(source, large, clusters=100, method="cplfpa")
    seconds = time.perf_counter() - start
    assert adaptation.clusters == 100
    print(json.dumps({"seconds": seconds, "growth": peak_memory() - before, "data": large.nbytes}))


def large_targets() -> Row:
    """Print time and memory against the number of rows, each in a process of its own; the largest has a target."""
    print("| rows x 64, float32, K = 100 | s | data, MB | peak growth with the data, MB | over the data |")
    print("|---|---|---|---|---|")
    alone = os.environ | {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    for rows in LARGE:
        command = [sys.executable, __file__, "--rows", str(rows)]
        figures = json.loads(subprocess.run(command, env=alone, check=True, capture_output=True, text=True).stdout)
        grown, data = figures["growth"] / 1e6, figures["data"] / 1e6
        print(f"| {rows:,} | {figures['seconds']:.1f} | {data:.0f} | {grown:.0f} | {grown / data:.2f} |")
    print()
    what = f"memory of adapting to {LARGE[-1]:,} x 64, with the data"
    return Row.of(what, "the data", grown, data, limit=MEMORY, unit="MB")


def main() -> None:
    """Measure with one thread."""
    memory = large_targets()  # first: on Linux a process starts with the peak of the one that started it
    with threadpool_limits(1):
        table_viii()
        rows = [memory, against_k_means("that overlap", 0.5), against_k_means("far apart", 2.0), against_tree()]
    report("Adaptation", rows)


if __name__ == "__main__":
    if "--rows" in sys.argv:
        measure_large(int(sys.argv[-1]))
    else:
        main()
