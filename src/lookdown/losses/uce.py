"""Unified cross entropy (UniFace; Zhou et al., ICCV 2023): one threshold for all classes."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from lookdown.losses.loss import ClassLoss, initial_weights, number
from lookdown.losses.pairs import unit

__all__ = ["UCELoss"]


class UCELoss(ClassLoss):
    """mean of softplus(b - scale (cos t_y - margin)) + negatives * sum over j != y of softplus(scale cos t_j - b).

    b is learnt, one for all classes, and starts at log(10 classes).

    margin, scale: of the cosine to a class direction.
    negatives: weight of the other classes.
    """

    def __init__(
        self,
        classes: int,
        dimension: int,
        *,
        margin: float = 0.4,
        scale: float = 64.0,
        negatives: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__(classes, dimension)
        self.margin = number("margin", margin, least=0)
        self.scale = number("scale", scale, above=0)
        self.negatives = number("negatives", negatives, above=0)
        self.weight = nn.Parameter(initial_weights(classes, dimension, seed))
        self.threshold = nn.Parameter(torch.tensor(math.log(10 * classes)))

    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        cosine = unit(embeddings) @ unit(self.weight.to(embeddings.dtype)).mT
        threshold = self.threshold.to(embeddings.dtype)
        own = softplus(threshold - self.scale * (cosine.gather(1, labels[:, None]) - self.margin))
        others = softplus(self.scale * cosine - threshold).scatter(1, labels[:, None], 0)
        return (own[:, 0] + self.negatives * others.sum(1)).mean()
