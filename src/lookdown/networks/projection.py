"""The head of an embedder: from the width of a trunk to the dimensions of an embedding; learnt, or a PCA."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lookdown.errors import InputError
from lookdown.networks.embedder_settings import HeadKind

__all__ = ["HIDDEN", "FixedProjection", "PrincipalComponents", "build_head", "principal_components"]

HIDDEN = 256
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PrincipalComponents:
    """The directions in which features vary most, largest first."""

    mean: Array  # (width,)
    axes: Array  # (dimension, width), orthonormal rows; the largest entry of each is positive
    variances: Array  # (dimension,)


class FixedProjection(nn.Module):
    """Centre, then project on fixed axes; no gradient is used."""

    mean: Tensor
    axes: Tensor

    def __init__(self, width: int, dimension: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("axes", torch.zeros(dimension, width))

    @classmethod
    def of(cls, components: PrincipalComponents) -> FixedProjection:
        """Build from a PCA; axes have length one, so nothing is whitened."""
        projection = cls(components.axes.shape[1], components.axes.shape[0])
        projection.mean.copy_(torch.from_numpy(components.mean))
        projection.axes.copy_(torch.from_numpy(components.axes))
        return projection

    def as_linear(self) -> nn.Linear:
        """Return the same function as one layer, with the centre in its bias."""
        layer = nn.Linear(self.axes.shape[1], self.axes.shape[0]).to(self.axes)
        layer.weight.data.copy_(self.axes)
        layer.bias.data.copy_(-self.axes @ self.mean)
        return layer

    def forward(self, features: Tensor) -> Tensor:
        """Return (n, dimension) of (n, width)."""
        return (features - self.mean) @ self.axes.mT


def build_head(kind: HeadKind, width: int, dimension: int) -> nn.Module:
    """Return the head of this kind with random weights; a `pca` is zero until its axes are loaded.

    A layer before a batch normalisation has no bias, because the normalisation would remove it.
    """
    if kind == "pca":
        return FixedProjection(width, dimension)
    if kind == "mlp":
        hidden = [nn.Linear(width, HIDDEN, bias=False), nn.BatchNorm1d(HIDDEN), nn.ReLU()]
        return nn.Sequential(*hidden, nn.Linear(HIDDEN, dimension))
    return nn.Sequential(nn.Linear(width, dimension, bias=False), nn.BatchNorm1d(dimension))


def principal_components(batches: Iterable[NDArray[np.floating[Any]]], dimension: int) -> PrincipalComponents:
    """Return the first `dimension` components of features that come in batches, from their covariance in float64.

    Means and scatters of batches merge exactly (Chan, Golub and LeVeque 1983), so only one width x width matrix is
    kept. The sign of an axis is arbitrary; its entry of largest magnitude is made positive, so that the same features
    always give the same axes. More dimensions than the features vary in are refused.
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
    """Count the directions with more variance than rounding of float32 features causes."""
    noise = np.finfo(np.float32).eps ** 2 * len(variances)
    return int((variances > variances[0] * noise).sum())
