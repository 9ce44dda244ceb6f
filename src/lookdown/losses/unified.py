"""Unified loss on cosine similarity over all pairs of the batch: the baseline of the GLRT loss."""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn.functional import softplus

from lookdown.losses.loss import Loss, number
from lookdown.losses.pairs import Pairs, cosines, masked_logsumexp, zero

__all__ = ["UnifiedLoss", "contrast"]


class UnifiedLoss(Loss):
    """log( 1 + sum over different pairs n and same pairs p of e^(temperature (s_n - s_p + margin)) ), s being cosines.

    The sum goes over every combination of two unordered pairs of the batch, whichever samples they have (Sun et al.,
    CVPR 2020, eq. 1; Eq. 12 of the GLRT paper with the cosine for its score).
    """

    def __init__(self, *, temperature: float = 8.0, margin: float = 0.0) -> None:
        super().__init__()
        self.temperature = number("temperature", temperature, above=0)
        self.margin = number("margin", margin)

    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        pairs = Pairs.of(labels)
        if not pairs.are_of_both_kinds:
            return zero(embeddings)
        return contrast(self.temperature * cosines(embeddings), pairs, self.temperature * self.margin)


def contrast(exponents: Tensor, pairs: Pairs, margin: float = 0.0) -> Tensor:
    """Return softplus( lse over different pairs + lse over same pairs of the negative + margin ), each pair once.

    `exponents` is (batch, batch) and symmetric, with both orders of a pair in it; hence the two halves.
    """
    push = masked_logsumexp(exponents, pairs.different, (0, 1)) - math.log(2)
    pull = masked_logsumexp(-exponents, pairs.same, (0, 1)) - math.log(2)
    return softplus(push + pull + margin)
