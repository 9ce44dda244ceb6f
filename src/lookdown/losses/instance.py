"""Instance loss (Zheng et al., TOMM 2020) within a batch: a classifier whose classes are the labels of the batch."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lookdown.losses.loss import Loss, number, one_of
from lookdown.losses.pairs import members_of, unit, zero

__all__ = ["InstanceLoss"]


class InstanceLoss(Loss):
    """Cross entropy of gamma u F' against the own label; F holds the mean of each label of the batch, on the sphere.

    gamma: scale of the cosines.
    rows: the rows u that are classified. `chips` are the unit embeddings, which are pulled to the mean of their label
        and pushed from the others; `means` are the rows of F, which are only pushed apart.
    """

    def __init__(self, *, gamma: float = 4.0, rows: Literal["chips", "means"] = "chips") -> None:
        super().__init__()
        self.gamma = number("gamma", gamma, above=0)
        self.rows = one_of("rows", rows, "chips", "means")

    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        names, members = members_of(labels)
        if len(names) < 2:
            return zero(embeddings)
        directions = unit(embeddings)
        means = unit(members.to(embeddings.dtype) @ directions)
        if self.rows == "means":
            return cross_entropy(self.gamma * means @ means.mT, torch.arange(len(names), device=labels.device))
        return cross_entropy(self.gamma * directions @ means.mT, torch.searchsorted(names, labels))
