"""What users hand over, and what becomes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from lookdown.errors import InputError
from lookdown.metrics.inputs import as_embeddings, as_flags, as_labels, as_number, as_partial_labels, unit


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([[1, 2], [3, 4]], np.float64),
        (np.ones((2, 2), dtype=np.float32), np.float32),
        (np.ones((2, 2), dtype=np.float16), np.float64),
        (np.ones((2, 2), dtype=object), np.float64),
        (torch.ones(2, 2, dtype=torch.bfloat16, requires_grad=True), np.float32),
        (torch.ones(2, 2, dtype=torch.int32), np.float64),
    ],
)
def test_embeddings_become_floats(values: Any, dtype: Any) -> None:
    found = as_embeddings(values)
    assert found.shape == (2, 2)
    assert found.dtype == dtype


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0], r"shape \(2,\), expected 2D array.*X\[None\]"),
        (3.0, r"shape \(\)"),
        ([[1, 2], [3]], "X is not a matrix"),
        ([["a"]], "X is not a matrix"),
        (np.ones((1, 2), dtype=complex), "Complex data not supported$"),
        (np.ones((1, 2), dtype="timedelta64[s]"), "holds times"),
        (np.ma.masked_less([[1.0, -1.0]], 0), "masked values"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused_in_one_line(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        as_embeddings(values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, False], [1, 0]),
        (np.array([3, 2], dtype=np.uint8), [3, 2]),
        (np.array([2.0, 7.0]), [2, 7]),
        (np.array([0.5, 7.0]), [0.5, 7.0]),
        (torch.tensor([4, 5]), [4, 5]),
        (np.array(["a", "b"], dtype=object), ["a", "b"]),
        (np.array([1, np.int64(2)], dtype=object), [1, 2]),
        (np.array([b"a", "ü".encode()], dtype=object), ["a", "ü"]),
        (np.array([np.str_("a"), "b"], dtype=object), ["a", "b"]),
    ],
)
def test_labels_become_whole_numbers_or_strings(values: Any, expected: list[Any]) -> None:
    found = as_labels(values, 2)
    assert found.tolist() == expected
    assert found.dtype.kind in "ifU"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array(["a", 1], dtype=object), "labels of type int, str"),
        (np.array(["a", None], dtype=object), "drop unlabelled rows"),
        (np.array([1, 2**63], dtype=np.uint64), "beyond 64 bits"),
        ([b"\xff", b"a"], "not UTF-8"),
        (np.array([0, np.inf]), "NaN or inf in row 1"),
        ([[1, 2], [3, 4]], "one label a row"),
    ],
)
def test_labels_that_cannot_be_compared_are_refused(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_labels(values, 2)


@pytest.mark.parametrize(
    ("values", "numbers", "known"),
    [
        (None, [0, 0, 0, 0], [False] * 4),
        (["b", None, "a", "b"], [1, 0, 0, 1], [True, False, True, True]),
        ([5, -1, 3, 5], [1, 0, 0, 1], [True, False, True, True]),
        (np.array([5.0, np.nan, 3.0, 5.0]), [1, 0, 0, 1], [True, False, True, True]),
        (np.array(["b", None, "a", "b"], dtype=object), [1, 0, 0, 1], [True, False, True, True]),
        (torch.tensor([5, -1, 3, 5]), [1, 0, 0, 1], [True, False, True, True]),
        ([None] * 4, [0, 0, 0, 0], [False] * 4),
        (["b", float("nan"), "a", "b"], [1, 0, 0, 1], [True, False, True, True]),
        (["b", -1, "a", "b"], [1, 0, 0, 1], [True, False, True, True]),
        ([5.0, None, 3.0, 5.0], [1, 0, 0, 1], [True, False, True, True]),
        (np.array([[5], [-1], [3], [5]]), [1, 0, 0, 1], [True, False, True, True]),
        (["-1", "a", "a", "b"], [0, 1, 1, 2], [True] * 4),
    ],
)
def test_rows_without_a_label_are_told_apart(values: Any, numbers: list[int], known: list[bool]) -> None:
    found, labelled = as_partial_labels(values, 4)
    assert found.tolist() == numbers
    assert labelled.tolist() == known


def test_partial_labels_are_one_a_row_and_of_one_kind() -> None:
    with pytest.raises(InputError, match="y has 2 labels for 4 rows; give one label a row, or None"):
        as_partial_labels(["a", None], 4)
    with pytest.raises(InputError, match="y must be one label a row, got 7"):
        as_partial_labels(7, 4)
    with pytest.raises(InputError, match="use all strings or all integers"):
        as_partial_labels(["a", 1, None, "b"], 4)


def test_flags_are_booleans_and_numbers_are_numbers() -> None:
    assert not as_flags(None, 3, name="background").any()
    with pytest.raises(InputError, match="background must be 3 booleans"):
        as_flags([0, 1, 1], 3, name="background")
    assert as_number("0.5", "rate") == 0.5
    assert as_number(np.inf, "rate") == np.inf


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1.0, 1e200, 1e308])
def test_rows_of_any_length_are_put_on_the_sphere(scale: float) -> None:
    found = unit(np.array([[3.0, 4.0], [-1.0, 0.0]]) * (scale / 4))
    np.testing.assert_allclose(found, [[0.6, 0.8], [-1.0, 0.0]], rtol=1e-4 if scale < 1e-300 else 1e-15)
