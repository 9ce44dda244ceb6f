"""Circle loss (Sun et al., CVPR 2020, eq. 6)."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softplus

from lookdown.losses.loss import Loss, number
from lookdown.losses.pairs import Pairs, cosines, masked_logsumexp, zero

__all__ = ["CircleLoss"]


class CircleLoss(Loss):
    """mean over anchors of softplus( lse_n[gamma a_n (s_n - margin)] + lse_p[-gamma a_p (s_p - 1 + margin)] ).

    s are cosines; the weights a_n = [s_n + margin]+ and a_p = [1 + margin - s_p]+ take no gradient. Anchors without a
    same or without a different sample are left out.

    margin: same pairs aim at 1 - margin, different ones at margin.
    gamma: scale of the exponents.
    """

    def __init__(self, *, margin: float = 0.4, gamma: float = 80.0) -> None:
        super().__init__()
        self.margin = number("margin", margin, least=0, most=1)
        self.gamma = number("gamma", gamma, above=0)

    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        pairs = Pairs.of(labels)
        anchors = pairs.anchors
        if not len(anchors):
            return zero(embeddings)
        s = cosines(embeddings)[anchors]
        pull = -self.gamma * (1 + self.margin - s.detach()).clamp_min(0) * (s - 1 + self.margin)
        push = self.gamma * (s.detach() + self.margin).clamp_min(0) * (s - self.margin)
        near = masked_logsumexp(push, pairs.different[anchors], 1)
        return softplus(near + masked_logsumexp(pull, pairs.same[anchors], 1)).mean()
