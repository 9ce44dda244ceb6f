"""Instance loss (Zheng et al., TOMM 2020) within a batch: each label is told from the others of the batch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lookdown.losses.loss import Loss
from lookdown.losses.pairs import members_of, unit, zero
from lookdown.losses.parameters import number

__all__ = ["InstanceLoss"]


class InstanceLoss(Loss):
    """Cross entropy of gamma F F' against the diagonal, F holding the mean of each label of the batch, on the sphere.

    gamma: scale of the cosines.
    """

    def __init__(self, *, gamma: float = 64.0) -> None:
        super().__init__()
        self.gamma = number("gamma", gamma, above=0)

    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        names, members = members_of(labels)
        if len(names) < 2:
            return zero(embeddings)
        means = unit(members.to(embeddings.dtype) @ unit(embeddings))
        return cross_entropy(self.gamma * means @ means.mT, torch.arange(len(names), device=labels.device))
