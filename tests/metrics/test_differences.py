"""Pairs are drawn as the weighting says, and the same ones for the same seed."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from lookdown.errors import InputError
from lookdown.metrics.differences import draw_differences

LABELS = np.array([2, 0, 1, 1, 0, 2, 1, 3, 0, 0])
X = np.float64(2) ** np.arange(10)[:, None]  # the difference of two powers of two tells which pair it was
PAIR = {abs(X[i, 0] - X[j, 0]): (i, j) for i, j in combinations(range(10), 2)}


def draw(same: bool, pairs: Any, weighting: Any = "pairs", copies: int = 1) -> Counter[tuple[int, int]]:
    """Count which pairs are drawn; a difference of zero, of two copies of one sample, is left out."""
    x = draw_differences(
        np.tile(X, (copies, 1)), np.tile(LABELS, copies), same=same, pairs=pairs, weighting=weighting, seed=0
    )
    return Counter(PAIR[size] for size in np.abs(x[:, 0]) if size)


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("weighting", ["pairs", "classes"])
def test_frequencies_are_those_of_the_weighting(same: bool, weighting: str) -> None:
    wanted = {p: 1.0 for p in combinations(range(10), 2) if (LABELS[p[0]] == LABELS[p[1]]) == same}
    if weighting == "classes":
        family = {p: tuple(sorted((LABELS[p[0]], LABELS[p[1]]))) for p in wanted}
        sizes = Counter(family.values())
        wanted = {p: 1 / sizes[family[p]] for p in wanted}
    # Copies make more pairs than are drawn, so that they are drawn rather than listed.
    found = draw(same, 200_000, weighting, copies=300 if weighting == "pairs" else 1)
    assert set(found) == set(wanted)
    for pair, weight in wanted.items():
        expected = found.total() * weight / sum(wanted.values())
        assert found[pair] == pytest.approx(expected, abs=5 * np.sqrt(expected))


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("pairs", ["all", 10**6])
def test_all_pairs_come_once_each(same: bool, pairs: Any) -> None:
    expected = {p for p in combinations(range(10), 2) if (LABELS[p[0]] == LABELS[p[1]]) == same}
    assert draw(same, pairs) == Counter(expected)


def test_all_pairs_are_refused_where_they_would_not_fit() -> None:
    with pytest.raises(InputError, match=r"all 12,497,500 pairs would take 6 GiB; give a number"):
        draw_differences(np.zeros((5000, 64)), np.arange(5000), same=False, pairs="all", weighting="pairs", seed=0)


def test_a_seed_gives_the_same_pairs_and_another_seed_others() -> None:
    big, labels = np.random.default_rng(0).normal(size=(500, 3)), np.arange(500) % 20
    draws = [draw_differences(big, labels, same=False, pairs=100, weighting="pairs", seed=s) for s in (0, 0, 1)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    assert draws[0].shape == (100, 3)
