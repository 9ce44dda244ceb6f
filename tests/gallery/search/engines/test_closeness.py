"""Measures, against the formula."""

from __future__ import annotations

import numpy as np
import pytest
from tests.gallery.search.engines.vectors import brute_force, clustered

from lookdown.errors import InputError
from lookdown.gallery.search.engines.engine import as_points, closeness_to, mean_of, nearest_first, nothing

Z = clustered(300, 4)


def test_the_mean_of_nothing_is_the_origin() -> None:
    np.testing.assert_array_equal(mean_of(np.zeros(3), 0), np.zeros(3))
    np.testing.assert_allclose(mean_of(Z.sum(axis=0, dtype=np.float64), 300), Z.mean(axis=0), rtol=1e-5)
    with pytest.raises(InputError, match="NaN or inf"):
        mean_of(np.array([1.0, np.nan]), 3)


def test_closeness_is_half_the_squared_distance_with_a_minus() -> None:
    rows = np.random.default_rng(0).permutation(300)
    found = nearest_first(rows, closeness_to(Z[7], Z[rows]))
    expected = brute_force(Z, Z[7])
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_allclose(found.closeness, expected.closeness, rtol=1e-12)
    assert found.closeness[0] == 0
    assert len(nothing().rows) == len(nothing().closeness) == 0


def test_points_are_less_the_mean_and_rounded() -> None:
    centre = mean_of(Z.sum(axis=0, dtype=np.float64), 300)
    np.testing.assert_array_equal(as_points(Z.astype(np.float64), centre), Z - centre)
    with pytest.raises(InputError, match=r"queries must be \(n, 4\) vectors, got shape \(300, 2\)"):
        as_points(Z[:, :2], centre)
