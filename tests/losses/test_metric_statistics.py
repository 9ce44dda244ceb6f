"""Scores in torch against those of the metrics, and the mean over different pairs against loops."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from tests.losses.batches import DIMENSION, batch, metric

from lookdown import GaussianLikelihoodRatio, MixtureLikelihoodRatio
from lookdown.lab.synthetic.gaussian_world import GaussianWorld
from lookdown.losses.metric_statistics import GaussianStatistics, MixtureStatistics, statistics_like, statistics_of

METRICS = [("gaussian", "clip"), ("gaussian", "keep"), ("mixture", ""), ("diagonal mixture", "")]


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("kind", "indefinite"), METRICS)
def test_scores_are_those_of_the_metric(kind: str, indefinite: str, normalize: bool) -> None:
    fitted = metric(kind, normalize, indefinite)
    x, _ = batch()
    x = x + 3  # off the origin, where products of raw vectors would lose digits
    statistics = statistics_of(fitted)
    found = (statistics.gains(x) + statistics.origin).numpy()
    np.testing.assert_allclose(found, fitted.score(x.numpy(), x.numpy()), rtol=0, atol=1e-10)
    np.testing.assert_allclose(found, found.T, rtol=0, atol=1e-10)
    np.testing.assert_allclose(np.diag(found), statistics.origin, rtol=0, atol=1e-10)


def test_directions_in_which_same_pairs_spread_wider_count_the_other_way() -> None:
    X, y = GaussianWorld.random(DIMENSION).chips(12, 8, np.random.default_rng(0))
    X[:, 0] = np.random.default_rng(1).normal(size=len(X)) * np.tile([1, 3], len(X) // 2)
    kept = GaussianLikelihoodRatio(indefinite="keep", normalize=False).fit(X, y)
    statistics = GaussianStatistics.of(kept)
    assert (statistics.signs < 0).any()
    x = torch.tensor(X[:9])
    np.testing.assert_allclose(statistics.gains(x) + statistics.origin, kept.score(X[:9], X[:9]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("weighting", ["pairs", "classes"])
@pytest.mark.parametrize("indefinite", ["clip", "keep"])
@pytest.mark.parametrize("normalize", [True, False])
def test_the_mean_over_different_pairs_of_a_gaussian_is_exact(indefinite: Any, normalize: bool, weighting: Any) -> None:
    X, y = GaussianWorld.random(4).chips(6, 5, np.random.default_rng(0))
    keep = np.random.default_rng(1).random(len(y)) < 0.8  # classes of unequal size
    X, y = X[keep], y[keep]
    fitted = GaussianLikelihoodRatio(0.1, indefinite, normalize, weighting).fit(X, y)
    falls: dict[tuple[int, int], list[float]] = {}
    for i, j in combinations(range(len(y)), 2):
        if y[i] != y[j]:
            falls.setdefault((y[i], y[j]), []).append(fitted.offset_ - fitted.score(X[[i]], X[[j]])[0, 0])
    means = [np.mean(each) for each in falls.values()]
    sizes = [len(each) for each in falls.values()] if weighting == "pairs" else None
    assert statistics_of(fitted).spread.item() == pytest.approx(np.average(means, weights=sizes), rel=1e-10)


def test_with_one_component_each_a_mixture_is_the_gaussian() -> None:
    X, y = GaussianWorld.random(4).chips(10, 8, np.random.default_rng(0))
    gaussian = GaussianStatistics.of(GaussianLikelihoodRatio(0.1, indefinite="keep").fit(X, y))
    mixture = MixtureStatistics.of(MixtureLikelihoodRatio(1, 1, shrinkage=0.1).fit(X, y))
    x = torch.tensor(X[:9])
    torch.testing.assert_close(mixture.gains(x), gaussian.gains(x), rtol=0, atol=1e-10)
    torch.testing.assert_close(mixture.spread, gaussian.spread, rtol=1e-10, atol=0)
    torch.testing.assert_close(mixture.origin, gaussian.origin, rtol=1e-10, atol=1e-10)


def test_the_mean_over_different_pairs_of_a_mixture_is_that_of_the_pairs_it_was_fitted_on() -> None:
    """Exactly, it is the mean of draws from the fitted law; to a few per cent, that of the training pairs."""
    rng = np.random.default_rng(0)
    y = np.arange(240) % 6
    X = 2 * rng.normal(size=(6, 4))[y] + rng.normal(size=(240, 4))
    fitted = MixtureLikelihoodRatio(1, 6, pairs="all", normalize=False).fit(X, y)
    statistics = MixtureStatistics.of(fitted)
    drawn = fitted.sample(16_384, "different", seed=0)
    origin = fitted.score_differences(np.zeros((1, 4)))[0]
    loop = np.mean([origin - fitted.score_differences(row[None])[0] for row in drawn[:2000]])
    assert statistics.spread.item() == pytest.approx(origin - fitted.score_differences(drawn).mean(), rel=1e-12)
    assert statistics.spread.item() == pytest.approx(loop, rel=0.05)
    pairs = [(i, j) for i, j in combinations(range(240), 2) if y[i] != y[j]]
    first, second = np.array(pairs).T
    exact = np.mean(origin - fitted.score_pairs(X[first], X[second]))
    assert statistics.spread.item() == pytest.approx(exact, rel=0.03)
    assert MixtureStatistics.of(fitted).spread == statistics.spread


@pytest.mark.parametrize("kind", ["gaussian", "mixture", "diagonal mixture"])
def test_gradients_and_storage(kind: str) -> None:
    statistics = statistics_of(metric(kind, normalize=True))
    x, _ = batch()
    assert torch.autograd.gradcheck(statistics.gains, x[:4].clone().requires_grad_())
    assert not any(tensor.requires_grad for tensor in statistics.state_dict().values())
    assert not list(statistics.parameters())
    room = statistics_like(statistics.state_dict())
    room.load_state_dict(statistics.state_dict())
    assert type(room) is type(statistics)
    assert room.dimension == statistics.dimension == DIMENSION
    assert torch.equal(room.gains(x), statistics.gains(x))


def test_near_copies_keep_their_digits_in_float32() -> None:
    statistics = statistics_of(metric("gaussian", normalize=False)).float()
    x, _ = batch(dtype=torch.float32)
    x = 1000 + x * 0.01
    exact = statistics_of(metric("gaussian", normalize=False)).gains(x.double())
    torch.testing.assert_close(statistics.gains(x).double(), exact, rtol=1e-4, atol=1e-5 * exact.abs().max().item())
