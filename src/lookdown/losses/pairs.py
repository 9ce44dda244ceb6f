"""The pairs of a batch: which are same, which are different, and how near they are."""

from __future__ import annotations

from typing import NamedTuple, Self

import torch
from torch import Tensor

__all__ = ["Pairs", "cosines", "distances", "lengths", "masked_logsumexp", "members_of", "unit", "zero"]

_SMALLEST = 1e-12  # a row whose largest entry is below this has no direction


class Pairs(NamedTuple):
    """Both orders of every pair of a batch, as (batch, batch) masks; a sample does not pair with itself."""

    same: Tensor
    different: Tensor

    @classmethod
    def of(cls, labels: Tensor) -> Self:
        """Return the pairs of labelled samples."""
        equal = labels[:, None] == labels
        return cls(equal.clone().fill_diagonal_(False), ~equal)

    @property
    def anchors(self) -> Tensor:
        """Samples that are in a same and in a different pair: indices into the batch."""
        return (self.same.any(1) & self.different.any(1)).nonzero()[:, 0]

    @property
    def are_of_both_kinds(self) -> bool:
        """Whether there is a same and a different pair."""
        return bool(self.same.any()) and bool(self.different.any())


def members_of(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distinct labels of a batch, and a (labels, batch) mask of the samples that have them."""
    names: Tensor = torch.unique(labels)
    return names, names[:, None] == labels


def zero(embeddings: Tensor) -> Tensor:
    """Return a zero with zero gradients; NaN for embeddings that are not finite, even where no pair uses them."""
    return (embeddings * 0).sum()


def unit(x: Tensor) -> Tensor:
    """Put each row on the unit sphere; a row without direction becomes zero and gets no gradient.

    Rows are divided by their largest entry first, since the square of a very large one overflows.
    """
    scaled, _ = _scaled(x)
    norms: Tensor = torch.linalg.vector_norm(scaled, dim=1, keepdim=True)
    return scaled / norms.masked_fill(norms == 0, 1)


def lengths(x: Tensor) -> Tensor:
    """Return |x| of each row, with gradient zero for a row without direction."""
    scaled, peaks = _scaled(x)
    norms: Tensor = torch.linalg.vector_norm(scaled, dim=1)
    return norms * peaks[:, 0]


def cosines(x: Tensor) -> Tensor:
    """Return the cosine similarity of all pairs of rows."""
    directions = unit(x)
    return directions @ directions.mT


def distances(x: Tensor) -> Tensor:
    """Return |x_i - x_j| of all pairs of rows, from the differences themselves.

    A matrix product would be faster, but lose the small distances and the directions of their gradients.
    Two equal rows have distance and gradient zero.
    """
    return torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")


def masked_logsumexp(values: Tensor, mask: Tensor, dim: int | tuple[int, ...]) -> Tensor:
    """Return log sum exp over the entries in the mask, of which there must be one."""
    return values.masked_fill(~mask, -torch.inf).logsumexp(dim)


def _scaled(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows divided by their largest entry (rows without direction become zero), and the divisors, constants."""
    peaks = x.detach().abs().amax(dim=1, keepdim=True)
    directionless = peaks < _SMALLEST
    peaks = peaks.masked_fill(directionless, 1)
    return (x / peaks).masked_fill(directionless, 0), peaks
