"""Sparse pairwise loss, SP and AdaSP (Zhou et al., CVPR 2023), for batches of any order and any class sizes."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import softplus

from lookdown.losses.loss import Loss, number, one_of
from lookdown.losses.pairs import Pairs, cosines, masked_logsumexp, members_of, zero

__all__ = ["SPLoss"]

Positive = Literal["adaptive", "hardest", "least-hard"]


class SPLoss(Loss):
    """mean over classes i of softplus( log N_i - p_i / t ): one positive and one negative a class.

    With s the cosines and t the temperature, sums over a, b in class i (a = b too) and c outside of it:
    N_i = sum_ac e^(s_ac/t), the hardest positive h_i = -t log sum_ab e^(-s_ab/t), the least hard
    l_i = t log sum_a 1 / (sum_b e^(-s_ab/t)). AdaSP takes p = w h + (1 - w) l with w = 2hl/(h + l), a constant, and
    w = 0 where h < 0. Classes of one sample are left out.

    positive: `adaptive` is AdaSP, `hardest` and `least-hard` are SP-H and SP-LH.
    """

    def __init__(self, *, temperature: float = 0.04, positive: Positive = "adaptive") -> None:
        super().__init__()
        self.temperature = number("temperature", temperature, above=0)
        self.positive = one_of("positive", positive, *get_args(Positive))

    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        pairs = Pairs.of(labels)
        if not pairs.are_of_both_kinds:
            return zero(embeddings)
        members = members_of(labels)[1]
        members = members[members.sum(1) > 1]
        exponents = cosines(embeddings) / self.temperature
        far = masked_logsumexp(-exponents, ~pairs.different, 1)  # a sample itself is among its class
        near = masked_logsumexp(exponents, pairs.different, 1)
        hardest, least, negative = (masked_logsumexp(rows.expand_as(members), members, 1) for rows in (far, -far, near))
        return softplus(negative - self._positive(-hardest, least)).mean()

    def _positive(self, hardest: Tensor, least: Tensor) -> Tensor:
        """Return p/t of each class, from h/t and l/t."""
        if self.positive != "adaptive":
            return hardest if self.positive == "hardest" else least
        h, l = hardest.detach() * self.temperature, least.detach() * self.temperature  # noqa: E741 - as in the formula
        weight = torch.where(h > 0, 2 * h * l / torch.where(h > 0, h + l, 1), 0)
        return weight * hardest + (1 - weight) * least
