"""Identity loss: softmax cross entropy on a linear classifier of the embedding."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from lookdown.losses.loss import ClassLoss, flag, initial_weights, widened

__all__ = ["IdentityLoss"]


class IdentityLoss(ClassLoss):
    """mean of -log softmax(W x + b)[label]; the classifier is dropped after training.

    bias: whether the classifier has the term b.
    """

    def __init__(self, classes: int, dimension: int, *, bias: bool = True, seed: int = 0) -> None:
        super().__init__(classes, dimension)
        self.weight = nn.Parameter(initial_weights(classes, dimension, seed))
        self.bias = nn.Parameter(torch.zeros(classes)) if flag("bias", bias) else None

    def logits(self, embeddings: Tensor) -> Tensor:
        """Return (batch, classes) logits; the largest is the class that the classifier takes the chip for."""
        with widened(embeddings) as x:
            return linear(x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))

    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(self.logits(embeddings), labels)
