"""Distances by a matrix product against distances by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lookdown.errors import InputError
from lookdown.metrics.pairwise import half_squared_distances, paired_differences


@pytest.mark.parametrize("offset", [0, 1e3, 1e7])
def test_distances_keep_their_digits_far_from_the_origin(offset: float) -> None:
    rng = np.random.default_rng(0)
    a, b = np.round(rng.normal(size=(2, 20, 5)), 3)
    expected = np.square(a[:, None] - b).sum(axis=2) / 2
    np.testing.assert_allclose(half_squared_distances(a + offset, b + offset), expected, rtol=1e-7, atol=1e-8)


def test_a_row_is_at_no_distance_from_itself_and_never_at_a_negative_one() -> None:
    a = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    found = half_squared_distances(a, a)
    assert found.dtype == np.float32
    assert (found >= 0).all()
    np.testing.assert_allclose(np.diag(found), 0, atol=1e-6)


def test_pairs_need_two_sides_of_one_length() -> None:
    with pytest.raises(InputError, match="got 2 and 3"):
        paired_differences(np.ones((2, 2)), np.ones((3, 2)))
