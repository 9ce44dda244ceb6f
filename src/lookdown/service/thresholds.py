"""What scores of a metric are worth: a threshold for each false-alarm rate, and the two distributions of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import NotCalibratedError
from lookdown.gallery.results.plain_values import estimate_record
from lookdown.gallery.search.rates import Rates
from lookdown.metrics import Metric
from lookdown.metrics.metric import Answer

__all__ = ["describe"]

Array = NDArray[np.float64]

_RATES = 60
_FIRST = 0.01  # the rate that the page begins with
_CELLS = 80
_TAIL = 1e-3  # share of pairs that a picture of the distributions may leave out on either side


def describe(metric: Metric, name: str, chips: int) -> dict[str, Any]:
    """Return rates from one half down to one chip of the archive, and densities; none where the metric knows none."""
    told: dict[str, Any] = {
        "metric": name,
        "calibrated": metric.calibration_ is not None,
        "reason": None,
        "rates": [],
        "distributions": None,
    }
    rates = Rates(metric, several=False)
    try:
        rates.threshold(0.5)
    except NotCalibratedError:
        told["reason"] = (
            f"the metric {name} knows no false-alarm rates yet; label chips of two kinds, some of them drawn at "
            "random, and calibrate it"
        )
        return told
    lowest = min(0.5, 1 / max(chips, 2))
    for rate in _grid(lowest):
        threshold = rates.threshold(rate)
        told["rates"].append({
            "rate": rate,
            "threshold": estimate_record(threshold),
            # Not the rate asked for where scores as rare as that were never met: a threshold stops at the highest.
            "attained": estimate_record(rates.false_alarm_rate(float(threshold))),
        })  # fmt: skip
    told["distributions"] = _distributions(metric)
    return told


def _grid(lowest: float) -> list[float]:
    """Return rates from one half down to the lowest."""
    if lowest >= 0.5:
        return [0.5]
    rates = {*np.geomspace(0.5, lowest, _RATES).tolist(), *([_FIRST] if lowest < _FIRST else [])}
    return sorted(rates, reverse=True)


def _distributions(metric: Metric) -> dict[str, Any]:
    """Return densities by differences of the rates over a grid of scores; `same` is None where no pair was known."""
    method: Answer = "analytic" if metric.calibration_ is None else "empirical"

    def different(score: float) -> float:
        return float(metric.false_alarm_rate(score, method))

    def same(score: float) -> float:
        return float(metric.detection_rate(score, method))

    low, high = float(metric.threshold(1 - _TAIL, method)), float(metric.threshold(_TAIL, method))
    knows_same = True
    try:
        same(low)
    except NotCalibratedError:
        knows_same = False
    if knows_same:  # reach as far as scores of the same kind do
        low, high = _reaching(same, low, max(high, low + 1e-6))
    grid = np.linspace(low, high, _CELLS + 1)
    return {
        "scores": ((grid[1:] + grid[:-1]) / 2).tolist(),
        "same": _density(np.array([same(score) for score in grid]), grid) if knows_same else None,
        "different": _density(np.array([different(score) for score in grid]), grid),
    }


def _reaching(rate: Any, low: float, high: float) -> tuple[float, float]:
    """Widen a range until hardly any pair scores outside it."""
    step = high - low
    for _ in range(40):
        if rate(high) <= _TAIL:
            break
        high += step / 4
    for _ in range(40):
        if rate(low) >= 1 - _TAIL:
            break
        low -= step / 4
    return low, high


def _density(reached: Array, grid: Array) -> list[float]:
    falling = -np.diff(np.minimum.accumulate(reached))
    return [float(value) for value in falling / np.diff(grid)]
