"""A world in which the paper's assumptions hold exactly, so that what it claims can be checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["GaussianWorld"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GaussianWorld:
    """Classes are drawn from N(0, between between'), chips from N(class, within within').

    So the difference of two chips is zero-mean Gaussian under both hypotheses.
    """

    within: Array  # (d, d)
    between: Array  # (d, d)

    @classmethod
    def random(cls, dim: int, *, seed: int = 0, gap: float = 2.0) -> Self:
        """Return a world whose classes lie `gap` times as wide as they spread, along other axes than they spread."""
        rng = np.random.default_rng(seed)
        spread = np.geomspace(0.3, 2.0, dim)
        within = np.linalg.qr(rng.normal(size=(dim, dim)))[0] * spread
        between = gap * np.linalg.qr(rng.normal(size=(dim, dim)))[0] * spread
        return cls(within, between)

    @property
    def same_covariance(self) -> Array:
        """True covariance of the difference of two chips of one class."""
        return 2 * self.within @ self.within.T

    @property
    def different_covariance(self) -> Array:
        """True covariance of the difference of two chips of two classes."""
        return self.same_covariance + 2 * self.between @ self.between.T

    def chips(self, classes: int, per_class: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.int64]]:
        """Return embeddings and labels of fresh classes."""
        centres = self._centres(classes, rng)
        labels = np.repeat(np.arange(classes), per_class)
        return centres[labels] + self._noise(len(labels), rng), labels

    def pairs(self, count: int, rng: np.random.Generator, *, same: bool) -> tuple[Array, Array]:
        """Return the two sides of independent pairs, each pair of fresh classes."""
        first = self._centres(count, rng)
        second = first if same else self._centres(count, rng)
        return first + self._noise(count, rng), second + self._noise(count, rng)

    def _centres(self, count: int, rng: np.random.Generator) -> Array:
        return np.asarray(rng.normal(size=(count, len(self.between))) @ self.between.T)

    def _noise(self, count: int, rng: np.random.Generator) -> Array:
        return np.asarray(rng.normal(size=(count, len(self.within))) @ self.within.T)
