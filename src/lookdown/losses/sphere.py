"""Sphere loss, A-Softmax (Liu et al., CVPR 2017), with the annealing it needs to train."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lookdown.losses.loss import ClassLoss, initial_weights, number
from lookdown.losses.pairs import lengths, unit
from lookdown.metrics.inputs import as_count

__all__ = ["SphereLoss"]


class SphereLoss(ClassLoss):
    """Cross entropy of the logits |x| cos t_j, and |x| (a cos t + psi(t)) / (a + 1) for the own class.

    t is the angle to a class direction and psi(t) = (-1)^k cos(margin t) - 2k on [k pi/margin, (k+1) pi/margin].
    `progress` sets a = max(annealing_end, annealing_start / (1 + annealing_rate * fraction)).

    margin: a whole number; 1 is softmax on angles.
    annealing_start, annealing_end, annealing_rate: the annealing; psi alone hardly trains from scratch.
    """

    annealing: Tensor

    def __init__(
        self,
        classes: int,
        dimension: int,
        *,
        margin: int = 4,
        annealing_start: float = 1000.0,
        annealing_end: float = 5.0,
        annealing_rate: float = 3360.0,
        seed: int = 0,
    ) -> None:
        super().__init__(classes, dimension)
        self.margin = as_count(margin, "margin")
        self.annealing_end = number("annealing_end", annealing_end, least=0)
        self.annealing_start = number("annealing_start", annealing_start, least=self.annealing_end)
        self.annealing_rate = number("annealing_rate", annealing_rate, least=0)
        self.weight = nn.Parameter(initial_weights(classes, dimension, seed))
        self.register_buffer("annealing", torch.tensor(self.annealing_start))

    def progress(self, fraction: float) -> None:
        """Let the weight of the plain cosine fall."""
        super().progress(fraction)
        self.annealing.fill_(max(self.annealing_end, self.annealing_start / (1 + self.annealing_rate * fraction)))

    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        cosine = unit(embeddings) @ unit(self.weight.to(embeddings.dtype)).mT
        own = cosine.gather(1, labels[:, None])
        a = self.annealing.to(embeddings.dtype)
        blended = (a * own + _psi(own, self.margin)) / (a + 1)
        logits = lengths(embeddings)[:, None] * cosine.scatter(1, labels[:, None], blended)
        return cross_entropy(logits, labels)


def _psi(cosine: Tensor, margin: int) -> Tensor:
    """Return (-1)^k cos(margin t) - 2k by the Chebyshev recursion: acos has an infinite slope at both ends."""
    before, multiple = torch.ones_like(cosine), cosine
    for _ in range(margin - 1):
        before, multiple = multiple, 2 * cosine * multiple - before
    k = (cosine.detach().clamp(-1, 1).acos() * (margin / math.pi)).floor()
    return (1 - 2 * (k % 2)) * multiple - 2 * k
