"""Center contrastive loss (Cai, Xiong and Tian 2023): an embedding against a bank of class centers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from lookdown.losses.loss import ClassLoss, number, widened
from lookdown.losses.pairs import members_of, unit, zero

__all__ = ["CCLLoss"]


class CCLLoss(ClassLoss):
    """Cross entropy of scale (cos - margin for the own class) to the centers, plus pull (1 - cos to the own center).

    `update` moves the center of each class in a batch towards the mean of its embeddings, and back onto the sphere. A
    class has a center from its first update on; until then it takes no part.

    momentum: how much of the old center stays.
    """

    centers: Tensor
    known: Tensor

    def __init__(
        self,
        classes: int,
        dimension: int,
        *,
        scale: float = 64.0,
        margin: float = 0.35,
        pull: float = 1.0,
        momentum: float = 0.9,
    ) -> None:
        super().__init__(classes, dimension)
        self.scale = number("scale", scale, above=0)
        self.margin = number("margin", margin, least=0)
        self.pull = number("pull", pull, least=0)
        self.momentum = number("momentum", momentum, least=0, most=1)
        self.register_buffer("centers", torch.zeros(classes, dimension))
        self.register_buffer("known", torch.zeros(classes, dtype=torch.bool))

    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        usable = self.known[labels]
        if not usable.any():
            return zero(embeddings)
        cosine = (unit(embeddings) @ self.centers.to(embeddings.dtype).mT)[usable]
        labels = labels[usable]
        own = one_hot(labels, self.classes).to(cosine.dtype)
        logits = self.scale * (cosine - self.margin * own)
        contrast = cross_entropy(logits.masked_fill(~self.known, -torch.inf), labels)
        return contrast + self.pull * (1 - cosine.gather(1, labels[:, None])).mean()

    @torch.no_grad()
    def update(self, embeddings: Tensor, labels: Tensor) -> None:
        """Move the centers of the classes in the batch; a batch with NaN or infinite embeddings changes nothing."""
        super().update(embeddings, labels)
        if not embeddings.isfinite().all():
            return
        seen, members = members_of(labels.long())
        with widened(embeddings) as x:
            means = members.to(x.dtype) @ unit(x) / members.sum(1)[:, None]
            momentum = self.momentum * self.known[seen, None].to(x.dtype)
            moved = unit(momentum * self.centers[seen].to(x.dtype) + (1 - momentum) * means)
        usable = moved.any(1)  # the mean of opposite embeddings has no direction
        self.centers[seen[usable]] = moved[usable].to(self.centers.dtype)
        self.known[seen[usable]] = True
