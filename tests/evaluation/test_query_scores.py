"""The rows of an evaluation: whole, frozen, comparable, and storable; and groups of them drawn again.

Draws are compared with a loop that copies the queries of every drawn group, and with the truth.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.evaluation.query_scores import QueryScores, as_estimate, resample

Array = NDArray[np.float64]
NAN = float("nan")
SCORES = QueryScores(
    labels=("ship", None, "jet", "ship"),
    groups=("s2", "s1", "s1", "s1"),
    ids=("c1", "c2", "c3", "c4"),
    relevant=np.array([3, 0, 1, 3]),
    average_precision=np.array([0.1, NAN, 1.0, 1 / 3]),
    recall=np.array([0.2, NAN, 1.0, 2 / 3]),
    precision=np.array([0.3, NAN, 0.02, 0.5]),
    hit_rate=np.array([0.0, NAN, 1.0, 0.5]),
)


def test_queries_without_relevant_items_are_kept_and_left_out_of_the_values() -> None:
    assert len(SCORES) == 4
    assert SCORES.scored.tolist() == [True, False, True, True]
    assert SCORES.values.tolist() == [[0.1, 0.2, 0.3, 0.0], [1.0, 1.0, 0.02, 1.0], [1 / 3, 2 / 3, 0.5, 0.5]]
    assert SCORES.scored_classes.tolist() == ["ship", "jet", "ship"]
    assert SCORES.scored_groups.tolist() == [1, 0, 0]
    assert replace(SCORES, groups=None).scored_groups.tolist() == [0, 1, 2]


def test_arrays_cannot_be_written_to_and_do_not_follow_those_they_came_from() -> None:
    precision = np.array(SCORES.precision)
    found = replace(SCORES, precision=precision)
    precision[0] = 0.9
    assert found.precision[0] == 0.3
    with pytest.raises(ValueError, match="read-only"):
        found.precision[0] = 1


def test_equality_sees_every_column_and_takes_nan_for_itself() -> None:
    assert replace(SCORES) == SCORES
    assert SCORES != "scores"
    changes: list[dict[str, Any]] = [
        {"labels": ("ship", None, "jet", "jet")},
        {"groups": None},
        {"ids": None},
        {"relevant": np.array([3, 0, 1, 4])},
        *({name: np.array([0.0, NAN, 0.0, 0.0])} for name in ("average_precision", "recall", "precision", "hit_rate")),
    ]
    for change in changes:
        assert replace(SCORES, **change) != SCORES, change
    with pytest.raises(TypeError, match="unhashable"):
        hash(SCORES)


def test_columns_come_back_to_the_bit() -> None:
    columns = SCORES.to_columns()
    assert columns["recall"] == [0.2, None, 1.0, 2 / 3]
    assert QueryScores.from_columns(columns) == SCORES
    without = replace(SCORES, groups=None, ids=None)
    assert QueryScores.from_columns(without.to_columns()) == without


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recall": np.array([0.2, NAN, 1.0])}, r"recall has shape \(3,\) for 4 queries"),
        ({"groups": ("s1",)}, r"groups has shape \(1,\) for 4 queries"),
        ({"recall": np.array([0.2, 0.0, 1.0, 1.0])}, "recall must lie between 0 and 1, and be NaN just where"),
        ({"precision": np.array([0.2, NAN, NAN, 1.0])}, "precision must lie between 0 and 1"),
        ({"precision": np.array([1.2, NAN, 0.5, 1.0])}, "precision must lie between 0 and 1"),
        (
            {name: np.zeros(4) * NAN for name in ("average_precision", "recall", "precision", "hit_rate")}
            | {"relevant": np.zeros(4)},
            "none of the 4 queries has a relevant item",
        ),
    ],
)
def test_rows_that_contradict_each_other_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(SCORES, **change)


def copied(values: Array, classes: list[str], groups: list[int], resamples: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    names, kinds = sorted(set(groups)), sorted(set(classes))
    overall, by_class = [], []
    for _ in range(resamples):
        drawn = [names[i] for i in rng.integers(len(names), size=len(names))]
        rows = [row for name in drawn for row, group in enumerate(groups) if group == name]
        overall.append(values[rows].mean(axis=0))
        members = [[row for row in rows if classes[row] == kind] for kind in kinds]
        nothing = np.full(values.shape[1], np.nan)
        by_class.append([values[some].mean(axis=0) if some else nothing for some in members])
    return np.array(overall), np.array(by_class)


def test_replicates_are_means_over_copied_groups() -> None:
    rng = np.random.default_rng(0)
    values, classes = rng.random((60, 3)), rng.choice(["a", "b", "c"], size=60)
    classes[:2] = "rare"
    groups = rng.integers(9, size=60) * 7
    found = resample(values, classes, groups, resamples=100, seed=5)
    overall, by_class = copied(values, classes.tolist(), groups.tolist(), 100, 5)
    np.testing.assert_allclose(found.overall, overall)
    np.testing.assert_allclose(found.by_class, by_class)
    assert np.isnan(by_class).any()
    np.testing.assert_allclose(found.class_mean, np.nanmean(by_class, axis=1))


def test_one_seed_gives_one_set_of_draws_and_another_gives_another() -> None:
    values = np.random.default_rng(0).random((30, 2))
    first, again, other = (
        resample(values, np.zeros(30), np.arange(30), resamples=100, seed=seed).overall for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_intervals_cover_the_truth_where_queries_of_a_group_hang_together() -> None:
    rng = np.random.default_rng(0)
    covered, covered_without_groups = 0, 0
    for _ in range(200):
        hard = rng.beta(2, 2, size=40)  # how a scene is, mean 1/2
        groups = np.repeat(np.arange(40), rng.integers(1, 16, size=40))
        values = np.clip(hard[groups] + rng.uniform(-0.1, 0.1, size=len(groups)), 0, 1)
        classes = np.zeros(len(groups))
        for members, grouped in ((groups, True), (np.arange(len(groups)), False)):
            draws = resample(values[:, None], classes, members, resamples=300, seed=0).overall[:, 0]
            found = as_estimate(float(values.mean()), draws, level=0.95, groups=len(np.unique(members)))
            inside = found.low <= 0.5 <= found.high
            covered, covered_without_groups = (
                covered + (inside and grouped),
                covered_without_groups + (inside and not grouped),
            )
    assert 176 <= covered <= 198  # 190 expected, fewer with few groups
    assert covered_without_groups < 110  # as if each query were a scene: far too sure


def test_an_estimate_says_how_well_it_is_supported() -> None:
    draws = np.linspace(0, 1, 1001)
    found = as_estimate(0.5, draws, level=0.9, groups=10)
    assert (found.low, float(found), found.high) == pytest.approx((0.05, 0.5, 0.95))
    assert found.supported
    assert found.method == "empirical"
    assert not as_estimate(0.5, draws, level=0.9, groups=9).supported
    alone = as_estimate(0.5, draws, level=0.9, groups=1)
    assert np.isnan([alone.low, alone.high]).all()
    gaps = np.where(np.arange(1001) % 3 == 0, np.nan, draws)
    assert as_estimate(0.5, gaps, level=0.9, groups=5).low == pytest.approx(0.05, abs=0.01)


def test_the_value_is_never_outside_its_own_interval() -> None:
    """Draws of few groups may all lie on one side of the value, by skew or by the last bit."""
    draws = np.linspace(0.2, 0.4, 101)
    above, below = (as_estimate(value, draws, level=0.9, groups=10) for value in (0.5, 0.1))
    assert (above.low, above.high) == pytest.approx((0.21, 0.5))
    assert (below.low, below.high) == pytest.approx((0.1, 0.39))
    same = as_estimate(0.1 + 0.2, np.full(100, 0.3), level=0.9, groups=10)
    assert same.low <= float(same) <= same.high


@pytest.mark.parametrize("level", [0, 1, 95, float("nan"), None, "95 %"])
def test_a_level_is_a_share(level: Any) -> None:
    with pytest.raises(InputError, match="level must lie between 0 and 1"):
        as_estimate(0.5, np.zeros(9), level=level, groups=5)


@pytest.mark.parametrize("resamples", [0, 99, 1e3, None, True])
def test_a_few_draws_are_no_distribution(resamples: Any) -> None:
    with pytest.raises(InputError, match="resamples must be a whole number of at least 100"):
        resample(np.zeros((3, 1)), np.zeros(3), np.arange(3), resamples=resamples, seed=0)
