"""From a map of features to one vector: the plain mean, or a learnt mean between that and the maximum."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from lookdown.networks.embedder_settings import PoolingKind

__all__ = ["AveragePooling", "GeneralizedMean", "build_pooling"]


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
