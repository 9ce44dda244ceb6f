"""Differences and distances between the rows of two matrices."""

from __future__ import annotations

import numpy as np

from lookdown.errors import InputError
from lookdown.metrics.inputs import Embeddings

__all__ = ["centred", "half_squared_distances", "half_squares", "half_squares_of_gaps", "paired_differences"]


def half_squared_distances(a: Embeddings, b: Embeddings) -> Embeddings:
    """Return `|a_i - b_j|^2 / 2` as (rows of a, rows of b)."""
    a, b = centred(a, b)
    return half_squares_of_gaps(a, b, half_squares(a), half_squares(b))


def half_squares_of_gaps(
    a: Embeddings, b: Embeddings, own: Embeddings, other: Embeddings, out: Embeddings | None = None
) -> Embeddings:
    """Return `|a_i - b_j|^2 / 2` of centred rows, given `own`, the half squares of `a`, and `other`, those of `b`."""
    halves: Embeddings = np.matmul(a, b.T, out=out)
    np.subtract(own[:, None], halves, out=halves)
    halves += other
    return np.maximum(halves, 0, out=halves)  # rounding may put equal rows closer than zero


def centred(a: Embeddings, b: Embeddings) -> tuple[Embeddings, Embeddings]:
    """Subtract the mean of `b` from both.

    Distances stay the same. Without it, |a|^2 + |b|^2 - 2 ab loses a digit for each by which an offset exceeds the
    spread.
    """
    centre = b.mean(axis=0, dtype=np.float64).astype(b.dtype)
    return a - centre, b - centre


def half_squares(rows: Embeddings) -> Embeddings:
    """Return `|row|^2 / 2`, or refuse rows whose square overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows) / 2
    if not np.isfinite(squares).all():
        raise InputError(
            f"an embedding is so large that its square overflows {rows.dtype}; scale the embeddings down, or use a "
            "metric with normalize=True"
        )
    return np.asarray(squares)


def paired_differences(first: Embeddings, second: Embeddings) -> Embeddings:
    """Return `first - second`, row by row."""
    if len(first) != len(second):
        raise InputError(f"pairs need as many rows on both sides; got {len(first)} and {len(second)}")
    return np.asarray(first - second)
