"""Mirrored expectation-maximisation against scikit-learn's GaussianMixture on the same differences in both orders."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from lookdown.metrics import MirroredMixture, MixtureLikelihoodRatio
from lookdown.metrics.differences import draw_differences
from lookdown.metrics.expectation_maximisation import expectation_maximisation, start
from sidebyside import QUICK, Row, compare, report

Array = NDArray[np.float64]
ROUNDS = 10
PAIRS = 4_000 if QUICK else 40_000


def doubled(x: Array, mixture: MirroredMixture) -> GaussianMixture:
    """Fit scikit-learn's mixture from the same start, every mirrored pair being two of its components."""
    pairs = mixture.mirrored
    halves = np.r_[mixture.weights[~pairs], mixture.weights[pairs] / 2, mixture.weights[pairs] / 2]
    covariances = np.r_[mixture.covariances[~pairs], mixture.covariances[pairs], mixture.covariances[pairs]]
    peer = GaussianMixture(
        len(halves),
        covariance_type="diag" if mixture.is_diagonal else "full",
        weights_init=halves,
        means_init=np.r_[mixture.means[~pairs], mixture.means[pairs], -mixture.means[pairs]],
        precisions_init=1 / covariances if mixture.is_diagonal else np.linalg.inv(covariances),
        reg_covar=0,
        tol=0,
        max_iter=ROUNDS,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return peer.fit(np.r_[x, -x])


def fitting(x: Array, components: int, *, diagonal: bool) -> Row:
    """Same differences, same start, same number of rounds, no regularisation on either side, float64 on both."""
    first = start(x, components, np.random.default_rng(0), diagonal=diagonal)

    def ours() -> float:
        fit = expectation_maximisation(x, first, ridge=0, tol=0, max_iter=ROUNDS)
        assert len(fit.objectives) == ROUNDS
        return fit.objectives[-1] / len(x)

    theirs = doubled(x, first).lower_bound_
    assert abs(ours() - theirs) <= 1e-6 * abs(theirs), (ours(), theirs)
    kind = "diagonal" if diagonal else "full"
    return compare(
        f"{ROUNDS} rounds of EM, {len(x):,} x {x.shape[1]}, {components} components, {kind}",
        ours,
        "scikit-learn GaussianMixture, both orders",
        lambda: doubled(x, first),
        limit=0.5,
        turns=3,
    )


def scoring_memory(metric: MixtureLikelihoodRatio, X: Array) -> None:
    """Print what scoring takes beyond its answer, for galleries that grow."""
    print("| scores | answer, MB | beyond the answer, MB |\n|---|---|---|")
    for rows in (2_000, 8_000, 32_000):
        gallery = np.resize(X, (rows, X.shape[1]))
        tracemalloc.start()
        answer = metric.score(X[:1000], gallery)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"| 1,000 x {rows:,} | {answer.nbytes / 1e6:.0f} | {(peak - answer.nbytes) / 1e6:.1f} |")


def main() -> None:
    """Measure with one BLAS thread."""
    rng = np.random.default_rng(0)
    y = rng.integers(20, size=2558)
    X = 1.5 * rng.normal(size=(20, 64))[y] + rng.normal(size=(2558, 64)) * np.geomspace(0.3, 2, 64)
    x = draw_differences(X, y, same=False, pairs=PAIRS, weighting="pairs", seed=0)
    with threadpool_limits(1):
        scoring_memory(MixtureLikelihoodRatio(normalize=False, pairs=10_000).fit(X, y), X)
        print()
        rows = [fitting(x, 10, diagonal=False), fitting(x, 4, diagonal=False), fitting(x, 10, diagonal=True)]
    report("The mixture metric", rows)


if __name__ == "__main__":
    main()
