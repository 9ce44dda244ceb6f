"""Theorem 1 of the paper: how good is a mixture's score as weighted Mahalanobis distances plus a constant (Eq. C-3)?

Run `python -m lookdown.lab.paper.theorem_1`: it prints the table in docs/mixture.md. Twenty classes with means drawn
wide apart in 16 dimensions; mixtures of growing size for the different pairs; errors over 20,000 random held-out pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from scipy.stats import spearmanr

from lookdown.errors import InputError
from lookdown.lab.synthetic.gaussian_world import GaussianWorld
from lookdown.metrics import MirroredMixture, MixtureLikelihoodRatio
from lookdown.metrics.inputs import Array

__all__ = ["Decomposition", "MahalanobisApproximation", "approximate_pairs", "decompose", "expected_mahalanobis", "run"]


class MahalanobisApproximation(NamedTuple):
    """Theorem 1 for mixtures (Eq. C-3): scores as weighted squared Mahalanobis distances plus one constant.

    The constant replaces the determinants, weights and entropy of the components, which change from pair to pair; the
    errors say by how much.
    """

    scores: Array  # (n,)
    exact: Array  # (n,)
    constant: float  # chosen so that the errors have mean zero
    rms_error: float
    largest_error: float
    rank_correlation: float  # Spearman's; 1 if the approximation ranks as the exact scores do


class Decomposition(NamedTuple):
    """log p(x) as an expectation over components plus the entropy of that choice."""

    expected: Array  # (n,)  sum_k g_k log(weight_k N_k(x))
    entropy: Array  # (n,)  - sum_k g_k log g_k


def approximate_pairs(metric: MixtureLikelihoodRatio, first: ArrayLike, second: ArrayLike) -> MahalanobisApproximation:
    """Score aligned pairs by weighted Mahalanobis distances, with the errors of that."""
    differences = metric._differences(first, second)
    exact = metric._ratio(differences)
    if np.ptp(exact) == 0:
        raise InputError("all pairs score the same, so there is nothing to approximate; give differing pairs")
    forms = expected_mahalanobis(metric.different_, differences) - expected_mahalanobis(metric.same_, differences)
    constant = float(np.mean(exact - forms / 2))
    errors = forms / 2 + constant - exact
    return MahalanobisApproximation(
        scores=forms / 2 + constant,
        exact=exact,
        constant=constant,
        rms_error=float(np.sqrt(np.mean(errors**2))),
        largest_error=float(np.abs(errors).max()),
        rank_correlation=float(spearmanr(forms, exact).statistic),
    )


def decompose(mixture: MirroredMixture, x: Array) -> Decomposition:
    """Split log p(x), exactly, into its expectation over components and the entropy of the components."""
    logs, _ = mixture.log_components(x)
    log_share = logs - logsumexp(logs, axis=1, keepdims=True)
    share = np.exp(log_share)
    entropy = -(share * np.where(share > 0, log_share, 0)).sum(axis=1)
    return Decomposition((share * logs).sum(axis=1), entropy)


def expected_mahalanobis(mixture: MirroredMixture, x: Array) -> Array:
    """Return sum_k g_k D_k(x)^2 over components and both mirror halves, g being their share in x (Eq. C-3)."""
    logs, pulls = mixture.log_components(x)
    share = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    # Of a mirrored pair the nearer half has share (1 + tanh |u'b|)/2; the farther is 4 |u'b| further in the square.
    squares = mixture.squares(x, pulls) + 2 * np.abs(pulls) * (1 - np.tanh(np.abs(pulls)))
    return np.asarray((share * squares).sum(axis=1))


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
    return {count: approximate_pairs(metric, held_out[first], held_out[second]) for count, metric in fitted.items()}


def main() -> None:
    """Print the table."""
    print("| components for different | which pairs | spread of the exact scores | rms error | rank correlation |")
    print("|---|---|---|---|---|")
    for count, figures in run((1, 2, 5, 10, 20), chips_per_class=100, pairs=20_000).items():
        best = figures.exact >= np.quantile(figures.exact, 0.95)
        for name, chosen in (("all", np.ones_like(best)), ("best 5 %", best)):
            exact, errors = figures.exact[chosen], (figures.scores - figures.exact)[chosen]
            correlation = spearmanr(figures.scores[chosen], exact).statistic
            rms = np.sqrt(np.mean(errors**2))
            print(f"| {count} | {name} | {exact.std():.2f} | {rms:.3f} | {correlation:.4f} |")


if __name__ == "__main__":
    main()
