"""A file is replaced whole, or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lookdown.errors import OutputError
from lookdown.gallery.whole_file import check_place, write_whole


def test_content_is_replaced_and_nothing_is_left_beside(tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    write_whole(file, "one")
    write_whole(file, "two, with ü")
    assert file.read_text(encoding="utf-8") == "two, with ü"
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_a_failed_write_leaves_the_old_content_and_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "note.txt"
    write_whole(file, "old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"note\.txt cannot be written: No space left"):
        write_whole(file, "new")
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_who_reads_meanwhile_has_the_old_content_whole(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"old")
    with (tmp_path / "out").open("rb") as reading:
        write_whole(tmp_path / "out", b"new")
        assert reading.read() == b"old"
    assert (tmp_path / "out").read_bytes() == b"new"


def test_a_file_has_the_usual_rights(tmp_path: Path) -> None:
    write_whole(tmp_path / "out", b"content")
    (tmp_path / "usual").write_bytes(b"")
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_place_that_cannot_be_had_is_told_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"old")
    with pytest.raises(OutputError, match="out exists; name another file, or pass --overwrite"):
        check_place(tmp_path / "out")
    check_place(tmp_path / "out", overwrite=True)
    with pytest.raises(OutputError, match=r"out cannot be written: .*missing is not a folder; make it"):
        check_place(tmp_path / "missing" / "out")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="folder cannot be written"):
        write_whole(tmp_path / "folder", b"")


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_whole("x" * 255, b"content")
    assert (tmp_path / ("x" * 255)).read_bytes() == b"content"
    with pytest.raises(OutputError, match="cannot be written: File name too long"):
        write_whole("x" * 256, b"content")
