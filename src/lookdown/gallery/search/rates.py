"""What scores are worth: false-alarm rates, posteriors, and what to say where a metric knows none."""

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

# Scores at which rates are worked out where there are more hits: a model's are smooth, and each takes a millisecond.
_GRID = {"empirical": 256, "analytic": 24, "simulated": 256}
_NEVER = 1e-300  # so that a rate of zero has a logarithm


class Rates:
    """What scores are worth under a metric; where it cannot say, the answer is None and a note tells why."""

    def __init__(self, metric: Metric, *, several: bool) -> None:
        self.metric = metric
        self.several = several
        # Not "auto", which warns where it is the model's: the results say themselves where a rate comes from.
        self._method: Answer = "analytic" if metric.calibration_ is None else "empirical"

    def threshold(self, rate: float) -> Estimate:
        """Return the score to accept at; where the metric knows none, that is an error."""
        return self._of_several(self.metric.threshold(rate, self._method))

    def false_alarm_rate(self, score: float) -> Estimate | None:
        """Return how often a chip of another kind scores as much."""
        try:
            return self._of_several(self.metric.false_alarm_rate(score, self._method))
        except NotCalibratedError:
            return None

    def false_alarm_rates(self, scores: Array) -> Sequence[Estimate | None]:
        """Return the same for many scores; between those of a grid the logarithm of a rate is interpolated."""
        first = self.false_alarm_rate(scores[0]) if len(scores) else None
        if first is None or len(scores) <= _GRID[first.method]:
            return [None if first is None else self.false_alarm_rate(score) for score in scores]
        grid = np.linspace(scores.min(), scores.max(), _GRID[first.method])
        known = [rate for score in grid if (rate := self.false_alarm_rate(score)) is not None]
        value, low, high = (
            np.exp(np.interp(scores, grid, np.log(np.maximum(column, _NEVER))))
            for column in zip(*((float(rate), rate.low, rate.high) for rate in known), strict=True)
        )
        supported = np.interp(scores, grid, [float(rate.supported) for rate in known]) == 1
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
        """Return what a reader should know of the figures beyond what they say of themselves."""
        if self.several and self.false_alarm_rate(0.0) is not None:
            return ("Rates were measured for one example; for the mean of several they are a rough guide.",)
        return ()

    def _of_several(self, rate: Estimate) -> Estimate:
        if not self.several:
            return rate
        return Estimate(float(rate), method=rate.method, low=rate.low, high=rate.high, supported=False)


def scaled(rate: Estimate, rows: int) -> Estimate:
    """Return how many of the rows that rate makes."""
    low, high = rate.low * rows, rate.high * rows
    return Estimate(float(rate) * rows, method=rate.method, low=low, high=high, supported=rate.supported)
