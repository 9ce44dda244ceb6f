"""What scores are worth: false-alarm rates and posteriors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import NotCalibratedError
from lookdown.metrics import Metric
from lookdown.metrics.estimate import Estimate
from lookdown.metrics.metric import Answer

__all__ = ["Rates", "scaled"]

Array = NDArray[np.float64]

# Scores at which rates are computed where there are more hits; rates of a model are smooth, and take a millisecond.
_GRID_SCORES = {"empirical": 256, "analytic": 24, "simulated": 256}
_LEAST_RATE = 1e-300  # so that a rate of zero has a logarithm


class Rates:
    """What scores are worth under a metric; None where it cannot tell.

    several: whether the query is a mean of several examples, for which rates were not measured.
    """

    def __init__(self, metric: Metric, *, several: bool) -> None:
        self.metric = metric
        self.several = several
        # Not "auto", which warns about rates of the model: the results name the source of a rate themselves.
        self._method: Answer = "analytic" if metric.calibration_ is None else "empirical"

    def threshold(self, rate: float) -> Estimate:
        """Return the score from which on chips are accepted; raise NotCalibratedError if the metric knows no rates."""
        return self._of_several(self.metric.threshold(rate, self._method))

    def false_alarm_rate(self, score: float) -> Estimate | None:
        """Return how often a chip of another kind scores as high."""
        try:
            return self._of_several(self.metric.false_alarm_rate(score, self._method))
        except NotCalibratedError:
            return None

    def false_alarm_rates(self, scores: Array) -> Sequence[Estimate | None]:
        """Return the rates of many scores; beyond a few, the logarithm of the rate is interpolated on a grid."""
        first = self.false_alarm_rate(scores[0]) if len(scores) else None
        if first is None or len(scores) <= _GRID_SCORES[first.method]:
            return [None if first is None else self.false_alarm_rate(score) for score in scores]
        grid = np.linspace(scores.min(), scores.max(), _GRID_SCORES[first.method])
        rates = [rate for score in grid if (rate := self.false_alarm_rate(score)) is not None]
        value, low, high = (
            np.exp(np.interp(scores, grid, np.log(np.maximum(column, _LEAST_RATE))))
            for column in zip(*((float(rate), rate.low, rate.high) for rate in rates), strict=True)
        )
        supported = np.interp(scores, grid, [float(rate.supported) for rate in rates]) == 1
        return [
            Estimate(value[i], method=first.method, low=low[i], high=high[i], supported=bool(supported[i]))
            for i in range(len(scores))
        ]

    def posteriors(self, scores: Array, prior: float) -> Sequence[float | None]:
        """Return how probable it is that chips with these scores are of the query's kind."""
        try:
            return [float(value) for value in self.metric.posterior(scores, prior, self._method)]
        except NotCalibratedError:
            return [None] * len(scores)

    def notes(self) -> tuple[str, ...]:
        """Return what a reader should know about the figures."""
        if self.several and self.false_alarm_rate(0.0) is not None:
            return ("Rates were measured for one example; for the mean of several they are a rough guide.",)
        return ()

    def _of_several(self, rate: Estimate) -> Estimate:
        if not self.several:
            return rate
        return Estimate(float(rate), method=rate.method, low=rate.low, high=rate.high, supported=False)


def scaled(rate: Estimate, rows: int) -> Estimate:
    """Return the expected number of rows at a rate."""
    low, high = rate.low * rows, rate.high * rows
    return Estimate(float(rate) * rows, method=rate.method, low=low, high=high, supported=rate.supported)
