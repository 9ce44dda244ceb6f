"""Gaussian kinds and chips of none of them: against densities of scipy, and evidence that multiplies."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from lookdown.metrics.kind_model import KindModel
from lookdown.metrics.pair_moments import PairMoments

Array = NDArray[np.float64]
NOVELTY = 0.2


@pytest.fixture
def chips() -> tuple[Array, NDArray[np.int64]]:
    """Three kinds of two, five and twenty chips."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [2, 5, 20])
    return rng.normal(size=(3, 4))[y] + 0.5 * rng.normal(size=(27, 4)), y


@pytest.fixture
def model(chips: tuple[Array, NDArray[np.int64]]) -> KindModel:
    return KindModel.of(PairMoments.of(*chips), shrinkage=0.3, weighting="pairs", novelty=NOVELTY)


def joint(model: KindModel, x: Array, temperature: float) -> Array:
    """P(kind) times the density of x, to the power of one over the temperature; none of the kinds last."""
    parts = zip(model.priors, model.means, model.counts, strict=False)
    known = [p * multivariate_normal(m, (1 + 1 / n) * model.within).pdf(x) ** (1 / temperature) for p, m, n in parts]
    none = multivariate_normal(model.means.mean(axis=0), model.total).pdf(x) ** (1 / temperature)
    return np.array([*known, model.priors[-1] * none])


def test_shares_of_the_kinds_and_of_none_add_up_to_1(chips: tuple[Array, NDArray[np.int64]]) -> None:
    moments = PairMoments.of(*chips)
    expected = {"pairs": 0.8 * np.array([2, 5, 20]) / 27, "classes": np.full(3, 0.8 / 3)}
    for weighting in ("pairs", "classes"):
        model = KindModel.of(moments, shrinkage=0.3, weighting=weighting, novelty=NOVELTY)
        np.testing.assert_allclose(model.priors, [*expected[weighting], NOVELTY])


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_a_kind_of_few_chips_is_wider(
    model: KindModel, chips: tuple[Array, NDArray[np.int64]], temperature: float
) -> None:
    for x, found in zip(chips[0], np.exp(model.log_posteriors(chips[0], temperature)), strict=True):
        expected = joint(model, x, temperature)
        np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-9)


def test_none_of_these_is_also_what_lies_near_a_chip_of_background(chips: tuple[Array, NDArray[np.int64]]) -> None:
    X, y = chips
    y = 2 * y
    y[[3, 4]] = [-5, 3]  # sorted before the kinds, and between them
    moments = PairMoments.of(X, y)
    model = KindModel.of(moments, shrinkage=0.3, weighting="pairs", novelty=NOVELTY, background=[-5, 3])
    named = [0, 2, 4]
    counts = np.array([(y == kind).sum() for kind in named])
    np.testing.assert_allclose(model.priors, [*(0.8 * counts / counts.sum()), 0.2])
    centre = np.mean([X[y == kind].mean(axis=0) for kind in np.unique(y)], axis=0)
    for x, found in zip(X, np.exp(model.log_posteriors(X, 3.0)), strict=True):
        expected = [
            share * multivariate_normal(X[y == kind].mean(axis=0), (1 + 1 / n) * model.within).pdf(x) ** (1 / 3)
            for kind, n, share in zip(named, counts, model.priors, strict=False)
        ]
        none = [multivariate_normal(centre, model.total).pdf(x) ** (1 / 3)]
        none += [multivariate_normal(X[row], 2 * model.within).pdf(x) ** (1 / 3) for row in (3, 4)]
        joint_density = np.array([*expected, NOVELTY * np.mean(none)])
        np.testing.assert_allclose(found, joint_density / joint_density.sum(), rtol=1e-9)


def test_what_several_chips_say_multiplies(model: KindModel, chips: tuple[Array, NDArray[np.int64]]) -> None:
    several, weights = chips[0][[1, 4, 5]], np.array([1.0, 0.5, 0.5])
    found = np.exp(model.pooled(model.log_posteriors(several, 2.0), weights))
    evidence = [(joint(model, x, 2.0) / model.priors) ** w for x, w in zip(several, weights, strict=True)]
    expected = model.priors * np.prod(evidence, axis=0)
    np.testing.assert_allclose(found, [expected / expected.sum()], rtol=1e-9)
    one = model.log_posteriors(several[:1], 2.0)
    np.testing.assert_allclose(model.pooled(one, np.ones(1)), one, atol=1e-12)
