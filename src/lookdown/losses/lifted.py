"""Lifted structure loss (Song et al., CVPR 2016, eq. 4)."""

from __future__ import annotations

import torch
from torch import Tensor

from lookdown.losses.loss import Loss, flag, number
from lookdown.losses.pairs import Pairs, distances, masked_logsumexp, unit, zero

__all__ = ["LiftedLoss"]


class LiftedLoss(Loss):
    """1/(2 P) sum over the P same pairs (i, j) of [J_ij]+^2, each pair once.

    J_ij = d_ij + log( sum over different samples k of i of e^(margin - d_ik) + the same for j ).

    margin: how far different samples are pushed, softly.
    normalize: put embeddings on the unit sphere first.
    """

    def __init__(self, *, margin: float = 1.0, normalize: bool = True) -> None:
        super().__init__()
        self.margin = number("margin", margin, least=0)
        self.normalize = flag("normalize", normalize)

    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        pairs = Pairs.of(labels)
        if not pairs.are_of_both_kinds:
            return zero(embeddings)
        d = distances(unit(embeddings) if self.normalize else embeddings)
        push = masked_logsumexp(self.margin - d, pairs.different, 1)
        i, j = pairs.same.triu().nonzero(as_tuple=True)
        return (torch.logaddexp(push[i], push[j]) + d[i, j]).clamp_min(0).square().mean() / 2
