"""What scores are worth, and what is said where a metric does not know."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from tests.gallery.galleries import kinds

from lookdown import Cosine, GaussianLikelihoodRatio
from lookdown.errors import NotCalibratedError
from lookdown.gallery.search.rates import Rates, scaled


@pytest.fixture(scope="module")
def ratio() -> GaussianLikelihoodRatio:
    return GaussianLikelihoodRatio().fit(*kinds(400))


@pytest.fixture(scope="module")
def calibrated(ratio: GaussianLikelihoodRatio) -> GaussianLikelihoodRatio:
    X, y = kinds(300)
    return GaussianLikelihoodRatio().fit(*kinds(400)).calibrate(X, y, groups=np.arange(300) % 30)


def test_a_calibrated_metric_answers_from_what_it_has_seen(calibrated: GaussianLikelihoodRatio) -> None:
    rates = Rates(calibrated, several=False)
    scores = np.linspace(-8, 4, 9)
    found = rates.false_alarm_rates(scores)
    assert [float(rate or 0) for rate in found] == [float(calibrated.false_alarm_rate(score)) for score in scores]
    assert found[0] is not None
    assert found[0].method == "empirical"
    assert rates.notes() == ()
    assert rates.threshold(0.05) == calibrated.threshold(0.05)


def test_many_scores_are_interpolated_closely(calibrated: GaussianLikelihoodRatio) -> None:
    scores = np.random.default_rng(0).uniform(-10, 5, 1_000)
    found = Rates(calibrated, several=False).false_alarm_rates(scores)
    exact = [calibrated.false_alarm_rate(score) for score in scores]
    np.testing.assert_allclose([float(rate or 0) for rate in found], [float(rate) for rate in exact], atol=3e-3)
    assert all(rate is not None and rate.low <= rate <= rate.high for rate in found)


def test_a_model_answers_without_a_warning_and_says_so(ratio: GaussianLikelihoodRatio) -> None:
    rates = Rates(ratio, several=False)
    found = rates.false_alarm_rate(1.0)
    assert found is not None
    assert (found.method, found.supported) == ("analytic", False)
    assert rates.posteriors(np.array([1.0]), 0.01)[0] == pytest.approx(expit(1.0 + logit(0.01)))


def test_a_metric_that_only_ranks_says_nothing_of_rates() -> None:
    rates = Rates(Cosine().fit(np.ones((1, 4))), several=False)
    assert rates.false_alarm_rates(np.arange(3.0)) == [None] * 3
    assert rates.false_alarm_rates(np.arange(999.0)) == [None] * 999
    assert rates.posteriors(np.arange(3.0), 0.1) == [None] * 3
    assert Rates(rates.metric, several=True).notes() == ()
    with pytest.raises(NotCalibratedError, match="needs calibration"):
        rates.threshold(0.1)


def test_rates_of_several_examples_are_not_supported(calibrated: GaussianLikelihoodRatio) -> None:
    one, several = Rates(calibrated, several=False), Rates(calibrated, several=True)
    alone, mean = one.false_alarm_rate(-3.0), several.false_alarm_rate(-3.0)
    assert alone is not None
    assert mean is not None
    assert float(alone) == float(mean)
    assert alone.supported
    assert not mean.supported
    assert not several.threshold(0.1).supported
    assert "one example" in several.notes()[0]


def test_expected_hits_are_rate_times_rows(calibrated: GaussianLikelihoodRatio) -> None:
    rate = calibrated.false_alarm_rate(-3.0)
    hits = scaled(rate, 500)
    assert float(hits) == pytest.approx(500 * float(rate))
    assert (hits.low, hits.high) == (500 * rate.low, 500 * rate.high)
    assert (hits.method, hits.supported) == (rate.method, rate.supported)


def test_a_rate_of_zero_is_a_rate(calibrated: GaussianLikelihoodRatio) -> None:
    found = Rates(calibrated, several=False).false_alarm_rates(np.array([1e6, -3.0]))
    assert [float(rate) if rate is not None else None for rate in found] == [
        0.0,
        float(calibrated.false_alarm_rate(-3.0)),
    ]
