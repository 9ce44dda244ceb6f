"""Output folders: fresh, resumed, finished, refused, replaced."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lookdown.chips.output import OutputFolder
from lookdown.errors import OutputError


def test_a_fresh_folder_is_made_and_an_unfinished_one_is_resumed(tmp_path: Path) -> None:
    first = OutputFolder.open(tmp_path / "out", "abc")
    (first.folder / "chip.jpg").write_text("x")
    again = OutputFolder.open(tmp_path / "out", "abc")
    assert again.folder == tmp_path / "out"
    assert not again.complete
    assert (again.folder / "chip.jpg").exists()
    again.finish({"chips": 1})
    assert OutputFolder.open(tmp_path / "out", "abc").complete


def test_other_work_is_refused_and_replaced_only_when_asked_and_only_at_the_end(tmp_path: Path) -> None:
    first = OutputFolder.open(tmp_path / "out", "abc")
    (first.folder / "old.jpg").write_text("x")
    first.finish({})
    with pytest.raises(OutputError, match="`overwrite=True`"):
        OutputFolder.open(tmp_path / "out", "xyz")
    second = OutputFolder.open(tmp_path / "out", "xyz", overwrite=True)
    (second.folder / "new.jpg").write_text("y")
    assert (tmp_path / "out" / "old.jpg").exists()
    resumed = OutputFolder.open(tmp_path / "out", "xyz", overwrite=True)
    assert (resumed.folder / "new.jpg").exists()
    resumed.finish({})
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"new.jpg", "prepare.json"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_we_did_not_make_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("years")
    (tmp_path / "file").write_text("")
    for name in ("thesis", "file"):
        for overwrite in (False, True):
            with pytest.raises(OutputError, match="was not made by lookdown"):
                OutputFolder.open(tmp_path / name, "abc", overwrite=overwrite)
    assert (tmp_path / "thesis" / "chapter1.txt").read_text() == "years"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        OutputFolder.open(tmp_path / "file" / "out", "abc")


def test_the_folder_one_stands_in_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    output = OutputFolder.open(Path(), "abc")
    output.finish({})
    assert OutputFolder.open(Path(), "abc").complete


@pytest.mark.parametrize("name", [".out.new", ".out.old"])
def test_a_strangers_folder_beside_ours_is_neither_used_nor_removed(name: str, tmp_path: Path) -> None:
    OutputFolder.open(tmp_path / "out", "abc").finish({})
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match=rf"{re.escape(name)} is in the way"):
        OutputFolder.open(tmp_path / "out", "xyz", overwrite=True)
    assert OutputFolder.open(tmp_path / "out", "abc").complete
    assert (tmp_path / name / "mine.txt").read_text() == "mine"


def test_a_replacement_that_was_killed_between_its_renames_is_undone(tmp_path: Path) -> None:
    OutputFolder.open(tmp_path / "out", "abc").finish({})
    (tmp_path / "out").rename(tmp_path / ".out.old")
    assert OutputFolder.open(tmp_path / "out", "abc").complete
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
