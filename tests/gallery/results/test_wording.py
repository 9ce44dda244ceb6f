"""Sentences and figures: what they say, and that they never promise more than is known."""

from __future__ import annotations

import math
import unicodedata

import pytest
from tests.gallery.results.found import NAUGHTY, bare, found, hit, measured

from lookdown.gallery.results.wording import (
    expectation,
    explanations,
    headline,
    kind_text,
    one_line,
    posterior_text,
    rate_text,
    score_text,
)
from lookdown.metrics.estimate import Estimate


@pytest.mark.parametrize(
    ("kind", "probability", "text"),
    [
        ("F-16", 0.931, "F-16, 93 %"),
        ("F-16", 0.9962, "F-16, 99.6 %"),
        ("F-16", 0.9999, "F-16, >99.9 %"),
        ("a\nb", 0.004, "a b, <1 %"),
        (None, 0.5, "none of these, 50 %"),
        ("F-16", math.nan, "-"),
        (None, None, "-"),
    ],
)
def test_a_kind_has_its_probability_and_is_never_certain(
    kind: str | None, probability: float | None, text: str
) -> None:
    assert kind_text(kind, probability) == text


def test_the_headline_says_what_was_searched_and_how() -> None:
    assert headline(found(hit(), hit()), "ship.jpg") == (
        "Searched 3,200 chips for ship.jpg: 2 hits, best first (metric glrt, engine exact)."
    )
    one = headline(found(hit(), rows_searched=1, requested_false_alarm_rate=1e-4, engine="ivf"), "it")
    assert one == "Searched 1 chip for it: 1 hit at a false-alarm rate of 0.0001 (metric glrt, engine ivf)."
    assert "no hits (metric" in headline(found(), "it")


def test_expected_false_hits_are_told_with_the_sum_behind_them() -> None:
    fifty = (hit(),) * 50
    assert expectation(found(*fifty, expected_false_hits=measured(3.2))) == (
        "About 3.2 of these 50 hits are expected to be false: rate 0.001 x 3,200 chips, 95 % from 1.6 to 6.4."
    )
    model = expectation(found(*fifty, expected_false_hits=Estimate.of_model(3.2, "analytic")))
    assert model == "About 3.2 (?) of these 50 hits are expected to be false: rate 0.001 x 3,200 chips."
    assert expectation(found(hit(), expected_false_hits=measured(0.32))).startswith(
        "About 0.32 false hits are expected"
    )
    assert expectation(found(*fifty, expected_false_hits=measured(1e-5))).startswith("Fewer than 0.01 of these")


def test_no_more_hits_are_called_false_than_there_are() -> None:
    text = expectation(found(hit(), hit(), expected_false_hits=measured(1280)))
    assert "As many as all of 2 hits may be false." in text
    assert "About 1,280 chips of another kind" in text
    assert "of these" not in text


def test_none_seen_is_not_told_as_none() -> None:
    unseen = Estimate(0.0, method="empirical", low=0.0, high=1.5, supported=False)
    text = expectation(found(hit(), hit(), expected_false_hits=unseen))
    assert text.startswith("Fewer than 1.5 (?) of these 2 hits")
    assert rate_text(Estimate(0.0, method="empirical", low=0.0, high=2e-4, supported=False)) == "<0.0002?"
    assert rate_text(Estimate(0.0, method="empirical", low=0.0, high=0.0, supported=True)) == "0"
    assert rate_text(Estimate.of_model(0.0, "analytic")) == "0?"


@pytest.mark.parametrize("unknown", [None, Estimate.of_model(math.nan, "analytic")])
def test_without_a_rate_it_says_why_and_what_to_do(unknown: Estimate | None) -> None:
    text = expectation(found(bare(), expected_false_hits=unknown))
    assert text.startswith("No false-alarm rate: the metric is not calibrated")
    assert "label some chips and calibrate glrt on them" in text
    assert "not known" in expectation(found(hit(), expected_false_hits=unknown))


def test_an_empty_result_says_what_to_do() -> None:
    assert "Widen the filter" in expectation(found(rows_searched=0))
    assert "Ask for more hits" in expectation(found())
    assert expectation(found(requested_false_alarm_rate=1e-5, threshold=measured(7.5))) == (
        "No chip reaches a score of 7.500. Ask for a higher false-alarm rate, or for a number of hits."
    )
    assert "No chip reaches the threshold." in expectation(found(requested_false_alarm_rate=1e-5))


def test_figures_are_explained_where_there_are_any() -> None:
    text = "\n".join(
        explanations(found(hit(), requested_false_alarm_rate=0.01, threshold=measured(3, spread=1.5), notes=("So.",)))
    )
    assert "The threshold for a false-alarm rate of 0.01 is a score of 3.000, 95 % from 2.000 to 4.500." in text
    assert "False-alarm rate: how often" in text
    assert "taking a share of 0.001 of all chips" in text
    assert text.endswith("So.")
    assert "?" not in text
    assert explanations(found(bare(), expected_false_hits=None)) == []
    assert explanations(found(threshold=Estimate.of_model(math.nan, "analytic"), expected_false_hits=None)) != []


def test_each_question_mark_has_its_reason() -> None:
    weak = hit(false_alarm_rate=measured(1e-6, supported=False))
    modelled = found(weak, expected_false_hits=Estimate.of_model(0.2, "simulated"))
    (reason,) = [text for text in explanations(modelled) if "?" in text]
    assert "too few held-out pairs" in reason
    assert "drawn from the fitted model" in reason
    assert "formula" not in reason


@pytest.mark.parametrize(
    ("score", "text"),
    [(4.25, "4.250"), (-0.0321, "-0.032"), (0.0, "0.000"), (123456.0, "1.23e+05"), (math.nan, "-"), (-math.inf, "-")],
)
def test_scores(score: float, text: str) -> None:
    assert score_text(score) == text


@pytest.mark.parametrize(
    ("posterior", "text"),
    [
        (0.5, "0.500"),
        (0.99999, ">0.999"),
        (1.0, ">0.999"),
        (0.0, "<0.001"),
        (0.0004, "<0.001"),
        (None, "-"),
        (math.nan, "-"),
    ],
)
def test_a_posterior_is_never_certain(posterior: float | None, text: str) -> None:
    assert posterior_text(posterior) == text


def test_rates_that_the_data_do_not_carry_are_marked() -> None:
    assert rate_text(measured(0.00123)) == "0.0012"
    assert rate_text(measured(3.21e-7, supported=False)) == "3.2e-07?"
    assert rate_text(None) == "-"
    assert rate_text(Estimate.of_model(math.nan, "analytic")) == "-"


@pytest.mark.parametrize("name", NAUGHTY)
def test_one_line_has_no_code_in_it_and_leaves_letters_alone(name: str) -> None:
    line = one_line(name)
    assert not [sign for sign in line if unicodedata.category(sign) in ("Cc", "Zl", "Zp", "Cs")]
    assert "\u202e" not in line
    assert [sign for sign in name if sign.isalnum()] == [sign for sign in line if sign.isalnum()]


def test_signs_that_join_emoji_stay() -> None:
    assert one_line("👩\u200d🚀") == "👩\u200d🚀"
    assert one_line("a\udcff") == "a\ufffd"
