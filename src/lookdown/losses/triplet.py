"""Triplet loss on the hardest pairs of the batch (Hermans, Beyer and Leibe 2017)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from lookdown.losses.loss import Loss, flag, number
from lookdown.losses.pairs import Pairs, distances, unit, zero

__all__ = ["TripletLoss"]


class TripletLoss(Loss):
    """mean over anchors of [farthest same - nearest different + margin]+, distances being Euclidean.

    Anchors without a same or without a different sample are left out.

    margin: a number, or `soft` for softplus(farthest same - nearest different).
    normalize: put embeddings on the unit sphere first.
    """

    def __init__(self, *, margin: float | Literal["soft"] = 0.2, normalize: bool = True) -> None:
        super().__init__()
        self.margin = margin if margin == "soft" else number("margin", margin, least=0)
        self.normalize = flag("normalize", normalize)

    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        pairs = Pairs.of(labels)
        anchors = pairs.anchors
        if not len(anchors):
            return zero(embeddings)
        d = distances(unit(embeddings) if self.normalize else embeddings)[anchors]
        farthest = d.masked_fill(~pairs.same[anchors], -torch.inf).amax(1)
        nearest = d.masked_fill(~pairs.different[anchors], torch.inf).amin(1)
        if isinstance(self.margin, str):
            return softplus(farthest - nearest).mean()
        return (farthest - nearest + self.margin).clamp_min(0).mean()
