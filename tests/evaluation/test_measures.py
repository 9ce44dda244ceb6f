"""Every score against its sentence written as a loop, equal scores against every order they can come in."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, label_ranking_average_precision_score

from lookdown.errors import InputError
from lookdown.evaluation import RelevantRanks, average_precision, hit_rate_at, precision_at, recall_at

Ranked = list[bool]


def naive_precision(ranked: Ranked, k: int) -> float:
    return sum(ranked[:k]) / k


def naive_recall(ranked: Ranked, relevant: int, k: int) -> float:
    return sum(ranked[:k]) / relevant


def naive_hit_rate(ranked: Ranked, k: int) -> float:
    return 1.0 if True in ranked[:k] else 0.0


def naive_average_precision(ranked: Ranked, relevant: int) -> float:
    total = 0.0
    for rank, hit in enumerate(ranked, start=1):
        if hit:
            total += sum(ranked[:rank]) / rank
    return total / relevant


def over_all_orders(scores: list[int], flags: list[bool], measure: Callable[[Ranked], float]) -> float:
    """The mean of a measure over every ranking in which no result stands before one that scores higher."""
    values = [
        measure([flags[i] for i in order])
        for order in permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]
    return sum(values) / len(values)


@pytest.mark.parametrize("k", [1, 3, 50, 200])
def test_ranked_lists_score_as_the_loops_do(k: int) -> None:
    results = np.random.default_rng(0).random((40, 80)) < np.linspace(0.02, 0.9, 40)[:, None]
    relevant = results.sum(axis=1) + np.arange(1, 41) % 5  # a list that was cut: more in the gallery than in the list
    rows = [(row.tolist(), int(total)) for row, total in zip(results, relevant, strict=True) if total]
    kept = relevant > 0
    np.testing.assert_allclose(precision_at(results, k)[kept], [naive_precision(row, k) for row, _ in rows])
    np.testing.assert_allclose(recall_at(results, relevant, k)[kept], [naive_recall(row, n, k) for row, n in rows])
    np.testing.assert_array_equal(hit_rate_at(results, k)[kept], [naive_hit_rate(row, k) for row, _ in rows])
    expected = [naive_average_precision(row, n) for row, n in rows]
    np.testing.assert_allclose(average_precision(results, relevant)[kept], expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_equal_scores_give_the_mean_over_all_orders(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(rng.integers(1, 5), size=7)
    flags = rng.random(7) < 0.5
    flags[0] = True
    relevant = int(flags.sum())
    results = RelevantRanks.of_scores(scores[None], [np.flatnonzero(flags)])
    listed, marks = scores.tolist(), flags.tolist()
    found = average_precision(results, [relevant])[0]
    assert found == pytest.approx(over_all_orders(listed, marks, lambda r: naive_average_precision(r, relevant)))
    for k in (1, 2, 3, 6, 9):
        for score, measure in (
            (precision_at(results, k), lambda r, k=k: naive_precision(r, k)),
            (recall_at(results, [relevant], k), lambda r, k=k: naive_recall(r, relevant, k)),
            (hit_rate_at(results, k), lambda r, k=k: naive_hit_rate(r, k)),
        ):
            assert score[0] == pytest.approx(over_all_orders(listed, marks, measure), abs=1e-12), k


def test_average_precision_is_scikit_learns_where_relevant_results_have_scores_of_their_own() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(50, 300))
    flags = rng.random((50, 300)) < np.linspace(0.01, 0.8, 50)[:, None]
    flags[:, 0] = True
    scores[~flags] = scores[~flags].round(1)  # equal scores of irrelevant results have no part in it
    results = RelevantRanks.of_scores(scores, [np.flatnonzero(row) for row in flags])
    found = average_precision(results, flags.sum(axis=1))
    expected = [average_precision_score(row, values) for row, values in zip(flags, scores, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found.mean() == pytest.approx(label_ranking_average_precision_score(flags, scores))


def test_where_relevant_and_irrelevant_tie_scikit_learn_takes_the_end_of_the_tie() -> None:
    flags, scores = np.array([[True, False, False, False]]), np.zeros((1, 4))
    found = average_precision(RelevantRanks.of_scores(scores, [np.array([0])]), [1])[0]
    assert found == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert average_precision_score(flags[0], scores[0]) == pytest.approx(1 / 4)


def test_a_query_without_relevant_items_has_no_recall_and_no_average_precision() -> None:
    results = np.zeros((2, 3), dtype=bool)
    assert np.isnan(average_precision(results, [0, 2])).tolist() == [True, False]
    assert np.isnan(recall_at(results, [0, 2], 5)).tolist() == [True, False]
    assert precision_at(results, 5).tolist() == hit_rate_at(results, 5).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("k", [0, -3, 2.0, None, True, "5"])
def test_k_is_a_whole_number(k: Any) -> None:
    results = np.ones((1, 3), dtype=bool)
    with pytest.raises(InputError, match="k must be a whole number of at least 1"):
        precision_at(results, k)
    with pytest.raises(InputError, match="k must be a whole number of at least 1"):
        recall_at(results, [3], k)
    with pytest.raises(InputError, match="k must be a whole number of at least 1"):
        hit_rate_at(results, k)


@pytest.mark.parametrize(
    ("relevant", "message"),
    [
        ([3, 1], "relevant says 1 for query 1, but its results hold 2"),
        ([3], "must be 2 whole numbers"),
        ([3.0, 2.0], "float64"),
    ],
)
def test_counts_of_relevant_items_must_make_sense(relevant: Any, message: str) -> None:
    results = np.array([[True, True, True], [True, False, True]])
    with pytest.raises(InputError, match=message):
        average_precision(results, relevant)
    with pytest.raises(InputError, match=message):
        recall_at(results, relevant, 2)
