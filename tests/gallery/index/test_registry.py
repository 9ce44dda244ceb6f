"""A chip is known by its name and by its place, and numbers are given once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookdown.gallery.index.registry import ChipRegistry
from lookdown.gallery.store.table import ChipTable, TableLocation


def row(name: str, source: Path | str, polygon: str | None = None) -> dict[str, Any]:
    return {"id": name, "source": str(source), "polygon": polygon, "scene": "s", "scene_group": "s"} | {
        "background": False,
        "thumbnail": b"",
    }


@pytest.fixture
def records(tmp_path: Path) -> ChipTable:
    made = ChipTable.create(TableLocation(tmp_path / "g"), 2)
    (tmp_path / "1.png").write_text("one")
    made.append([row("1.png", tmp_path / "1.png")], np.ones((1, 2), np.float32), first_key=7)
    return made


def test_what_is_there_is_not_new_by_its_place_whatever_it_is_called(records: ChipTable, tmp_path: Path) -> None:
    known = ChipRegistry(records)
    assert not known.add(row("1.png", tmp_path / "1.png"), named_by_path=True)
    assert not known.add(row("folder/1.png", tmp_path / "1.png"), named_by_path=True)
    assert known.add(row("1.png:0,0,9,9", tmp_path / "1.png", "POLYGON ((0 0, 9 9, 0 9, 0 0))"), named_by_path=True)


def test_another_file_of_the_name_gets_a_mark_and_the_same_mark_again(records: ChipTable, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "1.png").write_text("another")
    names = []
    for _ in range(2):
        other = row("1.png", tmp_path / "other" / "1.png")
        assert ChipRegistry(records).add(other, named_by_path=True)
        names.append(other["id"])
    assert names[0] == names[1]
    assert names[0].startswith("1.png#")


def test_a_file_that_is_gone_was_moved(records: ChipTable, tmp_path: Path) -> None:
    (tmp_path / "1.png").rename(tmp_path / "2.png")
    known = ChipRegistry(records)
    assert not known.add(row("1.png", tmp_path / "2.png"), named_by_path=True)
    assert known.moved == {"1.png": str(tmp_path / "2.png")}


def test_a_copy_of_a_chip_of_a_manifest_is_the_same_chip(records: ChipTable, tmp_path: Path) -> None:
    (tmp_path / "copy.png").write_text("one")
    assert not ChipRegistry(records).add(row("1.png", tmp_path / "copy.png"), named_by_path=False)
    assert ChipRegistry(records).add(row("1.png", tmp_path / "copy.png"), named_by_path=True)


def test_what_was_forgotten_is_new_again(records: ChipTable, tmp_path: Path) -> None:
    known = ChipRegistry(records)
    broken = row("2.png", tmp_path / "2.png")
    assert known.add(broken, named_by_path=True)
    known.forget(broken)
    assert known.add(broken, named_by_path=True)


def test_numbers_begin_above_all_that_were_given(records: ChipTable) -> None:
    first = ChipRegistry(records).next_key
    assert first > 7
    records.remove(np.array([7]))
    assert ChipRegistry(records).next_key > first
