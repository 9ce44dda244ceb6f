"""Theorem 1 of the paper: how good is a mixture's score as weighted Mahalanobis distances plus a constant (Eq. C-3)?

Run `python -m lookdown.lab.paper.theorem_1`: it prints the table in docs/mixture.md. Twenty classes with means drawn
wide apart in 16 dimensions; mixtures of growing size for the different pairs; errors over 20,000 random held-out pairs.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr

from lookdown.lab.synthetic.gaussian_world import GaussianWorld
from lookdown.metrics import MixtureLikelihoodRatio
from lookdown.metrics.mixture import MahalanobisApproximation

__all__ = ["run"]


def run(components: tuple[int, ...], *, chips_per_class: int, pairs: int) -> dict[int, MahalanobisApproximation]:
    """Return the approximation and its errors for each number of components."""
    rng = np.random.default_rng(0)
    X, y = GaussianWorld.random(16, gap=2.0).chips(20, 2 * chips_per_class, rng)
    train = np.arange(len(y)) % 2 == 0  # the same classes on both sides, other chips
    held_out = X[~train]
    first, second = rng.integers(len(held_out), size=(2, pairs))
    fitted = {
        count: MixtureLikelihoodRatio(different=count, normalize=False).fit(X[train], y[train]) for count in components
    }
    return {count: metric.approximate_pairs(held_out[first], held_out[second]) for count, metric in fitted.items()}


def main() -> None:
    """Print the table."""
    print("| components for different | which pairs | spread of the exact scores | rms error | rank correlation |")
    print("|---|---|---|---|---|")
    for count, found in run((1, 2, 5, 10, 20), chips_per_class=100, pairs=20_000).items():
        best = found.exact >= np.quantile(found.exact, 0.95)
        for name, chosen in (("all", np.ones_like(best)), ("best 5 %", best)):
            exact, errors = found.exact[chosen], (found.scores - found.exact)[chosen]
            correlation = spearmanr(found.scores[chosen], exact).statistic
            rms = np.sqrt(np.mean(errors**2))
            print(f"| {count} | {name} | {exact.std():.2f} | {rms:.3f} | {correlation:.4f} |")


if __name__ == "__main__":
    main()
