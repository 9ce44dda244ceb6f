"""Distances by a matrix product against distances by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lookdown.errors import InputError
from lookdown.metrics.pairwise import best, half_squared_distances, paired_differences, row_blocks


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


@pytest.mark.parametrize("queries", [1, 32, 256])
def test_blocks_cover_the_gallery_and_grow_when_queries_are_few(queries: int) -> None:
    blocks = [*row_blocks(300_000, queries)]
    np.testing.assert_array_equal(np.concatenate([np.arange(b.start, b.stop) for b in blocks]), np.arange(300_000))
    assert blocks[0].stop == {1: 65_536, 32: 16_384, 256: 8192}[queries]
    assert [*row_blocks(0, queries)] == []


def test_rows_keep_the_numbers_they_come_with() -> None:
    blocks = [(np.array([7, 3]), np.array([[1.0, 5.0]])), (np.array([9]), np.array([[4.0]]))]
    found = best(blocks, 2)
    np.testing.assert_array_equal(found.indices, [[3, 9]])
    np.testing.assert_array_equal(found.scores, [[5.0, 4.0]])
