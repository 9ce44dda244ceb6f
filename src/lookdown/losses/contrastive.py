"""Contrastive loss (Hadsell, Chopra and LeCun, CVPR 2006, eq. 4)."""

from __future__ import annotations

from torch import Tensor

from lookdown.losses.loss import Loss, flag, number
from lookdown.losses.pairs import Pairs, distances, unit, zero

__all__ = ["ContrastiveLoss"]


class ContrastiveLoss(Loss):
    """mean over same pairs of d^2 / 2, plus mean over different pairs of [margin - d]+^2 / 2.

    Same and different pairs have a mean each; if the batch has none of one sort, that mean is left out.

    margin: different pairs farther apart than this are left alone.
    normalize: put embeddings on the unit sphere first.
    """

    def __init__(self, *, margin: float = 1.0, normalize: bool = True) -> None:
        super().__init__()
        self.margin = number("margin", margin, above=0)
        self.normalize = flag("normalize", normalize)

    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        pairs = Pairs.of(labels)
        d = distances(unit(embeddings) if self.normalize else embeddings)
        total = zero(embeddings)
        for mask, costs in ((pairs.same, d), (pairs.different, (self.margin - d).clamp_min(0))):
            if mask.any():
                total = total + costs[mask].square().mean() / 2
        return total
