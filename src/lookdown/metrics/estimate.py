"""A number with its interval and its method."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

__all__ = ["Estimate", "Method"]

Method = Literal["empirical", "analytic", "simulated"]


class Estimate(float):
    """A float with a 95 % interval: `low`, `high`, the `method` behind it, and whether the data `supported` it.

    `empirical` comes from held-out pairs; `analytic` and `simulated` come from the fitted model alone, so they have
    no interval (NaN) and are never supported.
    """

    __slots__ = ("high", "low", "method", "supported")

    low: float
    high: float
    method: Method
    supported: bool

    def __new__(cls, value: float, *, method: Method, low: float, high: float, supported: bool) -> Self:
        """Return `value` with its interval and method."""
        estimate = super().__new__(cls, value)
        estimate.method, estimate.low, estimate.high, estimate.supported = method, low, high, supported
        return estimate

    @classmethod
    def of_model(cls, value: float, method: Method) -> Self:
        """Return an estimate of the model alone, without an interval."""
        return cls(value, method=method, low=math.nan, high=math.nan, supported=False)

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, Any]]:
        return (float(self),), {name: getattr(self, name) for name in ("method", "low", "high", "supported")}

    def __str__(self) -> str:
        return float.__repr__(self)

    def __repr__(self) -> str:
        interval = "" if math.isnan(self.low) else f", low={self.low:.6g}, high={self.high:.6g}"
        return f"Estimate({float(self):.6g}, method={self.method!r}{interval}, supported={self.supported})"
