"""The sentences and figures that the terminal table and the contact sheet share."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable

from lookdown.gallery.results.hit import Results
from lookdown.metrics.estimate import Estimate

__all__ = [
    "ABSENT", "expectation", "explanations", "headline", "kind_text", "one_line", "posterior_text", "rate_text",
    "score_text",
]  # fmt: skip

ABSENT = "-"
_JOINERS = "\u200c\u200d"  # they shape letters and emoji, and are harmless
_RESTS_ON = {
    "empirical": "too few held-out pairs reach such scores",
    "analytic": "it comes from the formula of the fitted model, not from held-out pairs",
    "simulated": "it is drawn from the fitted model, not from held-out pairs",
}


def headline(results: Results, query: str) -> str:
    """Return what was searched and how, in one sentence.

    query: the name of the query, as the page or the terminal can show it.
    """
    rate = results.requested_false_alarm_rate
    condition = "" if rate is None else f" at a false-alarm rate of {rate:.2g}"
    hits = _count(len(results), "hit") if results.hits else "no hits"
    order = ", best first" if len(results) > 1 else ""
    return (
        f"Searched {_count(results.rows_searched, 'chip')} for {query}: {hits}{condition}{order} (metric "
        f"{one_line(results.metric)}, engine {one_line(results.engine)})."
    )


def expectation(results: Results) -> str:
    """Return how many hits are expected to be false, or what to do where there are no hits."""
    if not results.hits:
        return _advice(results)
    expected, hits = results.expected_false_hits, len(results)
    if expected is None or not math.isfinite(expected):
        if any(hit.false_alarm_rate is not None for hit in results.hits):
            return "How many of these hits are false is not known."
        return (
            "No false-alarm rate: the metric is not calibrated, so nobody can say how many of these hits are false; "
            f"label some chips and calibrate {one_line(results.metric)} on them."
        )
    about, rows, rate = _about(expected), results.rows_searched, "no chips"
    if rows:
        rate = f"rate {expected / rows:.2g} x {_count(rows, 'chip')}"
    behind = f": {rate}{_interval(expected, _amount)}."
    if hits > 1 and expected < hits:
        return f"{about} of these {hits:,} hits are expected to be false{behind}"
    if expected < hits:
        return f"{about} false hits are expected where this one was found{behind}"
    return (
        f"As many as all of {_count(hits, 'hit')} may be false. {about} chips of another kind are expected to score "
        f"as much{behind}"
    )


def explanations(results: Results) -> list[str]:
    """Return sentences on what the figures mean and what they rest on, and the notes."""
    sentences = [_threshold(results)]
    if any(hit.false_alarm_rate is not None for hit in results.hits):
        sentences.append("False-alarm rate: how often a chip of another kind scores as much as the hit, or more.")
    if any(hit.posterior is not None for hit in results.hits):
        sentences.append(
            "Posterior: the probability that a hit is of the query's kind, taking a share of "
            f"{results.prior:.2g} of all chips to be so before any is looked at (the prior)."
        )
    if any(hit.kind_probability is not None for hit in results.hits):
        sentences.append("Kind: the likeliest of the kinds that the metric knows, or none of these.")
    return [sentence for sentence in [*sentences, _question_mark(results), *map(one_line, results.notes)] if sentence]


def one_line(text: str) -> str:
    """Return text on one line, without codes that move a cursor, colour a terminal or change the direction."""
    if text.isascii() and text.isprintable():  # nearly always
        return text
    return "".join(map(_printable, text))


def score_text(score: float) -> str:
    """Return a score to three decimals."""
    if not math.isfinite(score):
        return ABSENT
    return f"{score:.3f}" if abs(score) < 1e5 else f"{score:.3g}"


def posterior_text(posterior: float | None) -> str:
    """Return a probability; above 0.999 it is not rounded to 1, which would be a promise."""
    if posterior is None or not math.isfinite(posterior):
        return ABSENT
    if posterior > 0.999:
        return ">0.999"
    return f"{posterior:.3f}" if posterior >= 0.001 else "<0.001"


def kind_text(kind: str | None, probability: float | None) -> str:
    """Return what a hit is taken for and how probable that is; above 99.9 % it is not rounded to certainty."""
    if probability is None or not math.isfinite(probability):
        return ABSENT
    percent = 100 * probability
    figure = f"{percent:.0f}" if percent < 99.5 else f"{percent:.1f}"
    figure = ">99.9" if percent > 99.9 else "<1" if percent < 1 else figure
    return f"{'none of these' if kind is None else one_line(kind)}, {figure} %"


def rate_text(rate: Estimate | None) -> str:
    """Return a rate, with `?` where held-out data do not support it; for a zero, return its upper bound."""
    if rate is None or not math.isfinite(rate):
        return ABSENT
    mark = "" if rate.supported else "?"
    if float(rate) == 0 and rate.high > 0:  # false for NaN
        return f"<{rate.high:.2g}{mark}"
    return f"{float(rate):.2g}{mark}"


def _printable(character: str) -> str:
    if character.isspace():
        return " "
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs") and character not in _JOINERS
    return "\ufffd" if hidden else character


def _advice(results: Results) -> str:
    """Say what to do about an empty result."""
    if not results.rows_searched:
        return "No chip was compared with the query: the filter keeps none, or the gallery is empty. Widen the filter."
    if results.requested_false_alarm_rate is None:
        return "No chip was kept. Ask for more hits, or widen the filter."
    least = "the threshold" if results.threshold is None else f"a score of {score_text(results.threshold)}"
    return f"No chip reaches {least}. Ask for a higher false-alarm rate, or for a number of hits."


def _threshold(results: Results) -> str:
    threshold, rate = results.threshold, results.requested_false_alarm_rate
    if threshold is None or not math.isfinite(threshold):
        return ""
    asked = "" if rate is None else f" for a false-alarm rate of {rate:.2g}"
    mark = "" if threshold.supported else " (?)"
    return f"The threshold{asked} is a score of {score_text(threshold)}{mark}{_interval(threshold, score_text)}."


def _question_mark(results: Results) -> str:
    figures = [results.expected_false_hits, results.threshold, *(hit.false_alarm_rate for hit in results.hits)]
    methods = sorted({figure.method for figure in figures if figure is not None and not figure.supported})
    reasons = "; or ".join(_RESTS_ON[method] for method in methods)
    return f"A figure with ? is not supported by held-out data: {reasons}." if methods else ""


def _interval(estimate: Estimate, number: Callable[[float], str]) -> str:
    if not (math.isfinite(estimate.low) and math.isfinite(estimate.high)):
        return ""
    return f", 95 % from {number(estimate.low)} to {number(estimate.high)}"


def _about(expected: Estimate) -> str:
    mark = "" if expected.supported else " (?)"
    if float(expected) == 0 and expected.high > 0:  # none was seen, which does not mean there are none; false for NaN
        return f"Fewer than {_amount(expected.high)}{mark}"
    return f"Fewer than 0.01{mark}" if expected < 0.01 else f"About {_amount(expected)}{mark}"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
