"""The symmetric density against its definition, component by component."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from lookdown.metrics import MirroredMixture

Array = NDArray[np.float64]


def example(*, diagonal: bool, dim: int = 4) -> MirroredMixture:
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(3, dim, dim))
    full = roots @ roots.transpose(0, 2, 1) + 0.2 * np.eye(dim)
    means = np.r_[np.zeros((1, dim)), 2 * rng.normal(size=(2, dim))]
    return MirroredMixture(np.array([0.5, 0.3, 0.2]), means, np.stack([np.diag(c) for c in full]) if diagonal else full)


def naive_halves(mixture: MirroredMixture, x: Array) -> Array:
    """log(weight / 2 * N(x; +-mean, cov)) for each component and side: (n, k, 2)."""
    covariances = [np.diag(c) for c in mixture.covariances] if mixture.is_diagonal else mixture.covariances
    return np.array([
        [[np.log(w / 2) + multivariate_normal(s * m, c).logpdf(row) for s in (1, -1)]
         for w, m, c in zip(mixture.weights, mixture.means, covariances, strict=True)]
        for row in x
    ])  # fmt: skip


@pytest.mark.parametrize("diagonal", [False, True])
def test_log_density_is_the_sum_over_components_and_their_mirrors(diagonal: bool) -> None:
    mixture = example(diagonal=diagonal)
    x = 3 * np.random.default_rng(1).normal(size=(50, 4))
    expected = np.log(np.exp(naive_halves(mixture, x)).sum(axis=(1, 2)))
    np.testing.assert_allclose(mixture.log_density(x), expected, rtol=1e-11)
    pairs = mixture.log_density_of_pairs(x[:20], x[20:])
    gaps = (x[:20, None] - x[20:]).reshape(-1, 4)
    np.testing.assert_allclose(pairs.ravel(), mixture.log_density(gaps), rtol=1e-11)


@pytest.mark.parametrize("diagonal", [False, True])
def test_a_difference_and_its_mirror_have_the_same_density_to_the_bit(diagonal: bool) -> None:
    mixture = example(diagonal=diagonal)
    x = 5 * np.random.default_rng(1).normal(size=(1000, 4))
    np.testing.assert_array_equal(mixture.log_density(x), mixture.log_density(-x))


@pytest.mark.parametrize("diagonal", [False, True])
def test_samples_have_the_moments_of_the_mixture(diagonal: bool) -> None:
    mixture = example(diagonal=diagonal)
    x = mixture.sample(400_000, np.random.default_rng(0))
    covariances = np.stack([np.diag(c) for c in mixture.covariances]) if diagonal else mixture.covariances
    outer = mixture.means[:, :, None] * mixture.means[:, None]
    second = np.tensordot(mixture.weights, covariances + outer, axes=1)
    scale = np.sqrt(np.outer(np.diag(second), np.diag(second)))
    np.testing.assert_allclose(x.mean(axis=0) / np.sqrt(np.diag(second)), 0, atol=0.01)
    np.testing.assert_allclose(x.T @ x / len(x) / scale, second / scale, atol=0.015)


def test_parameters_are_counted_once_for_a_mirrored_pair() -> None:
    assert example(diagonal=False).parameters == 2 + 2 * 4 + 3 * 10
    assert example(diagonal=True).parameters == 2 + 2 * 4 + 3 * 4


@pytest.mark.parametrize("gap", [1e2, 1e5, 1e8])
def test_a_mean_far_beyond_the_spread_costs_no_digits(gap: float) -> None:
    mixture = MirroredMixture(np.array([0.5, 0.5]), np.array([[0.0, 0.0], [gap, 0.0]]), np.stack([np.eye(2)] * 2))
    x = np.array([[gap + 1.0, 2.0], [-gap + 1.0, 2.0]])
    expected = np.log(0.25) + multivariate_normal(np.zeros(2)).logpdf([1.0, 2.0])
    np.testing.assert_allclose(mixture.log_density(x), expected, rtol=1e-12)


def test_a_variance_of_nothing_is_refused() -> None:
    for covariances in (np.zeros((1, 2)), np.zeros((1, 2, 2)), np.array([[1.0, np.nan]])):
        with pytest.raises(np.linalg.LinAlgError):
            MirroredMixture(np.ones(1), np.zeros((1, 2)), covariances)
