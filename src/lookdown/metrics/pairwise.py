"""Differences and distances between the rows of two matrices."""

from __future__ import annotations

import numpy as np

from lookdown.errors import InputError
from lookdown.metrics.inputs import Embeddings

__all__ = ["centred", "half_squared_distances", "half_squares", "paired_differences"]


def half_squared_distances(a: Embeddings, b: Embeddings) -> Embeddings:
    """Return `|a_i - b_j|^2 / 2` as (rows of a, rows of b)."""
    a, b = centred(a, b)
    own, other = half_squares(a), half_squares(b)
    halves = a @ b.T
    np.subtract(own[:, None], halves, out=halves)
    halves += other
    return np.maximum(halves, 0, out=halves)


def centred(a: Embeddings, b: Embeddings) -> tuple[Embeddings, Embeddings]:
    """Move both by the mean of `b`.

    Distances stay as they are, but |a|^2 + |b|^2 - 2 ab would lose a digit for each that an offset has over the spread.
    """
    centre = b.mean(axis=0, dtype=np.float64).astype(b.dtype)
    return a - centre, b - centre


def half_squares(rows: Embeddings) -> Embeddings:
    """Return `|row|^2 / 2`, or refuse rows for which that is too large a number."""
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
