"""Roles from a protocol, from a file, or for what neither speaks of."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chips import layouts
from tests.chips.test_prepare import SCENES, assert_no_leak, roles_of_classes

from lookdown.chips.cutting import CutOptions
from lookdown.chips.prepare import cut_chips
from lookdown.chips.roles import SplitOptions
from lookdown.chips.sources import SourceContent, read_source
from lookdown.errors import LookdownError, OutputError


@pytest.fixture
def mar20(tmp_path: Path) -> SourceContent:
    layouts.voc(tmp_path / "data", SCENES, mar20=True)
    return read_source("mar20", tmp_path / "data")


def test_a_split_can_be_used_again_on_other_chips(mar20: SourceContent, tmp_path: Path) -> None:
    first = cut_chips(mar20, tmp_path / "one", splitting=SplitOptions(seed=5))
    splitting = SplitOptions(reuse_split=tmp_path / "one" / "split.csv")
    again = cut_chips(mar20, tmp_path / "two", CutOptions(margin=0.5), splitting)
    assert again.manifest.table["role"].to_pylist() == first.manifest.table["role"].to_pylist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,role\n0_0000,banana\n", "the role 'banana'; a role is one of train, query, gallery"),
        ("name,role\n0_0000,train\n", "has no column id"),
        (None, "cannot be read"),
    ],
)
def test_a_split_that_cannot_be_used_is_refused_before_anything_is_cut(
    content: str | None, message: str, mar20: SourceContent, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "split.csv").write_text(content)
    with pytest.raises(LookdownError, match=message):
        cut_chips(mar20, tmp_path / "out", splitting=SplitOptions(reuse_split=tmp_path / "split.csv"))
    assert not (tmp_path / "out").exists()


def test_a_given_split_that_leaks_says_so_and_a_changed_one_is_other_work(mar20: SourceContent, tmp_path: Path) -> None:
    file = tmp_path / "split.csv"
    file.write_text("id,role\n0_0000,train\n0_0001,gallery\n5_0000,query\n")
    done = cut_chips(mar20, tmp_path / "out", splitting=SplitOptions(reuse_split=file))
    assert done.notes == ["1 scene groups are in more than one role: the given split leaks"]
    assert cut_chips(mar20, tmp_path / "out", splitting=SplitOptions(reuse_split=file)).notes == done.notes
    file.write_text("id,role\n0_0000,train\n")
    with pytest.raises(OutputError, match="`overwrite=True`"):
        cut_chips(mar20, tmp_path / "out", splitting=SplitOptions(reuse_split=file))


def test_too_few_places_to_split_are_all_searched(tmp_path: Path) -> None:
    layouts.voc(tmp_path / "data", 2)
    done = cut_chips(read_source("voc", tmp_path / "data"), tmp_path / "out")
    assert set(done.manifest.table["role"].to_pylist()) == {"gallery"}
    assert len(done.manifest) >= 8
    assert "nothing was split, every chip is in the gallery" in done.notes[0]
    alone = cut_chips(read_source("voc", tmp_path / "data"), tmp_path / "none", splitting=SplitOptions(split="none"))
    assert (set(alone.manifest.table["role"].to_pylist()), alone.notes) == ({"gallery"}, [])


def test_objects_of_no_known_class_are_searched_where_their_place_is(tmp_path: Path) -> None:
    layouts.folders(tmp_path / "data", 14)
    for index in range(4):
        layouts.save_image(tmp_path / "data" / f"unknown{index}.jpg", 5000 + index, (32, 32))
    done = cut_chips(read_source("folder", tmp_path / "data"), tmp_path / "out")
    assert roles_of_classes(done.manifest)[None] == {"gallery": 4}


def test_uda_keeps_classes_apart(mar20: SourceContent, tmp_path: Path) -> None:
    done = cut_chips(mar20, tmp_path / "out", splitting=SplitOptions(protocol="uda", train_classes=("A1", "A2")))
    found = roles_of_classes(done.manifest)
    assert set(found["A1"]) | set(found["A2"]) == {"train"}
    assert set(found["A3"]) == {"query", "gallery"}
    assert_no_leak(done.manifest)
