"""What every engine measures in the same way, so that the closeness of a row does not depend on the engine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.gallery.search.engines.engine import Nearest, Vectors
from lookdown.gallery.store.snapshot import Rows
from lookdown.metrics.inputs import refuse_non_finite
from lookdown.metrics.pairwise import half_squares

__all__ = ["SPARE", "as_points", "closeness_to", "mean_of", "nearest_first", "nothing"]

SPARE = 8  # candidates beyond those asked for: rounding may swap neighbours at the cut


def as_points(queries: Vectors, centre: Vectors) -> Vectors:
    """Return queries less the mean, rounded as the gallery is: a row of it is at no distance from itself."""
    with np.errstate(over="ignore"):
        rows = np.asarray(queries, np.float32)
    if rows.ndim != 2 or rows.shape[1] != len(centre):
        raise InputError(f"queries must be (n, {len(centre)}) vectors, got shape {rows.shape}")
    points = rows - centre
    if not np.isfinite(np.vdot(points, points)):  # one number tells that all is well
        refuse_non_finite(rows, "queries")
        half_squares(points)  # refuses what cannot be squared
    return points


def closeness_to(point: Vectors, vectors: Vectors) -> NDArray[np.float64]:
    """Return -|z - y|^2 / 2 from the differences, in double precision."""
    gaps = np.subtract(point, vectors, dtype=np.float64)
    return np.asarray(np.einsum("ij,ij->i", gaps, gaps) / -2)


def nearest_first(rows: Rows, closeness: NDArray[np.float64]) -> Nearest:
    """Put rows in order."""
    order = np.lexsort((rows, -closeness))
    return Nearest(rows[order], closeness[order])


def nothing() -> Nearest:
    """Return an answer without rows."""
    return Nearest(np.empty(0, np.intp), np.empty(0))


def mean_of(total: NDArray[np.float64], rows: int) -> Vectors:
    """Return the mean of a gallery from the sum of its vectors; 0 if it is empty."""
    if not np.isfinite(total).all():
        raise InputError("the gallery has vectors with NaN or inf; add those chips again")
    return (total / max(rows, 1)).astype(np.float32)
