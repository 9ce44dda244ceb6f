"""Chips that come with their vectors: added once, in steps, and checked row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookdown.errors import InputError
from lookdown.gallery.index.vectors import add_vectors
from lookdown.gallery.store.table import ChipTable, TableLocation


def test_vectors_are_added_once_and_the_rows_of_the_caller_stay(tmp_path: Path) -> None:
    records = ChipTable.create(TableLocation(tmp_path), 3)
    rows: list[dict[str, Any]] = [{"id": "a"}, {"id": "b", "label": "x", "scene": "s"}, {"id": "a", "label": "late"}]
    vectors = np.arange(1, 10).reshape(3, 3)
    added = add_vectors(records, rows, vectors, 3)
    assert (added.added, added.present) == (2, 1)
    assert rows == [{"id": "a"}, {"id": "b", "label": "x", "scene": "s"}, {"id": "a", "label": "late"}]
    snapshot = records.snapshot()
    np.testing.assert_array_equal(snapshot.embeddings(), vectors[:2])
    first, second = snapshot.read(np.arange(2), ["id", "source", "scene", "scene_group", "label", "thumbnail"])
    nothing = {"source": "", "thumbnail": b""}
    assert first == nothing | {"id": "a", "scene": "a", "scene_group": "a", "label": None}
    assert second == nothing | {"id": "b", "scene": "s", "scene_group": "s", "label": "x"}
    assert add_vectors(records, [], np.empty((0, 3)), 3).added == 0


def test_many_vectors_come_in_steps(tmp_path: Path) -> None:
    records = ChipTable.create(TableLocation(tmp_path), 2)
    vectors = np.random.default_rng(0).normal(size=(66_000, 2)).astype(np.float32)
    added = add_vectors(records, [{"id": f"chip {place}"} for place in range(66_000)], vectors, 2)
    assert added.added == 66_000
    snapshot = records.snapshot()
    assert (np.diff(snapshot.keys) > 0).all()
    np.testing.assert_array_equal(snapshot.embeddings(), vectors)


@pytest.mark.parametrize("wrong", [{"label": 5}, {"gsd": "ten"}, {"id": "\udce9"}, {"time": "yesterday"}])
def test_a_row_with_an_odd_value_is_refused_by_its_name(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"row 0|chip"):
        add_vectors(ChipTable.create(TableLocation(tmp_path), 2), [{"id": "chip"} | wrong], np.ones((1, 2)), 2)


# The list of what was left out
