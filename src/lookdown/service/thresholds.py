"""What scores of a metric are worth: a threshold for each false-alarm rate, and the two distributions of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import NotCalibratedError
from lookdown.gallery.results.hit import estimate_fields
from lookdown.gallery.search.searcher import Rates
from lookdown.metrics import Metric
from lookdown.metrics.metric import Answer

__all__ = ["describe"]

Array = NDArray[np.float64]

_RATES = 60  # at most
_FIRST_RATE = 0.01  # that the page begins with
_CELLS = 80  # of a histogram
_TAIL = 1e-3  # share of pairs that a picture of the distributions may leave out on either side


def describe(metric: Metric, name: str, chips: int) -> dict[str, Any]:
    """Return a threshold per rate, from 0.5 down to one chip of the archive, and the densities of scores.

    Where the metric knows no rates, both are empty and `reason` says why.
    """
    description: dict[str, Any] = {
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
        description["reason"] = (
            f"the metric {name} knows no false-alarm rates yet; label chips of two kinds, some of them drawn at "
            "random, and calibrate it"
        )
        return description
    lowest = min(0.5, 1 / max(chips, 2))
    for rate in _grid(lowest):
        threshold = rates.threshold(rate)
        description["rates"].append({
            "rate": rate,
            "threshold": estimate_fields(threshold),
            # This differs from `rate` where the threshold stops at the highest score of the calibration.
            "attained": estimate_fields(rates.false_alarm_rate(float(threshold))),
        })  # fmt: skip
    description["distributions"] = _distributions(metric)
    return description


def _grid(lowest: float) -> list[float]:
    """Return rates from one half down to the lowest."""
    if lowest >= 0.5:
        return [0.5]
    rates = {*np.geomspace(0.5, lowest, _RATES).tolist(), *([_FIRST_RATE] if lowest < _FIRST_RATE else [])}
    return sorted(rates, reverse=True)


def _distributions(metric: Metric) -> dict[str, Any]:
    """Return densities as differences of rates over a grid of scores; `same` is None without calibrated pairs."""
    method: Answer = "analytic" if metric.calibration_ is None else "empirical"

    def different(score: float) -> float:
        return float(metric.false_alarm_rate(score, method))

    def same(score: float) -> float:
        return float(metric.detection_rate(score, method))

    low, high = float(metric.threshold(1 - _TAIL, method)), float(metric.threshold(_TAIL, method))
    has_same = True
    try:
        same(low)
    except NotCalibratedError:
        has_same = False
    if has_same:  # cover the scores of the same kind, too
        low, high = _reaching(same, low, max(high, low + 1e-6))
    grid = np.linspace(low, high, _CELLS + 1)
    return {
        "scores": ((grid[1:] + grid[:-1]) / 2).tolist(),
        "same": _density(np.array([same(score) for score in grid]), grid) if has_same else None,
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
