"""Differences and distances between the rows of two matrices."""

from __future__ import annotations

import numpy as np

from lookdown.errors import InputError
from lookdown.metrics.inputs import Embeddings

__all__ = ["half_squared_distances", "paired_differences"]


def half_squared_distances(a: Embeddings, b: Embeddings) -> Embeddings:
    """Return `|a_i - b_j|^2 / 2` as (rows of a, rows of b).

    Both are moved by the mean of `b` first: the product form |a|^2 + |b|^2 - 2 ab loses a digit for each that the
    common offset has over the spread.
    """
    centre = b.mean(axis=0, dtype=np.float64).astype(b.dtype)
    a, b = a - centre, b - centre
    halves = a @ b.T
    np.subtract(_half_squares(a)[:, None], halves, out=halves)
    halves += _half_squares(b)
    return np.maximum(halves, 0, out=halves)


def paired_differences(first: Embeddings, second: Embeddings) -> Embeddings:
    """Return `first - second`, row by row."""
    if len(first) != len(second):
        raise InputError(f"pairs need as many rows on both sides; got {len(first)} and {len(second)}")
    return np.asarray(first - second)


def _half_squares(rows: Embeddings) -> Embeddings:
    return np.asarray(np.einsum("ij,ij->i", rows, rows) / 2)
