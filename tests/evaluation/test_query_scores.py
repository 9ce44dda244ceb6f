"""The rows of an evaluation: whole, frozen, comparable, and storable."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lookdown.errors import InputError
from lookdown.evaluation import QueryScores

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
