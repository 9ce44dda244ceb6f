"""What scores of a metric are worth: a threshold for each false-alarm rate, and the two distributions of scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import NotCalibratedError
from lookdown.gallery.results.hit import estimate_fields
from lookdown.gallery.search.searcher import Rates
from lookdown.metrics import Metric
from lookdown.metrics.metric import Answer

__all__ = ["describe"]

_RATES = 60  # at most
_FIRST_RATE = 0.01  # that the page begins with
_CELLS = 80  # of a histogram
_TAIL = 1e-3  # share of pairs that a picture of the distributions may leave out on either side


def describe(metric: Metric, name: str, chips: int) -> dict[str, Any]:
    """Return a threshold per rate, from 0.5 down to one chip of the archive, and the densities of scores.

    Where the metric knows no rates, both are empty and `reason` says why.
    """
    description = {"metric": name, "calibrated": metric.calibration_ is not None}
    rates = Rates(metric, several=False)
    try:
        thresholds = {rate: rates.threshold(rate) for rate in _grid(1 / max(chips, 2))}
    except NotCalibratedError:
        reason = (
            f"the metric {name} knows no false-alarm rates yet; label chips of two kinds, some of them drawn at "
            "random, and calibrate it"
        )
        return {**description, "reason": reason, "rates": [], "distributions": None}
    rows = [
        {
            "rate": rate,
            "threshold": estimate_fields(threshold),
            # This differs from `rate` where the threshold stops at the highest score of the calibration.
            "attained": estimate_fields(rates.false_alarm_rate(float(threshold))),
        }
        for rate, threshold in thresholds.items()
    ]
    return {**description, "reason": None, "rates": rows, "distributions": _distributions(metric)}


def _grid(lowest: float) -> list[float]:
    """Return rates from one half down to the lowest."""
    if lowest >= 0.5:
        return [0.5]
    rates = {*np.geomspace(0.5, lowest, _RATES).tolist(), *([_FIRST_RATE] if lowest < _FIRST_RATE else [])}
    return sorted(rates, reverse=True)


def _distributions(metric: Metric) -> dict[str, Any]:
    """Return densities as differences of rates over a grid of scores; `same` is None without calibrated pairs."""
    method: Answer = "analytic" if metric.calibration_ is None else "empirical"
    low, high = float(metric.threshold(1 - _TAIL, method)), float(metric.threshold(_TAIL, method))
    try:  # cover the scores of the same kind, too
        low, high = _reaching(lambda score: metric.detection_rate(score, method), low, max(high, low + 1e-6))
        has_same = True
    except NotCalibratedError:
        has_same = False
    grid = np.linspace(low, high, _CELLS + 1)
    return {
        "scores": ((grid[1:] + grid[:-1]) / 2).tolist(),
        "same": _density([metric.detection_rate(score, method) for score in grid], grid) if has_same else None,
        "different": _density([metric.false_alarm_rate(score, method) for score in grid], grid),
    }


def _reaching(rate: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
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


def _density(reached: Sequence[float], grid: NDArray[np.float64]) -> list[float]:
    falling = -np.diff(np.minimum.accumulate(np.array(reached, np.float64)))
    density: list[float] = (falling / np.diff(grid)).tolist()
    return density
