"""The law of a quadratic form against the cases that have a closed form, and against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lookdown.metrics import QuadraticForm


@pytest.mark.parametrize("d", [1, 2, 3, 16, 64, 300])
@pytest.mark.parametrize("sign", [1, -1])
def test_equal_weights_are_a_chi_square_far_into_both_tails(d: int, sign: int) -> None:
    form = QuadraticForm(np.full(d, 2.5 * sign))
    for x in (*stats.chi2.ppf([1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9], d), *stats.chi2.isf([1e-3, 1e-9], d)):
        below, above = stats.chi2.cdf(x, d), stats.chi2.sf(x, d)
        found = form.cdf(2.5 * x * sign), form.sf(2.5 * x * sign)
        np.testing.assert_allclose(found if sign > 0 else found[::-1], (below, above), rtol=1e-9)


@pytest.mark.parametrize("numerator", [1, 2, 9, 30])
@pytest.mark.parametrize("denominator", [1, 3, 40])
@pytest.mark.parametrize("ratio", [0.02, 0.5, 1.0, 7.0])
def test_weights_of_two_signs_at_zero_are_an_f_distribution(numerator: int, denominator: int, ratio: float) -> None:
    form = QuadraticForm(np.r_[np.ones(numerator), np.full(denominator, -ratio)])
    law = stats.f(numerator, denominator)
    np.testing.assert_allclose(form.cdf(0.0), law.cdf(ratio * denominator / numerator), rtol=1e-6)


@pytest.mark.parametrize(
    "weights", [np.geomspace(0.01, 10, 40), np.linspace(-3, 4, 20), np.array([1.0, -1.0]), np.array([3.0])]
)
def test_quantiles_invert_and_agree_with_a_million_draws(weights: np.ndarray) -> None:
    form = QuadraticForm(weights)
    draws = np.square(np.random.default_rng(0).normal(size=(1_000_000, len(weights)))) @ weights
    assert form.mean == pytest.approx(draws.mean(), abs=6 * form.deviation / 1000)
    for probability in (1e-3, 1e-2, 0.1, 0.5, 0.9, 0.999):
        value = form.quantile(probability)
        assert form.cdf(value) == pytest.approx(probability, rel=1e-9)
        expected = np.sqrt(probability * (1 - probability) / 1e6)
        assert np.mean(draws <= value) == pytest.approx(probability, abs=5 * expected)
    for probability in (1e-6, 1e-12):
        assert form.cdf(form.quantile(probability)) == pytest.approx(probability, rel=1e-6)


def test_a_normal_approximation_would_be_far_off_where_it_matters() -> None:
    form = QuadraticForm(np.ones(8))
    normal = stats.norm(form.mean, form.deviation).cdf(form.quantile(1e-3))
    assert normal > 30 * 1e-3


def test_a_form_that_is_always_zero_and_values_out_of_reach() -> None:
    nothing = QuadraticForm(np.zeros(3))
    assert (nothing.cdf(0), nothing.cdf(-1), nothing.sf(-1), nothing.sf(0), nothing.quantile(0.3)) == (1, 0, 1, 0, 0)
    positive, negative = QuadraticForm(np.ones(3)), QuadraticForm(-np.ones(3))
    assert (positive.cdf(-1.0), positive.sf(-1.0)) == (0, 1)
    assert (negative.cdf(1.0), negative.sf(1.0)) == (1, 0)
