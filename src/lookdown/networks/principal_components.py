"""Exact principal components of any number of features, seen batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError

__all__ = ["PrincipalComponents", "principal_components"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PrincipalComponents:
    """The directions in which features vary most, largest first."""

    mean: Array  # (width,)
    axes: Array  # (dimension, width), orthonormal rows; the largest entry of each is positive
    variances: Array  # (dimension,)


def principal_components(batches: Iterable[NDArray[np.floating[Any]]], dimension: int) -> PrincipalComponents:
    """Return the first `dimension` components, by way of the covariance in float64.

    Means and scatters of batches merge exactly (Chan, Golub and LeVeque 1983), so nothing but one width x width
    matrix is kept. An axis is known up to its sign only; the entry of largest size is made positive, so that the same
    features always give the same axes. Directions in which the features do not vary cannot be told apart and are
    refused.
    """
    count, mean, scatter = 0, np.zeros(0), np.zeros((0, 0))
    for batch in batches:
        features = batch.astype(np.float64)
        own_mean = features.mean(axis=0)
        centred = features - own_mean
        if not count:
            count, mean, scatter = len(features), own_mean, centred.T @ centred
            continue
        step, total = own_mean - mean, count + len(features)
        scatter += centred.T @ centred + np.outer(step, step) * (count * len(features) / total)
        mean = mean + step * (len(features) / total)
        count = total
    if count < 2:
        raise InputError(f"principal components need at least two images, got {count}; give more images")
    variances, vectors = np.linalg.eigh(scatter / (count - 1))
    variances, vectors = variances[::-1], vectors[:, ::-1]
    rank = _rank(variances)
    if rank < dimension:
        raise InputError(
            f"a projection to {dimension} dimensions needs images that vary in as many directions, but these {count} "
            f"vary in {rank} of {len(mean)}; give more than {dimension} images that differ, or a dimension of at most "
            f"{rank}"
        )
    axes = vectors[:, :dimension].T
    largest = np.abs(axes).argmax(axis=1)
    axes = axes * np.sign(axes[np.arange(dimension), largest])[:, None]
    return PrincipalComponents(mean, axes, variances[:dimension])


def _rank(variances: Array) -> int:
    """Count the directions with more variance than the rounding of float32 features makes by itself."""
    noise = np.finfo(np.float32).eps ** 2 * len(variances)
    return int((variances > variances[0] * noise).sum())
