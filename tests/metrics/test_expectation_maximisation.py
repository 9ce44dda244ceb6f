"""Expectation-maximisation against naive steps, against scikit-learn, and against a mixture that is known."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from tests.metrics.test_mirrored_mixture import example, naive_halves

from lookdown.errors import CollapsedComponentWarning
from lookdown.metrics import MirroredMixture
from lookdown.metrics.expectation_maximisation import _Sums, expectation_maximisation, start

Array = NDArray[np.float64]


def naive_round(mixture: MirroredMixture, x: Array, prior: float) -> tuple[float, Array, Array, Array]:
    """One E and one M step in loops, with both sides of a pair as components that share weight, mean and covariance."""
    halves = naive_halves(mixture, x)
    likelihood = np.exp(halves).sum(axis=(1, 2))
    share = np.exp(halves) / likelihood[:, None, None]
    weights, means, covariances = [], [], []
    for k in range(len(mixture.weights)):
        total = share[:, k].sum()
        mean = sum(
            share[i, k, side] * sign * x[i] for i in range(len(x)) for side, sign in enumerate((1, -1))
        ) / total  # fmt: skip
        mean = mean * mixture.means[k].any()
        scatter = sum(
            share[i, k, side] * np.outer(x[i] - sign * mean, x[i] - sign * mean)
            for i in range(len(x))
            for side, sign in enumerate((1, -1))
        )
        weights.append(total / len(x))
        means.append(mean)
        covariances.append((scatter + prior * np.eye(x.shape[1])) / total)
    return float(np.log(likelihood).sum()), np.array(weights), np.array(means), np.array(covariances)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 1e-2])
def test_a_round_equals_the_naive_steps(diagonal: bool, ridge: float) -> None:
    rng = np.random.default_rng(0)
    x = example(diagonal=False).sample(300, rng)
    mixture = example(diagonal=diagonal)
    fit = expectation_maximisation(x, mixture, ridge=ridge, tol=0, max_iter=1)
    prior = ridge * 300 / 3 * float(np.mean(x**2))
    likelihood, weights, means, covariances = naive_round(mixture, x, prior)
    precisions = [1 / c if diagonal else np.linalg.inv(c) for c in mixture.covariances]
    penalty = prior / 2 * sum(p.sum() if diagonal else np.trace(p) for p in precisions)
    assert fit.objectives == [pytest.approx(likelihood - penalty, rel=1e-12)]
    np.testing.assert_allclose(fit.mixture.weights, weights, rtol=1e-10)
    np.testing.assert_allclose(fit.mixture.means, means, atol=1e-10)
    expected = np.stack([np.diag(c) for c in covariances]) if diagonal else covariances
    np.testing.assert_allclose(fit.mixture.covariances, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("diagonal", [False, True])
def test_it_is_scikit_learns_mixture_on_the_doubled_differences(diagonal: bool) -> None:
    x = example(diagonal=False).sample(2000, np.random.default_rng(0))
    first = start(x, 4, np.random.default_rng(1), diagonal=diagonal)
    fit = expectation_maximisation(x, first, ridge=0, tol=0, max_iter=25)
    tied = first.mirrored
    covariances = np.r_[first.covariances, first.covariances[tied]]
    peer = GaussianMixture(
        7,
        covariance_type="diag" if diagonal else "full",
        weights_init=np.r_[np.where(tied, first.weights / 2, first.weights), first.weights[tied] / 2],
        means_init=np.r_[first.means, -first.means[tied]],
        precisions_init=1 / covariances if diagonal else np.linalg.inv(covariances),
        reg_covar=0,
        tol=0,
        max_iter=25,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer.fit(np.r_[x, -x])
    assert fit.objectives[-1] / 2000 == pytest.approx(peer.lower_bound_, rel=1e-9)
    np.testing.assert_allclose(fit.mixture.means, peer.means_[:4], atol=1e-6)
    np.testing.assert_allclose(fit.mixture.covariances, peer.covariances_[:4], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(fit.mixture.weights[1:], 2 * peer.weights_[1:4], rtol=1e-6)


def test_a_known_mixture_is_recovered() -> None:
    truth = example(diagonal=False)
    x = truth.sample(20_000, np.random.default_rng(0))
    fits = [
        expectation_maximisation(
            x, start(x, 3, np.random.default_rng(seed), diagonal=False), ridge=0, tol=1e-6, max_iter=500
        )
        for seed in range(3)
    ]
    best = max(fits, key=lambda fit: fit.objectives[-1])
    assert best.converged
    for k in range(3):
        twin = np.argmin([min(np.abs(m - s * truth.means[k]).max() for s in (1, -1)) for m in best.mixture.means])
        sign = 1 if best.mixture.means[twin] @ truth.means[k] >= 0 else -1
        np.testing.assert_allclose(best.mixture.means[twin], sign * truth.means[k], atol=0.12)
        np.testing.assert_allclose(best.mixture.weights[twin], truth.weights[k], atol=0.015)
        np.testing.assert_allclose(
            best.mixture.covariances[twin], truth.covariances[k], atol=0.06 * truth.covariances[k].max()
        )
    fresh = truth.sample(100_000, np.random.default_rng(9))
    assert best.mixture.log_density(fresh).mean() == pytest.approx(truth.log_density(fresh).mean(), abs=0.005)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_objective_never_falls(diagonal: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_t(6, size=(2000, 5)) * rng.choice([1, 5], size=(2000, 1))
    fit = expectation_maximisation(x, start(x, 4, rng, diagonal=diagonal), ridge=1e-6, tol=0, max_iter=60)
    assert not fit.converged
    assert (np.diff(fit.objectives) >= -1e-9 * abs(fit.objectives[-1])).all()
    assert fit.objectives[-1] > fit.objectives[0]


@pytest.mark.parametrize("gap", [1e4, 1e7])
def test_an_offset_from_zero_far_beyond_the_spread_keeps_its_digits(gap: float) -> None:
    rng = np.random.default_rng(0)
    far = gap * np.eye(3)[0]
    x = np.r_[rng.normal(size=(500, 3)), far + rng.normal(size=(500, 3))] * rng.choice([-1, 1], size=(1000, 1))
    first = MirroredMixture(np.array([0.5, 0.5]), np.stack([np.zeros(3), far]), np.stack([np.eye(3)] * 2))
    fit = expectation_maximisation(x, first, ridge=0, tol=0, max_iter=5)
    cluster = x[500:] * np.sign(x[500:, :1])
    np.testing.assert_allclose(fit.mixture.covariances[1], np.cov(cluster.T, bias=True), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("spread", [1e-2, 1e-3, 1e-4])
def test_tight_clusters_are_kept(diagonal: bool, spread: float) -> None:
    rng = np.random.default_rng(0)
    places = rng.normal(size=(3, 4))
    x = places[rng.integers(3, size=2000)] + spread * rng.normal(size=(2000, 4))
    x *= rng.choice([-1, 1], size=(2000, 1))
    fits = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapsedComponentWarning)  # the one at zero finds no data
        for seed in range(5):
            first = start(x, 4, np.random.default_rng(seed), diagonal=diagonal)
            fits.append(expectation_maximisation(x, first, ridge=1e-6, tol=1e-6, max_iter=200))
    fit = max(fits, key=lambda fit: fit.objectives[-1])
    floor = 1e-6 * np.mean(x**2)
    tight = fit.mixture.covariances.reshape(len(fit.mixture.weights), -1).max(axis=1) < 4 * (spread**2 + floor)
    assert tight.sum() == 3


def test_an_objective_that_falls_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    x = example(diagonal=False).sample(500, np.random.default_rng(0))
    update = _Sums.update

    def worse(sums: _Sums, mixture: MirroredMixture, prior: float, alive: Any) -> MirroredMixture:
        better = update(sums, mixture, prior, alive)
        return MirroredMixture(better.weights, better.means, 9 * better.covariances)

    monkeypatch.setattr(_Sums, "update", worse)
    with pytest.raises(AssertionError, match="the objective fell by"):
        expectation_maximisation(x, example(diagonal=False), ridge=1e-6, tol=0, max_iter=20)


def test_components_without_data_are_dropped_with_a_warning() -> None:
    x = np.random.default_rng(0).normal(size=(400, 3))
    means = np.array([[0.0, 0, 0], [60, 0, 0], [0.5, 0, 0]])
    first = MirroredMixture(np.full(3, 1 / 3), means, np.stack([np.eye(3)] * 3))
    with pytest.warns(CollapsedComponentWarning, match="1 of 3 components for same differences kept too few"):
        fit = expectation_maximisation(x, first, ridge=1e-6, tol=1e-4, max_iter=50, name="same")
    assert len(fit.mixture.weights) == 2
    assert fit.mixture.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("diagonal", [False, True])
def test_a_component_on_copies_of_one_difference_is_dropped(diagonal: Any) -> None:
    x = np.r_[np.random.default_rng(0).normal(size=(400, 3)), np.full((300, 3), 7.0)]
    with pytest.warns(CollapsedComponentWarning, match="dropped"):
        fit = expectation_maximisation(
            x, start(x, 2, np.random.default_rng(0), diagonal=diagonal), ridge=1e-6, tol=1e-6, max_iter=200
        )
    assert np.isfinite(fit.mixture.log_density(x)).all()


def test_a_start_has_no_more_centres_than_there_are_places() -> None:
    x = np.repeat([[1.0, 0], [0, 2.0]], 5, axis=0)
    assert len(start(x, 10, np.random.default_rng(0), diagonal=True).weights) == 3  # zero and the two places
