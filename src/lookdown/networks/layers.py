"""What runs on every image: a trunk, a pooling over its positions, and a head, which is learnt or a PCA."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lookdown.errors import InputError
from lookdown.networks.embedding import HeadKind, PoolingKind

__all__ = [
    "AveragePooling",
    "FixedProjection",
    "GeneralizedMean",
    "PrincipalComponents",
    "Trunk",
    "build_head",
    "build_pooling",
    "principal_components",
]

Array = NDArray[np.float64]

_HIDDEN = 256


class Trunk(nn.Module):
    """A network of timm without classifier and pooling, with one output layout for all of them.

    width: its features, as many as the input of the head.
    """

    def __init__(self, network: nn.Module, width: int = 0) -> None:
        super().__init__()
        self.network, self.width = network, width

    @property
    def dtype(self) -> torch.dtype:
        """The type of its weights, and of the images it takes."""
        return next(self.parameters()).dtype

    def forward(self, images: Tensor) -> Tensor:
        """Return (n, width, positions) of normalised images (n, bands, size, size)."""
        features: Tensor = self.network(images)
        if features.ndim == 3:  # tokens, the first of which may belong to no position
            return features[:, getattr(self.network, "num_prefix_tokens", 0) :].mT
        if getattr(self.network, "output_fmt", "NCHW") == "NHWC":
            features = features.permute(0, 3, 1, 2)
        return features.flatten(2)


class AveragePooling(nn.Module):
    """The mean over the positions of a map."""

    def forward(self, features: Tensor) -> Tensor:
        """Return (n, width) of (n, width, positions)."""
        return _wide(features).mean(dim=2)


class GeneralizedMean(nn.Module):
    """GeM (Radenović, Tolias and Chum 2018): (mean over positions of x^p)^(1/p), x cut off below at `floor`.

    p = 1 is the average, p to infinity the maximum. Learnt is log p, so that p stays positive and weight decay draws
    it towards the average. Powers are taken as logarithms: neither a large p nor a large feature overflows.
    """

    def __init__(self, exponent: float = 3.0, floor: float = 1e-6) -> None:
        super().__init__()
        self.log_exponent = nn.Parameter(torch.tensor(math.log(exponent)))
        self.floor = floor

    @property
    def exponent(self) -> Tensor:
        """The p of the formula."""
        return self.log_exponent.exp()

    def forward(self, features: Tensor) -> Tensor:
        """Return (n, width) of (n, width, positions)."""
        exponent = _wide(self.exponent)
        powers = exponent * _wide(features).clamp_min(self.floor).log()
        return ((powers.logsumexp(dim=2) - math.log(features.shape[2])) / exponent).exp()


def build_pooling(kind: PoolingKind) -> nn.Module:
    """Return the pooling of a name."""
    return GeneralizedMean() if kind == "gem" else AveragePooling()


def _wide(values: Tensor) -> Tensor:
    """Sum in single precision at least, under autocast and in half precision too."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


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
        dimension, width = components.axes.shape
        projection = cls(width, dimension)
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
        hidden = [nn.Linear(width, _HIDDEN, bias=False), nn.BatchNorm1d(_HIDDEN), nn.ReLU()]
        return nn.Sequential(*hidden, nn.Linear(_HIDDEN, dimension))
    return nn.Sequential(nn.Linear(width, dimension, bias=False), nn.BatchNorm1d(dimension))


def principal_components(batches: Iterable[NDArray[np.floating[Any]]], dimension: int) -> PrincipalComponents:
    """Return the first `dimension` components of features that come in batches, from their covariance in float64.

    Means and scatters of batches merge exactly (Chan, Golub and LeVeque 1983), so only one width x width matrix is
    kept. The sign of an axis is arbitrary; its entry of largest magnitude is made positive, so that the same features
    always give the same axes. More dimensions than the features vary in are refused.
    """
    count, mean, scatter = 0, np.zeros(()), np.zeros(())
    for batch in batches:
        features = batch.astype(np.float64)
        own_mean = features.mean(axis=0)
        centred, step, total = features - own_mean, own_mean - mean, count + len(features)
        scatter = scatter + centred.T @ centred + np.outer(step, step) * (count * len(features) / total)
        mean = mean + step * (len(features) / total)
        count = total
    if count < 2:
        raise InputError(f"principal components need at least two images, got {count}; give more images")
    variances, vectors = np.linalg.eigh(scatter / (count - 1))
    variances, vectors = variances[::-1], vectors[:, ::-1]
    noise = np.finfo(np.float32).eps ** 2 * len(variances)  # the rounding of float32 features causes less variance
    rank = int((variances > variances[0] * noise).sum())
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
