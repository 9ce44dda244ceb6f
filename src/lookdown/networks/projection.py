"""The head of an embedder: from the width of a trunk to the dimensions of an embedding."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lookdown.networks.principal_components import PrincipalComponents
from lookdown.networks.settings import HeadKind

__all__ = ["HIDDEN", "FixedProjection", "build_head"]

HIDDEN = 256


class FixedProjection(nn.Module):
    """Centre, then project on fixed axes; nothing is learnt by gradient."""

    mean: Tensor
    axes: Tensor

    def __init__(self, width: int, dimension: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("axes", torch.zeros(dimension, width))

    @classmethod
    def of(cls, components: PrincipalComponents) -> FixedProjection:
        """Build from a PCA; the axes keep their lengths of one, so that nothing is whitened."""
        projection = cls(components.axes.shape[1], components.axes.shape[0])
        projection.mean.copy_(torch.from_numpy(components.mean))
        projection.axes.copy_(torch.from_numpy(components.axes))
        return projection

    def as_linear(self) -> nn.Linear:
        """Return the same as one layer, the centre in its bias."""
        layer = nn.Linear(self.axes.shape[1], self.axes.shape[0]).to(self.axes)
        layer.weight.data.copy_(self.axes)
        layer.bias.data.copy_(-self.axes @ self.mean)
        return layer

    def forward(self, features: Tensor) -> Tensor:
        """Return (n, dimension) of (n, width)."""
        return (features - self.mean) @ self.axes.mT


def build_head(kind: HeadKind, width: int, dimension: int) -> nn.Module:
    """Return the head of a name, with fresh weights; a `pca` is all zeros until its axes are put in.

    A layer before a batch normalisation has no bias, for the normalisation would take it out again.
    """
    if kind == "pca":
        return FixedProjection(width, dimension)
    if kind == "mlp":
        hidden = [nn.Linear(width, HIDDEN, bias=False), nn.BatchNorm1d(HIDDEN), nn.ReLU()]
        return nn.Sequential(*hidden, nn.Linear(HIDDEN, dimension))
    return nn.Sequential(nn.Linear(width, dimension, bias=False), nn.BatchNorm1d(dimension))
