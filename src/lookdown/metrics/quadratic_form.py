"""The law of a Gaussian quadratic form: a weighted sum of independent chi-squares, tails included."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from lookdown.metrics.inputs import Array

__all__ = ["QuadraticForm"]


class QuadraticForm:
    """`Q = sum_i weights[i] * g_i**2` with independent standard normal `g_i`; weights of either sign.

    `x' M x` with `x ~ N(0, S)` has the eigenvalues of `S^(1/2) M S^(1/2)` as its weights. The distribution function
    is the contour integral of exp(K(s) - s q) / s, K being the cumulant generating function, taken through the
    saddle point of the integrand along a bent path (Rice 1980; Helstrom 1983). The height of the saddle carries the
    size of the probability, so a tail of 1e-12 has as many right digits as one of 0.1; a normal approximation or an
    inversion along the imaginary axis loses those digits first.
    """

    def __init__(self, weights: Array) -> None:
        weights = np.asarray(weights, dtype=np.float64)
        self._scale = float(np.abs(weights).max(initial=0.0)) or 1.0
        relative = weights / self._scale
        self._weights: Array = relative[np.abs(relative) > 1e-14]  # the largest is 1 or -1
        self._mean = float(self._weights.sum())
        self._deviation = float(np.sqrt(2 * np.square(self._weights).sum()))

    @property
    def mean(self) -> float:
        """Expected value."""
        return self._mean * self._scale

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        return self._deviation * self._scale

    def cdf(self, value: float) -> float:
        """P(Q <= value)."""
        if not len(self._weights):
            return float(value >= 0)
        q = value / self._scale
        return math.exp(self._log_tail(q, -1)) if q < self._mean else -math.expm1(self._log_tail(q, 1))

    def sf(self, value: float) -> float:
        """P(Q > value)."""
        if not len(self._weights):
            return float(value < 0)
        q = value / self._scale
        return -math.expm1(self._log_tail(q, -1)) if q < self._mean else math.exp(self._log_tail(q, 1))

    def quantile(self, probability: float) -> float:
        """Return the value that Q stays below with this probability, strictly between 0 and 1."""
        if not len(self._weights):
            return 0.0
        side = -1 if math.log(probability) < self._log_tail(self._mean, -1) else 1
        wanted = math.log(probability) if side < 0 else math.log1p(-probability)

        def excess(q: float) -> float:
            return max(self._log_tail(q, side), -1e300) - wanted

        one_sided = self._weights.min() > 0 if side < 0 else self._weights.max() < 0
        if one_sided:  # the tail ends at zero: look for the logarithm, which may be far below
            sign = math.copysign(1, self._mean)
            start = math.log(abs(self._mean))
            return sign * self._scale * math.exp(_root(lambda u: excess(sign * math.exp(u)), start, -1.0))
        return self._scale * _root(excess, self._mean, side * self._deviation)

    def _log_tail(self, q: float, side: int) -> float:
        """Return log P(Q <= q) for side -1 and log P(Q > q) for side 1, by the trapezoidal rule through the saddle."""
        saddle = self._saddle(q, side)
        if saddle is None:
            return -math.inf
        poles = 2 * self._weights / (1 - 2 * self._weights * saddle)
        second = np.square(poles).sum() / 2 + saddle**-2
        third = (poles**3).sum() - 2 * saddle**-3
        # Steepest descent gives the bend; its side must be the one on which exp(-s q) decays.
        bend = math.copysign(max(abs(third / (3 * second)), 0.1 / abs(saddle)), q)
        width = 1 / math.sqrt(second)
        peak = float(self._log_integrand(np.array([saddle], dtype=np.complex128), q, side)[0].real)

        total, step, reach = math.inf, 0.25, 90.0
        while True:
            t = np.arange(0, reach, step)
            y = width * np.sinh(t)  # the stretch turns algebraic decay into exponential decay
            path = saddle + 1j * y + bend / 2 * y**2
            height = np.exp(self._log_integrand(path, q, side) - peak)
            terms = (height * (1 - 1j * bend * y)).real * np.hypot(y, width)
            previous, total = total, step * float(terms.sum() - terms[0] / 2)
            if abs(total - previous) <= 1e-11 * abs(total) or step < 0.005:
                return min(0.0, peak + math.log(total / math.pi))
            reach = min(reach, t[np.abs(terms) > 1e-17 * terms[0]].max() + 2 * step)
            step /= 2

    def _log_integrand(self, s: NDArray[np.complex128], q: float, side: int) -> NDArray[np.complex128]:
        cumulants = -0.5 * np.log(1 - 2 * np.multiply.outer(s, self._weights)).sum(axis=-1)
        return np.asarray(cumulants - s * q - np.log(side * s), dtype=np.complex128)

    def _saddle(self, q: float, side: int) -> float | None:
        """Return the one real stationary point of the integrand on the chosen side of its pole at zero.

        None means that there is none within the range of numbers: nothing of Q lies beyond q.
        """
        toward = side * self._weights
        limit = 1 / (2 * toward.max()) if toward.max() > 0 else 1e100  # squares stay in range

        def slope(u: float) -> float:  # rises from -inf at 0 to above 0 at the limit
            return float((toward / (1 - 2 * toward * u)).sum() - side * q - 1 / u)

        low = high = min(1 / self._deviation, limit / 2)
        while slope(low) > 0:
            low /= 2
        while slope(high) < 0:
            high = min(2 * high, (high + limit) / 2)
            if limit - high <= 1e-13 * limit:
                return None
        return side * float(brentq(slope, low, high, rtol=1e-12, xtol=1e-300, maxiter=1000))


def _root(excess: Callable[[float], float], start: float, step: float) -> float:
    """Return where `excess`, positive at `start`, falls through zero in the direction of `step`."""
    if excess(start) <= 0:  # the median of a symmetric form, to rounding
        return start
    far = start + step
    while excess(far) > 0:
        step *= 2
        far = start + step
    return float(brentq(excess, *sorted((start, far)), xtol=1e-14, rtol=1e-13, maxiter=1000))
