"""Rates and distributions of a metric."""

from __future__ import annotations

import numpy as np
import pytest
from tests.gallery.galleries import kinds

from lookdown import Cosine, GaussianLikelihoodRatio
from lookdown.metrics import Metric
from lookdown.service.thresholds import describe


def calibrated() -> Metric:
    x, y = kinds(300)
    return GaussianLikelihoodRatio().fit(x, y).calibrate(x, y, np.arange(300) % 30)


def test_rates_are_those_of_the_metric_down_to_one_chip() -> None:
    metric = calibrated()
    told = describe(metric, "1-trained", 5_000)
    assert (told["calibrated"], len(told["rates"])) == (True, 61)
    assert 0.01 in [one["rate"] for one in told["rates"]]
    assert told["rates"][-1]["rate"] == pytest.approx(1 / 5_000)
    for one in told["rates"]:
        assert one["threshold"]["value"] == pytest.approx(float(metric.threshold(one["rate"])))
    assert told["rates"][0]["threshold"]["supported"]
    assert not told["rates"][-1]["threshold"]["supported"]


def test_the_rate_that_a_threshold_attains_is_told_beside_the_one_asked_for() -> None:
    metric = calibrated()
    first, *_, last = describe(metric, "1-trained", 10_000_000)["rates"]
    for one in (first, last):
        assert one["attained"]["value"] == pytest.approx(float(metric.false_alarm_rate(one["threshold"]["value"])))
    assert first["attained"]["value"] == pytest.approx(0.5, rel=0.05)
    assert last["attained"]["high"] > 10 * last["rate"], "no score of the calibration is as rare as that"


@pytest.mark.parametrize("how", ["empirical", "analytic"])
def test_densities_are_those_of_the_rates(how: str) -> None:
    metric = calibrated()
    if how == "analytic":
        metric.calibration_ = None
    told = describe(metric, "m", 1_000)
    drawn = told["distributions"]
    width = drawn["scores"][1] - drawn["scores"][0]
    for name in ("same", "different"):
        assert len(drawn[name]) == len(drawn["scores"])
        assert min(drawn[name]) >= 0
        assert sum(drawn[name]) * width == pytest.approx(1, abs=0.01)
    middle = {name: np.average(drawn["scores"], weights=drawn[name]) for name in ("same", "different")}
    assert middle["same"] > middle["different"]
    edges = np.array(drawn["scores"])[[20, 60]] + width / 2
    share = [float(metric.false_alarm_rate(edge, how)) for edge in edges]  # type: ignore[arg-type]
    assert sum(drawn["different"][21:61]) * width == pytest.approx(share[0] - share[1], abs=1e-6)
    assert {one["threshold"]["method"] for one in told["rates"]} == {how}


def test_a_metric_without_rates_says_what_to_do() -> None:
    told = describe(Cosine().fit(np.ones((1, 4))), "1-cosine", 100)
    assert (told["calibrated"], told["rates"], told["distributions"]) == (False, [], None)
    assert told["reason"].startswith("the metric 1-cosine knows no false-alarm rates yet; label")


def test_without_same_pairs_there_is_one_distribution() -> None:
    x, _ = kinds(60)
    metric = GaussianLikelihoodRatio().fit(*kinds(200))
    metric.calibrate(x, None, background=np.arange(60) >= 20)
    drawn = describe(metric, "m", 60)["distributions"]
    assert drawn["same"] is None
    assert len(drawn["different"]) == len(drawn["scores"])


@pytest.mark.parametrize("chips", [0, 1, 2, 3])
def test_tiny_galleries_have_a_rate(chips: int) -> None:
    assert describe(calibrated(), "m", chips)["rates"][0]["rate"] == 0.5
