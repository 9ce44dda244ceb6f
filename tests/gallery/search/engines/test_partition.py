"""Lists and their centroids, against loops."""

from __future__ import annotations

import numpy as np
import pytest
from tests.gallery.search.engines.vectors import clustered, stream

from lookdown.gallery.search.engines.engine import VectorStream
from lookdown.gallery.search.engines.partition import adopt_lists, find_lists, number_of_lists, place_rows

Z = clustered(3000)
MEAN = Z.mean(axis=0, dtype=np.float64)
PICKED = np.array([0, 5, 2999])


@pytest.mark.parametrize(
    ("rows", "lists"), [(0, 1), (1, 1), (2, 2), (10, 8), (1000, 64), (30_000, 256), (1_000_000, 2048), (10**8, 16_384)]
)
def test_lists_are_about_twice_the_root_of_the_rows(rows: int, lists: int) -> None:
    assert number_of_lists(rows) == lists


def test_found_lists_have_their_centroids_among_the_rows() -> None:
    found, again = (find_lists(stream(Z, batch), PICKED, 0) for batch in (500, 777))
    np.testing.assert_allclose(found.centre, MEAN, atol=1e-6)
    np.testing.assert_allclose(found.picked, Z[PICKED] - MEAN, atol=1e-6)
    np.testing.assert_array_equal(found.centroids, again.centroids)
    assert found.centroids.shape == (128, 16)
    assert (found.lists == -1).all()
    place_rows(stream(Z), found)
    apart = np.square(Z - MEAN - found.centroids[found.lists]).sum(axis=1).mean()
    assert apart < 0.3 * np.square(Z - MEAN).sum(axis=1).mean()


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows_are_their_own_centroids(rows: int) -> None:
    found = find_lists(stream(Z[:rows]), np.arange(rows), 0)
    assert len(found.centroids) == max(rows, 1)
    place_rows(stream(Z[:rows]), found)
    assert sorted(found.lists) == [*range(rows)]


def test_taken_over_lists_have_the_mean_of_their_members() -> None:
    lists = np.random.default_rng(0).integers(-1, 40, size=3000).astype(np.int32)
    found = adopt_lists(stream(Z, 700), PICKED, lists)
    for number, centroid in enumerate(found.centroids):
        np.testing.assert_allclose(centroid, Z[lists == number].mean(axis=0) - MEAN, atol=1e-5)
    np.testing.assert_allclose(found.picked, Z[PICKED] - MEAN, atol=1e-6)
    np.testing.assert_array_equal(found.lists, lists)
    assert found.lists is not lists


def test_means_keep_their_digits_far_from_the_origin() -> None:
    lists = np.random.default_rng(0).integers(3, size=3000).astype(np.int32)
    far = adopt_lists(stream(Z + np.float32(1000)), PICKED, lists).centroids
    np.testing.assert_allclose(far, adopt_lists(stream(Z), PICKED, lists).centroids, atol=1e-3)


def test_empty_lists_are_left_out() -> None:
    lists = np.random.default_rng(0).choice(np.array([-1, 1, 4], np.int32), 3000)
    found = adopt_lists(stream(Z), PICKED, lists)
    assert len(found.centroids) == 2
    for old, new in ((-1, -1), (1, 0), (4, 1)):
        np.testing.assert_array_equal(found.lists == new, lists == old)
    np.testing.assert_allclose(found.centroids[1], Z[lists == 4].mean(axis=0) - MEAN, atol=1e-5)


def test_rows_without_a_list_go_to_the_nearest() -> None:
    lists = np.random.default_rng(0).integers(-1, 10, size=3000).astype(np.int32)
    found = adopt_lists(stream(Z), PICKED, lists)
    place_rows(stream(Z, 700), found)
    for row in range(3000):
        nearest = np.square(found.centroids - (Z[row] - found.centre)).sum(axis=1).argmin()
        assert found.lists[row] == (nearest if lists[row] < 0 else lists[row])


def test_no_pass_is_spent_where_every_row_has_a_list() -> None:
    found = adopt_lists(stream(Z), PICKED, np.zeros(3000, np.int32))

    def refuse() -> None:
        raise AssertionError

    place_rows(VectorStream(3000, 16, refuse), found)  # type: ignore[arg-type]
