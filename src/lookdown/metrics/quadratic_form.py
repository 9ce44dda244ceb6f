"""The law of a Gaussian quadratic form: a weighted sum of independent chi-squares, tails included."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

__all__ = ["QuadraticForm"]

Array = NDArray[np.float64]


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
        largest = np.abs(weights).max(initial=0.0)
        self.weights: Array = weights[np.abs(weights) > largest * 1e-14]

    @property
    def mean(self) -> float:
        """Expected value."""
        return float(self.weights.sum())

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        return float(np.sqrt(2 * np.square(self.weights).sum()))

    def cdf(self, value: float) -> float:
        """P(Q <= value)."""
        if not len(self.weights):
            return float(value >= 0)
        return self._tail(value, lower=True) if value < self.mean else 1 - self._tail(value, lower=False)

    def sf(self, value: float) -> float:
        """P(Q > value)."""
        if not len(self.weights):
            return float(value < 0)
        return 1 - self._tail(value, lower=True) if value < self.mean else self._tail(value, lower=False)

    def quantile(self, probability: float) -> float:
        """Return the value that Q stays below with this probability."""
        if not len(self.weights):
            return 0.0
        lower = probability < self._tail(self.mean, lower=True)
        wanted = math.log(probability) if lower else math.log1p(-probability)

        def excess(value: float) -> float:
            tail = self._tail(value, lower=lower)
            return (math.log(tail) if tail else -1e6) - wanted

        bracket = sorted((self.mean, self._far_out(excess, lower=lower)))
        smallest = 1e-300 if min(bracket) * max(bracket) > 0 else 1e-14 * self.deviation
        return float(brentq(excess, *bracket, xtol=smallest, rtol=1e-12))

    def _far_out(self, excess: Callable[[float], float], *, lower: bool) -> float:
        """Return a value whose tail is smaller than the wanted one; a form of one sign ends at zero."""
        ends_at_zero = self.weights.min() > 0 if lower else self.weights.max() < 0
        direction = -1.0 if lower else 1.0
        value = self.mean
        for power in range(1000):
            value = value / 2 if ends_at_zero else self.mean + direction * self.deviation * 2.0**power
            if excess(value) < 0:
                break
        return value

    def _tail(self, value: float, *, lower: bool) -> float:
        """P(Q <= value) or P(Q > value), as asked, by the trapezoidal rule on a path through the saddle."""
        if (lower and self.weights.min() > 0 and value <= 0) or (not lower and self.weights.max() < 0 and value >= 0):
            return 0.0
        sign = -1.0 if lower else 1.0
        saddle = self._saddle(value, sign)
        poles = 2 * self.weights / (1 - 2 * self.weights * saddle)
        second = np.square(poles).sum() / 2 + saddle**-2
        third = (poles**3).sum() - 2 * saddle**-3
        # Steepest descent gives the bend; its side must be the one on which exp(-s q) decays.
        bend = math.copysign(max(abs(third / (3 * second)), 0.1 / abs(saddle)), value)
        width = 1 / math.sqrt(second)
        peak = float(self._log_integrand(np.array([saddle], dtype=np.complex128), value, sign)[0].real)

        total, step, reach = math.inf, 0.25, 90.0
        while True:
            t = np.arange(0, reach, step)
            y = width * np.sinh(t)  # the stretch turns algebraic decay into exponential decay
            path = saddle + 1j * y + bend / 2 * y**2
            height = np.exp(self._log_integrand(path, value, sign) - peak)
            terms = (height * (1 - 1j * bend * y)).real * np.hypot(y, width)
            previous, total = total, step * float(terms.sum() - terms[0] / 2)
            if abs(total - previous) <= 1e-11 * abs(total) or step < 0.005:
                return min(1.0, max(0.0, math.exp(peak) * total / math.pi))
            reach = min(reach, t[np.abs(terms) > 1e-17 * terms[0]].max() + 2 * step)
            step /= 2

    def _log_integrand(self, s: NDArray[np.complex128], value: float, sign: float) -> NDArray[np.complex128]:
        cumulants = -0.5 * np.log(1 - 2 * np.multiply.outer(s, self.weights)).sum(axis=-1)
        return np.asarray(cumulants - s * value - np.log(sign * s), dtype=np.complex128)

    def _saddle(self, value: float, sign: float) -> float:
        """Return the one real stationary point of the integrand on the chosen side of its pole at zero."""
        same_side = sign * self.weights
        limit = 1 / (2 * same_side.max()) if same_side.max() > 0 else math.inf

        def slope(u: float) -> float:  # rises from -inf at 0 to above 0 at the limit
            return float((same_side / (1 - 2 * same_side * u)).sum() - sign * value - 1 / u)

        low = high = min(1 / self.deviation, limit / 2)
        while slope(low) > 0:
            low /= 2
        while slope(high) < 0:
            high = 2 * high if math.isinf(limit) else (high + limit) / 2
        return sign * float(brentq(slope, low, high, rtol=1e-12, xtol=1e-300))
