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


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1e6, 1e200])
def test_the_unit_does_not_matter(scale: float) -> None:
    form, scaled = QuadraticForm(np.array([3.0, 1, -0.5])), QuadraticForm(np.array([3.0, 1, -0.5]) * scale)
    assert scaled.cdf(2 * scale) == pytest.approx(form.cdf(2), rel=1e-10)
    assert scaled.quantile(1e-5) == pytest.approx(form.quantile(1e-5) * scale, rel=1e-9)


def test_one_weight_may_dominate_by_twelve_orders() -> None:
    form = QuadraticForm(np.array([1e6, 1e-6, 1e-6, 1e-6]))
    for x in (1e-3, 1.0, 10.0):  # the small ones shift the form by nothing that shows
        np.testing.assert_allclose(
            (form.cdf(1e6 * x), form.sf(1e6 * x)), (stats.chi2.cdf(x, 1), stats.chi2.sf(x, 1)), rtol=1e-6
        )
    # Far below the smallest weights all four count: P(Q <= q) -> q^2 / (8 * sqrt(product of the weights)).
    q = 1e-10
    assert form.cdf(q) == pytest.approx(q**2 / (8 * np.sqrt(1e6 * 1e-18)), rel=1e-3)
    moderate = QuadraticForm(np.array([1.0, *[1e-4] * 50]))
    draws = np.square(np.random.default_rng(0).normal(size=(500_000, 51))) @ np.array([1.0, *[1e-4] * 50])
    assert np.mean(draws <= 0.01) == pytest.approx(moderate.cdf(0.01), abs=5 * np.sqrt(0.08 / 500_000))
    assert moderate.cdf(0.01) < 0.97 * stats.chi2.cdf(0.01, 1), "the small weights count"


@pytest.mark.parametrize("weights", [[1.0, 2.0], [1.0, -2.0], [-1.0]])
def test_infinity_and_what_lies_beyond_all_numbers(weights: list[float]) -> None:
    form = QuadraticForm(np.array(weights))
    for far in (1e19, 1e300, np.inf):
        assert (form.cdf(far), form.sf(far)) == (1, 0)
        assert (form.cdf(-far), form.sf(-far)) == (0, 1)
    value = form.quantile(1e-300)
    assert np.isfinite(value)
    if min(weights) > 0:  # the value would be near 1e-300 itself; it stops where squares leave the range
        assert form.cdf(value) < 1e-90
    else:
        assert form.cdf(value) == pytest.approx(1e-300, rel=1e-6)


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
