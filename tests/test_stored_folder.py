"""Folders that are replaced as a whole, also under a kill at the worst moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lookdown.stored_folder import recover, standing, write_folder

FILES = {"a.txt": b"new", "b.txt": b"new too"}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_is_written_and_replaced_and_nothing_is_left_beside(tmp_path: Path) -> None:
    write_folder(tmp_path / "deep" / "folder", {"a.txt": b"old"})
    write_folder(tmp_path / "deep" / "folder", FILES)
    assert contents(tmp_path / "deep" / "folder") == FILES
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["folder"]


@pytest.mark.kill
@pytest.mark.parametrize("renames", [0, 1, 2])
def test_a_kill_after_any_rename_loses_nothing(renames: int, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    write_folder(folder, {"a.txt": b"old"})
    code = f"""
import os, signal, pathlib
from lookdown.stored_folder import write_folder
count, rename = 0, pathlib.Path.rename
def counted(self, target):
    global count
    if count == {renames}:
        os.kill(os.getpid(), signal.SIGKILL)
    count += 1
    return rename(self, target)
pathlib.Path.rename = counted
write_folder(pathlib.Path({str(folder)!r}), {FILES!r})
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == -9
    assert contents(standing(folder)) == (FILES if renames == 2 else {"a.txt": b"old"})
    recover(folder, FILES)
    write_folder(folder, FILES)
    assert contents(folder) == FILES
    assert not (tmp_path / ".folder.old").exists()


def test_a_folder_of_somebody_else_beside_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / ".folder.old").mkdir()
    (tmp_path / ".folder.old" / "mine.txt").write_text("mine")
    (tmp_path / "folder").mkdir()
    recover(tmp_path / "folder", FILES)
    assert (tmp_path / ".folder.old" / "mine.txt").exists()
