"""Vectors in clusters, filters and answers by brute force, for the tests of all engines."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from lookdown.gallery.search.engines.engine import Nearest, Vectors, VectorStream
from lookdown.gallery.search.filters import Where
from lookdown.gallery.store.snapshot import CategoricalColumn, FilterColumns

Mask = NDArray[np.bool_]


def clustered(rows: int, dimensions: int = 16, *, kinds: int = 200, spread: float = 0.4, seed: int = 0) -> Vectors:
    """Kinds of objects and their variations; the kinds do not depend on the number of rows."""
    centres = np.random.default_rng(9).normal(size=(kinds, dimensions))
    rng = np.random.default_rng(seed)
    z = centres[rng.integers(kinds, size=rows)] + spread * rng.normal(size=(rows, dimensions))
    return z.astype(np.float32)


def stream(z: Vectors, batch: int = 4096) -> VectorStream:
    return VectorStream(len(z), z.shape[1], lambda: (z[begin : begin + batch] for begin in range(0, len(z), batch)))


def columns(rows: int) -> FilterColumns:
    """No text, no time, no place."""
    none = CategoricalColumn((), np.full(rows, -1, np.int32))
    return FilterColumns(
        labels=none,
        scenes=none,
        sensors=none,
        timestamps=none,
        background=np.zeros(rows, np.bool_),
        bounds=np.full((rows, 4), np.nan),
        footprints=lambda some: [None] * len(some),
    )


class _Keeping:
    def __init__(self, mask: Mask) -> None:
        self.mask = mask

    def rows(self, table: FilterColumns) -> Mask:
        assert len(table) == len(self.mask)
        return self.mask


def keeping(mask: Mask) -> Where:
    """Stand in for a filter."""
    return cast("Where", _Keeping(mask))


def share_of(rows: int, share: float, seed: int = 0) -> Mask:
    """Keep a random share of the rows, at least one if it is not 0."""
    mask = np.zeros(rows, np.bool_)
    kept = max(1, round(rows * share)) if share else 0
    mask[np.random.default_rng(seed).choice(rows, kept, replace=False)] = True
    return mask


def brute_force(z: Vectors, query: Vectors, mask: Mask | None = None) -> Nearest:
    """All rows that are kept, nearest first, from the formula."""
    rows = np.arange(len(z)) if mask is None else np.flatnonzero(mask)
    closeness = -np.square(z[rows].astype(np.float64) - query.astype(np.float64)).sum(axis=1) / 2
    order = np.lexsort((rows, -closeness))
    return Nearest(rows[order], closeness[order])


def recall(found: Nearest, expected: Nearest, k: int) -> float:
    wanted = expected.rows[:k]
    return len(np.intersect1d(found.rows, wanted)) / len(wanted) if len(wanted) else 1.0


def assert_true(found: Nearest, expected: Nearest, **tolerance: Any) -> None:
    """Each row is as close as is said, and none is before a closer one."""
    truth = dict(zip(expected.rows.tolist(), expected.closeness.tolist(), strict=True))
    np.testing.assert_allclose(found.closeness, [truth[row] for row in found.rows.tolist()], **tolerance)
    assert len(set(found.rows.tolist())) == len(found.rows)
    assert (np.diff(found.closeness) <= 0).all()


def assert_all(found: Nearest, expected: Nearest, k: int, **tolerance: Any) -> None:
    """And no other row is closer."""
    assert_true(found, expected, **tolerance)
    assert recall(found, expected, k) == 1
    np.testing.assert_allclose(found.closeness, expected.closeness[:k], **tolerance)
