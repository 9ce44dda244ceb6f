"""FilterColumns of a gallery: text with repeats is kept once, and found as it is."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lookdown.gallery.store.snapshot import CategoricalColumn, FilterColumns

TEXTS = ["tug", None, "", "tug", "it's", " tug", None, "Tug", "' OR 1=1 --"]


def test_each_text_is_kept_once_and_each_row_finds_its_own() -> None:
    codes = CategoricalColumn.from_texts(TEXTS)
    assert codes.values == ("tug", "", "it's", " tug", "Tug", "' OR 1=1 --")
    assert [codes[row] for row in range(len(TEXTS))] == TEXTS
    assert codes.codes.dtype == np.int32


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        ([], []),
        (["tug"], [0, 3]),
        (("", "it's", "nowhere"), [2, 4]),
        ({"' OR 1=1 --"}, [8]),
        (["None", "%", "TUG"], []),
    ],
)
def test_rows_among_some_texts(wanted: list[str], rows: list[int]) -> None:
    found = CategoricalColumn.from_texts(TEXTS).is_in(wanted)
    assert found.dtype == np.bool_
    assert np.flatnonzero(found).tolist() == rows


def test_among_is_membership_whatever_the_column() -> None:
    random.seed(0)
    for _ in range(200):
        texts = random.choices(["a", "b", "c", "", None], k=random.randrange(12))
        wanted = random.sample(["a", "b", "c", "", "d"], k=random.randrange(4))
        assert CategoricalColumn.from_texts(texts).is_in(wanted).tolist() == [
            text is not None and text in wanted for text in texts
        ]


def test_a_column_without_any_text_and_one_without_rows() -> None:
    assert CategoricalColumn.from_texts([None, None]).is_in(["a"]).tolist() == [False, False]
    assert CategoricalColumn.from_texts([]).is_in(["a"]).tolist() == []


def test_columns_are_as_long_as_the_table() -> None:
    codes = CategoricalColumn.from_texts(TEXTS)
    rows = len(TEXTS)
    columns = FilterColumns(
        labels=codes,
        scenes=codes,
        sensors=codes,
        timestamps=CategoricalColumn.from_texts([None] * rows),
        background=np.zeros(rows, dtype=np.bool_),
        bounds=np.full((rows, 4), np.nan),
        footprints=lambda wanted: [None] * len(wanted),
    )
    assert len(columns) == rows
