"""Files and folders that are replaced as a whole, also under a kill at the worst moment."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lookdown.atomic import (
    copy_folder,
    explained,
    finish_replacement,
    is_temporary,
    readable_folder,
    replacing,
    write_file,
    write_folder,
)
from lookdown.errors import OutputError

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
from lookdown.atomic import write_folder
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
    assert contents(readable_folder(folder)) == (FILES if renames == 2 else {"a.txt": b"old"})
    finish_replacement(folder, known=FILES)
    write_folder(folder, FILES)
    assert contents(folder) == FILES
    assert not (tmp_path / ".folder.old").exists()


def test_a_folder_of_somebody_else_beside_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / ".folder.old").mkdir()
    (tmp_path / ".folder.old" / "mine.txt").write_text("mine")
    (tmp_path / "folder").mkdir()
    finish_replacement(tmp_path / "folder", known=FILES)
    assert (tmp_path / ".folder.old" / "mine.txt").exists()


def test_a_file_is_written_and_replaced_and_nothing_is_left_beside(tmp_path: Path) -> None:
    write_file(tmp_path / "a.txt", "old")
    write_file(tmp_path / "a.txt", "n\u00e9w")
    write_file(tmp_path / ("b" * 250), b"a long name", flush=False)
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "n\u00e9w"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b" * 250]


def test_an_error_while_writing_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_file(tmp_path / "a.txt", "old")

    def write_half() -> None:
        with replacing(tmp_path / "a.txt") as temporary:
            temporary.write_text("ne")
            assert is_temporary(temporary.name)
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        write_half()
    assert contents(tmp_path) == {"a.txt": b"old"}


@pytest.mark.kill
def test_a_kill_before_the_rename_leaves_the_old_file(tmp_path: Path) -> None:
    write_file(tmp_path / "a.txt", "old")
    code = f"""
import os, signal, pathlib
from lookdown.atomic import write_file
pathlib.Path.replace = lambda self, target: os.kill(os.getpid(), signal.SIGKILL)
write_file(pathlib.Path({str(tmp_path)!r}, "a.txt"), "new")
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == -9
    rest = [path for path in tmp_path.iterdir() if path.name != "a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [is_temporary(path.name) for path in rest] == [True]


def test_a_folder_is_copied_whole_also_from_where_a_killed_write_left_it(tmp_path: Path) -> None:
    write_folder(tmp_path / ".source.old", FILES)
    copy_folder(tmp_path / "source", tmp_path / "deep" / "target")
    assert contents(tmp_path / "deep" / "target") == FILES
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["target"]


def test_names_of_our_own_files_are_not_temporary() -> None:
    assert not any(map(is_temporary, ("gallery.json", ".folder.old", "a.part", "part", ".part")))


def test_an_error_of_the_disk_becomes_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "none" / "a.txt"
    with (
        pytest.raises(OutputError, match="No such file or directory; look there"),
        explained(file, "look there"),
    ):
        write_file(file, "text")


def test_threads_that_write_one_file_do_not_meet(tmp_path: Path) -> None:
    contents = {bytes([number]) * 100_000 for number in range(8)}
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda content: write_file(tmp_path / "a", content, flush=False), [*contents] * 20))
    assert (tmp_path / "a").read_bytes() in contents
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
