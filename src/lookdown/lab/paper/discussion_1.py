"""Discussion 1 of the paper: at a given false-alarm rate, the likelihood ratio detects the most.

Run `python -m lookdown.lab.paper.discussion_1`: it prints the table in docs/metric.md. In a world of exact Gaussians
(16 dimensions) each metric is fitted on N chips and gets, for each rate, the threshold that exactly this share of a
million fresh different pairs reaches; counted is the share of a million fresh same pairs that reach it too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from lookdown.lab.synthetic.gaussian_world import GaussianWorld
from lookdown.metrics import Cosine, Euclidean, GaussianLikelihoodRatio

__all__ = ["RATES", "detection_rates", "run"]

RATES = (1e-1, 1e-2, 1e-3)
CHIPS_PER_CLASS = 5
NAMES: dict[str, Literal["clip", "keep"]] = {"likelihood ratio": "keep", "likelihood ratio, clipped": "clip"}

Array = NDArray[np.float64]
PairScorer = Callable[[Array, Array], NDArray[Any]]


def run(world: GaussianWorld, sizes: tuple[int, ...], *, pairs: int, seeds: int) -> dict[str, Array]:
    """Return the detection rates of each contestant at `RATES`, averaged over training sets."""
    same, different = (world.pairs(pairs, np.random.default_rng([99, s]), same=bool(s)) for s in (1, 0))
    rows = {
        "cosine": detection_rates(Cosine().fit(same[0]).score_pairs, same, different),
        "Euclidean": detection_rates(Euclidean().fit(same[0]).score_pairs, same, different),
    }
    for chips in sizes:
        training = [
            world.chips(chips // CHIPS_PER_CLASS, CHIPS_PER_CLASS, np.random.default_rng([chips, seed]))
            for seed in range(seeds)
        ]
        for name, indefinite in NAMES.items():
            metrics = [
                GaussianLikelihoodRatio(indefinite=indefinite, normalize=False).fit(*sample) for sample in training
            ]
            rates = [detection_rates(metric.score_pairs, same, different) for metric in metrics]
            rows[f"{name}, {chips:,} chips"] = np.mean(rates, axis=0)
    rows["likelihood ratio, true parameters"] = detection_rates(_true_ratio(world), same, different)
    return rows


def detection_rates(score: PairScorer, same: tuple[Array, Array], different: tuple[Array, Array]) -> Array:
    """Return the share of same pairs above the threshold of each rate."""
    thresholds = np.quantile(score(*different), 1 - np.array(RATES))
    return np.asarray((score(*same)[:, None] >= thresholds).mean(axis=0))


def _true_ratio(world: GaussianWorld) -> PairScorer:
    same, different = (multivariate_normal(cov=c) for c in (world.same_covariance, world.different_covariance))
    return lambda first, second: np.asarray(same.logpdf(first - second) - different.logpdf(first - second))


def main() -> None:
    """Print the table."""
    world = GaussianWorld.random(16, gap=1.0)
    rows = run(world, (50, 100, 500, 5_000, 50_000), pairs=1_000_000, seeds=5)
    print("| metric | " + " | ".join(f"detection at {rate:g}" for rate in RATES) + " |")
    print("|---|" + "---|" * len(RATES))
    for name, rates in rows.items():
        print(f"| {name} | " + " | ".join(f"{rate:.4f}" for rate in rates) + " |")


if __name__ == "__main__":
    main()
