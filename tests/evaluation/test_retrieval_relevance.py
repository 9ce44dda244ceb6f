"""Labels as users have them, and the rows that carry them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from lookdown import evaluate
from lookdown.errors import InputError
from lookdown.evaluation.retrieval import plain_labels, rows_with


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["ship", None, "jet"], ("ship", None, "jet")),
        (np.array(["ship", "jet", "ship"]), ("ship", "jet", "ship")),
        ([3, None, np.int32(4)], (3, None, 4)),
        (np.array([3.0, np.nan, 4.0]), (3, None, 4)),
        (np.array(["a", None, float("nan")], dtype=object), ("a", None, None)),
        (torch.tensor([1, 2, 3]), (1, 2, 3)),
        ((None, None, None), (None, None, None)),
        (range(3), (0, 1, 2)),
        (np.array([b"a", b"b", b"a"]), ("a", "b", "a")),
    ],
)
def test_labels_become_plain_and_unknown_ones_none(labels: Any, expected: tuple[Any, ...]) -> None:
    found = plain_labels(labels, 3, "labels")
    assert found == list(expected)
    assert {type(label) for label in found} <= {str, int, type(None)}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "labels is missing; give one label a row, None where it is unknown"),
        (5, "labels must be one label a row, got 5"),
        (["a", "b"], "labels has 2 labels for 3 rows"),
        (["a", 1, "b"], "labels of type int, str"),
        ([["a", "b"]] * 3, "labels of type list"),
        (np.zeros((3, 2)), "labels must be one label a row"),
        (np.zeros((3, 2), dtype=int), "labels must be one label a row"),
        (np.array([1, 2, 3], dtype="datetime64[D]"), "labels has labels of type"),
    ],
)
def test_labels_that_cannot_be_compared_are_refused(labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plain_labels(labels, 3, "labels")


NAMES = ("query_labels", "gallery_labels")


def test_relevant_is_what_has_the_label() -> None:
    rows = rows_with(["a", None, "z", "b"], ["a", None, None, "b", "a"], NAMES)
    assert [found.tolist() for found in rows] == [[0, 4], [], [], [3]]


def test_relevant_is_what_has_the_label_and_is_no_background() -> None:
    ranked = [[5.0, 4.0, 3.0, 2.0, 1.0]] * 2
    background = [False, True, False, False, False]
    result = evaluate(ranked, None, ["a", "b"], None, ["a", "a", None, "b", "a"], background)
    assert result.queries.relevant.tolist() == [2, 1]
    assert result.queries.average_precision.tolist() == pytest.approx([(1 + 2 / 5) / 2, 1 / 4])


def test_rows_are_those_of_a_search_through_all() -> None:
    rng = np.random.default_rng(0)
    wanted, among = ([(3, 5, 7, 11, None)[i] for i in rng.integers(5, size=size)] for size in (20, 50))
    rows = rows_with(wanted, among, NAMES)
    expected = [[row for row, value in enumerate(among) if value == label and label is not None] for label in wanted]
    assert [found.tolist() for found in rows] == expected


def test_strings_and_numbers_do_not_meet() -> None:
    with pytest.raises(InputError, match="query_labels are strings but gallery_labels are numbers"):
        rows_with(["3"], [3], NAMES)
    with pytest.raises(InputError, match="b are strings but a are numbers"):
        rows_with([3], [None, "3"], ("a", "b"))
    assert rows_with([3], [None], NAMES)[0].tolist() == []
