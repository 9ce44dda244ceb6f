"""Re-ranking against the paper's formulas, set by set."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.gallery.search.reranking import reciprocal_distances, rerank

Array = NDArray[np.float64]


def by_the_formulas(query: Array, shortlist: Array, k1: int, k2: int, original: float) -> Array:
    """The distances of equations 1 to 12, for vectors all different; a row is the nearest to itself."""
    points = [query.astype(float), *shortlist.astype(float)]
    count = range(len(points))
    squares = [[float(((a - b) ** 2).sum()) for b in points] for a in points]
    d = [[square / (max(row) or 1) for square in row] for row in squares]
    ranked = [sorted(count, key=lambda j, i=i: (j != i, squares[i][j], j)) for i in count]  # type: ignore[misc]

    def reciprocal(p: int, k: int) -> set[int]:
        return {g for g in ranked[p][: k + 1] if p in ranked[g][: k + 1]}

    vectors = []
    for p in count:
        near = reciprocal(p, k1)
        extended = set(near)
        for q in near:
            other = reciprocal(q, round(k1 / 2))
            if len(near & other) >= 2 / 3 * len(other):
                extended |= other
        vectors.append([exp(-d[p][g]) if g in extended else 0.0 for g in count])
    expanded = [[sum(vectors[n][g] for n in ranked[p][:k2]) / len(ranked[p][:k2]) for g in count] for p in count]

    def jaccard(p: int, q: int) -> float:
        both = list(zip(expanded[p], expanded[q], strict=True))
        return 1 - sum(min(pair) for pair in both) / sum(max(pair) for pair in both)

    return np.array([(1 - original) * jaccard(0, g) + original * d[0][g] for g in count[1:]])


def clusters(count: int, seed: int = 0) -> Array:
    """Points of a few kinds, which lie apart without being separate."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=(5, 6))[rng.integers(0, 5, count)] + 0.4 * rng.normal(size=(count, 6)))


@pytest.mark.parametrize("count", [0, 1, 2, 5, 20, 60])
@pytest.mark.parametrize(("k1", "k2"), [(20, 6), (7, 3), (6, 1), (1, 2), (3, 9)])
@pytest.mark.parametrize("original", [0.0, 0.3])
def test_distances_are_those_of_the_formulas(count: int, k1: int, k2: int, original: float) -> None:
    for seed in range(3):
        points = clusters(count + 1, seed)
        found = reciprocal_distances(points[0], points[1:], k1=k1, k2=k2, original=original)
        expected = by_the_formulas(points[0], points[1:], k1, k2, original)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
        order = rerank(points[0], points[1:], k1=k1, k2=k2, original=original)
        np.testing.assert_array_equal(np.sort(order), np.arange(count))
        assert (np.diff(expected[order]) > -1e-12).all()


@pytest.mark.parametrize("k1", [4, 9])
def test_of_equally_near_ones_the_earlier_are_neighbours(k1: int) -> None:
    grid = np.random.default_rng(0).permutation(np.indices((7, 7)).reshape(2, -1).T).astype(np.float64)
    found = reciprocal_distances(grid[0], grid[1:], k1=k1, k2=3)
    np.testing.assert_allclose(found, by_the_formulas(grid[0], grid[1:], k1, 3, 0.3), rtol=0, atol=1e-12)


def test_a_row_is_its_own_neighbour_though_squares_underflow() -> None:
    points = 1e-200 * clusters(30)
    found = reciprocal_distances(points[0], points[1:], k1=4, k2=3)
    np.testing.assert_allclose(found, by_the_formulas(points[0], points[1:], 4, 3, 0.3), rtol=0, atol=1e-12)


def test_single_precision_is_only_how_vectors_are_stored() -> None:
    points = clusters(40).astype(np.float32)
    found = reciprocal_distances(points[0], points[1:])
    assert found.dtype == np.float64
    exact = points.astype(np.float64)
    np.testing.assert_array_equal(found, reciprocal_distances(exact[0], exact[1:]))


def test_neither_scale_nor_place_matter_and_large_distances_do_not_vanish() -> None:
    points = clusters(50)
    moved = 1000 * points + 7
    found = reciprocal_distances(moved[0], moved[1:])
    np.testing.assert_allclose(found, reciprocal_distances(points[0], points[1:]), atol=1e-9)
    assert len(np.unique(found.round(6))) > 10


def test_the_order_of_the_shortlist_does_not_matter() -> None:
    points = clusters(50)
    shuffled = np.random.default_rng(1).permutation(49)
    found = reciprocal_distances(points[0], points[1:][shuffled])
    np.testing.assert_allclose(found, reciprocal_distances(points[0], points[1:])[shuffled], atol=1e-12)


def test_copies_count_once_and_stay_in_order() -> None:
    points = clusters(31)
    query, shortlist = points[0], points[1:]
    copied = np.r_[shortlist, query[None], np.repeat(shortlist[:2], 40, axis=0)]
    found = reciprocal_distances(query, copied)
    expected = reciprocal_distances(query, shortlist)
    np.testing.assert_array_equal(found, np.r_[expected, 0, np.repeat(expected[:2], 40)])
    order = rerank(query, copied).tolist()
    assert order[0] == 30
    assert [row for row in order if row == 0 or 31 <= row < 71] == [0, *range(31, 71)]


@pytest.mark.parametrize("count", [1, 3, 50])
def test_copies_of_the_query_alone_stay_as_they_are(count: int) -> None:
    np.testing.assert_array_equal(rerank(np.ones(3), np.ones((count, 3))), np.arange(count))
    np.testing.assert_array_equal(reciprocal_distances(np.ones(3), np.ones((count, 3))), np.zeros(count))


def test_by_the_original_distance_alone_it_is_a_stable_sort() -> None:
    grid = np.indices((5, 5)).reshape(2, -1).T.astype(np.float64)
    order = rerank(np.array([2.0, 2.0]), grid, original=1)
    np.testing.assert_array_equal(order, np.argsort(((grid - 2) ** 2).sum(axis=1), kind="stable"))


def test_a_crowd_of_its_own_goes_behind_the_querys_kind_though_half_of_that_is_farther() -> None:
    rng = np.random.default_rng(0)
    query = np.zeros(4)
    kind = rng.normal(size=(30, 4))
    crowd = 1.9 * np.eye(4)[0] + 0.05 * rng.normal(size=(30, 4))
    shortlist = np.r_[kind, crowd]
    nearest = (shortlist**2).sum(axis=1).argsort()
    assert (nearest[:30] < 30).sum() < 18
    assert (rerank(query, shortlist)[:30] < 30).sum() > 26


def test_arguments_that_cannot_be_meant_are_refused() -> None:
    points = clusters(5)
    with pytest.raises(InputError, match="at least 1"):
        rerank(points[0], points, k1=0)
    with pytest.raises(InputError, match="at least 1"):
        rerank(points[0], points, k2=0)
    with pytest.raises(InputError, match="from 0 to 1"):
        rerank(points[0], points, original=1.5)
    with pytest.raises(InputError, match=r"\(5, 6\)"):
        rerank(points, points)
    with pytest.raises(InputError, match="the shortlist contains NaN in row 1"):
        rerank(points[0], np.where(np.arange(5)[:, None] == 1, np.nan, points))
