"""Files and folders that are replaced as a whole, also under a kill at the worst moment, and folders with a digest.

Metrics, embedders and exports test their own kinds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lookdown.atomic import (
    StoredKind,
    copy_folder,
    digest,
    explained,
    finish_replacement,
    is_temporary,
    readable_folder,
    replacing,
    write_file,
    write_folder,
)
from lookdown.errors import InputError, OutputError

FILES = {"a.txt": b"new", "b.txt": b"new too"}
KIND = StoredKind(
    name="a thing",
    marker="thing.json",
    files=("thing.json", "a.bin", "b.bin"),
    format="test-thing",
    version=2,
    written_by="thing.save",
    again="save the thing anew",
    error=InputError,
    required={"size": int},
)
PARTS = {"b.bin": b"second", "a.bin": b"first"}


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


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    assert not KIND.is_at(tmp_path / "thing")
    KIND.write(tmp_path / "thing", {"size": 3}, PARTS)
    assert KIND.is_at(tmp_path / "thing")
    description = KIND.describe(tmp_path / "thing")
    assert (description["format"], description["version"], description["size"]) == ("test-thing", 2, 3)
    assert KIND.read(tmp_path / "thing", description, PARTS) == PARTS


def test_the_digest_depends_on_every_byte_and_not_on_the_order() -> None:
    assert digest({"a": 1, "b": 2}, PARTS) == digest({"b": 2, "a": 1, "sha256": "x"}, dict(reversed(PARTS.items())))
    assert len({digest({"a": 1}, PARTS), digest({"a": 2}, PARTS), digest({"a": 1}, {**PARTS, "a.bin": b"f"})}) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"thing\.json cannot be read: .*; save the thing anew"),
        ("[" * 100_000, "is nested too deeply to describe a thing"),
        ("{}", r"does not describe a thing; give a folder that thing\.save wrote"),
        ('{"format": "test-thing", "version": 1}', "has format version 1, this lookdown reads version 2"),
        ('{"format": "test-thing", "version": 2, "size": "3", "sha256": ""}', "lacks 'size', or has another type"),
        ('{"format": "test-thing", "version": 2, "size": 3}', "lacks 'sha256'"),
    ],
)
def test_a_description_that_is_none_is_refused_by_name(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "thing.json").write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        KIND.describe(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_a_missing_marker_a_missing_file_and_a_changed_byte_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no thing \(thing\.json is missing\)"):
        KIND.describe(tmp_path)
    KIND.write(tmp_path / "thing", {"size": 3}, PARTS)
    description = KIND.describe(tmp_path / "thing")
    (tmp_path / "thing" / "a.bin").write_bytes(b"fifth")
    with pytest.raises(InputError, match="thing is not as it was saved"):
        KIND.read(tmp_path / "thing", description, PARTS)
    (tmp_path / "thing" / "a.bin").unlink()
    with pytest.raises(InputError, match=r"a\.bin cannot be read: No such file"):
        KIND.read(tmp_path / "thing", description, PARTS)


def test_only_a_folder_of_the_same_kind_is_replaced_and_only_when_asked(tmp_path: Path) -> None:
    folder = tmp_path / "thing"
    KIND.write(folder, {"size": 3}, PARTS)
    with pytest.raises(InputError, match="pass `overwrite=True`"):
        KIND.write(folder, {"size": 4}, PARTS)
    KIND.write(folder, {"size": 4}, {"a.bin": b"alone"}, overwrite=True)
    assert json.loads((folder / "thing.json").read_text())["size"] == 4
    assert not (folder / "b.bin").exists()
    (folder / "mine.txt").write_text("mine")
    (tmp_path / "empty").mkdir()
    for other in (folder, tmp_path / "empty"):
        with pytest.raises(InputError, match="is not a thing, or holds other files as well; nothing was written"):
            KIND.write(other, {"size": 5}, PARTS, overwrite=True)
    assert (folder / "mine.txt").read_text() == "mine"
