"""Shrinkage, inverses and factors of covariance matrices."""

from __future__ import annotations

from typing import Literal

import numpy as np

from lookdown.errors import InputError
from lookdown.metrics.inputs import Array

__all__ = ["inverse", "oas_shrinkage", "refuse_unusable", "shrink", "shrinkage_amount", "signed_factors"]


def oas_shrinkage(covariance: Array, samples: float) -> float:
    """Return the oracle-approximating shrinkage (Chen, Wiesel, Eldar and Hero 2010, eq. 23).

    samples: independent vectors (chips less the means taken off), not pairs. Pairs share chips; counting them would
        switch shrinkage off where it is needed most.
    """
    d, trace = len(covariance), float(np.trace(covariance))
    trace_of_square = float(np.square(covariance / trace).sum()) if trace else 0.0  # in units of the squared trace
    numerator = (1 - 2 / d) * trace_of_square + 1
    denominator = (samples + 1 - 2 / d) * (trace_of_square - 1 / d)
    return 1.0 if denominator <= numerator else numerator / denominator


def shrink(covariance: Array, amount: float) -> Array:
    """Blend with the sphere of the same trace: `(1 - amount) S + amount trace(S)/d I`."""
    d = len(covariance)
    return (1 - amount) * covariance + amount * float(np.trace(covariance)) / d * np.eye(d)


def shrinkage_amount(setting: float | Literal["auto"], covariance: Array, samples: float) -> float:
    """Return the amount for a `shrinkage` parameter: OAS for `auto`, else the number itself."""
    if isinstance(setting, str) and setting == "auto":
        return oas_shrinkage(covariance, samples)
    if not (isinstance(setting, int | float | np.number) and 0 <= setting <= 1):
        raise InputError(f"shrinkage must be 'auto' or a number from 0 to 1, got {setting!r}")
    return float(setting)


def inverse(covariance: Array, name: str) -> tuple[Array, float]:
    """Return the inverse of a covariance and its log determinant; refuse one that is singular to rounding, by name."""
    values, vectors = np.linalg.eigh(_symmetric(covariance))
    if not values[0] > values[-1] * len(values) * np.finfo(np.float64).eps:
        raise InputError(
            f"the covariance of {name} differences is singular (smallest eigenvalue {values[0]:.3g}, largest "
            f"{values[-1]:.3g}): there are too few samples, constant columns or only identical samples; use "
            "shrinkage='auto' or a number above 0, and more than one distinct sample a class"
        )
    return (vectors / values) @ vectors.T, float(np.log(values).sum())


def refuse_unusable(same: Array, different: Array, mean: Array) -> None:
    """Refuse a spread that overflows or is only rounding; shrinkage would turn it into a confident metric."""
    scale = float(np.trace(different)) / len(mean)
    if scale > 0 and not 1e-200 < scale < 1e200:
        direction = "up" if scale < 1 else "down"
        raise InputError(
            f"embeddings differ by about {scale**0.5:.1g}, whose square is out of range; scale them {direction}"
        )
    if np.trace(different) <= 1e-28 * (mean @ mean):
        raise InputError("all samples are identical to rounding, so there is nothing to learn; check the embedder")
    if np.trace(same) <= 1e-20 * np.trace(different):
        raise InputError(
            "the samples of each class are identical to rounding, so there is no same difference to learn from; "
            "give distinct chips of an object, not copies of one"
        )


def signed_factors(matrix: Array) -> tuple[Array, Array]:
    """Return `P` (d, p) and `N` (d, n) with `matrix = P P' - N N'`, without directions that are null to rounding.

    Columns come by falling weight, and the largest entry of each is positive, so that two machines agree.
    """
    values, vectors = np.linalg.eigh(_symmetric(matrix))
    values, vectors = values[::-1], vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.sign(vectors[largest, np.arange(len(values))])
    null = np.abs(values).max(initial=0.0) * len(values) * np.finfo(np.float64).eps
    factors = vectors * np.sqrt(np.abs(values))
    return np.ascontiguousarray(factors[:, values > null]), np.ascontiguousarray(factors[:, values < -null])


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2
