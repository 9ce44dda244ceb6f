"""Tests of folders with a description and a digest; metrics, embedders and exports test their own kinds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lookdown.errors import InputError
from lookdown.stored import StoredKind, digest

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
FILES = {"b.bin": b"second", "a.bin": b"first"}


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    assert not KIND.is_at(tmp_path / "thing")
    KIND.write(tmp_path / "thing", {"size": 3}, FILES)
    assert KIND.is_at(tmp_path / "thing")
    description = KIND.describe(tmp_path / "thing")
    assert (description["format"], description["version"], description["size"]) == ("test-thing", 2, 3)
    assert KIND.read(tmp_path / "thing", description, FILES) == FILES


def test_the_digest_depends_on_every_byte_and_not_on_the_order() -> None:
    assert digest({"a": 1, "b": 2}, FILES) == digest({"b": 2, "a": 1, "sha256": "x"}, dict(reversed(FILES.items())))
    assert len({digest({"a": 1}, FILES), digest({"a": 2}, FILES), digest({"a": 1}, {**FILES, "a.bin": b"f"})}) == 3


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
    KIND.write(tmp_path / "thing", {"size": 3}, FILES)
    description = KIND.describe(tmp_path / "thing")
    (tmp_path / "thing" / "a.bin").write_bytes(b"fifth")
    with pytest.raises(InputError, match="thing is not as it was saved"):
        KIND.read(tmp_path / "thing", description, FILES)
    (tmp_path / "thing" / "a.bin").unlink()
    with pytest.raises(InputError, match=r"a\.bin cannot be read: No such file"):
        KIND.read(tmp_path / "thing", description, FILES)


def test_only_a_folder_of_the_same_kind_is_replaced_and_only_when_asked(tmp_path: Path) -> None:
    folder = tmp_path / "thing"
    KIND.write(folder, {"size": 3}, FILES)
    with pytest.raises(InputError, match="pass `overwrite=True`"):
        KIND.write(folder, {"size": 4}, FILES)
    KIND.write(folder, {"size": 4}, {"a.bin": b"alone"}, overwrite=True)
    assert json.loads((folder / "thing.json").read_text())["size"] == 4
    assert not (folder / "b.bin").exists()
    (folder / "mine.txt").write_text("mine")
    (tmp_path / "empty").mkdir()
    for other in (folder, tmp_path / "empty"):
        with pytest.raises(InputError, match="is not a thing, or holds other files as well; nothing was written"):
            KIND.write(other, {"size": 5}, FILES, overwrite=True)
    assert (folder / "mine.txt").read_text() == "mine"
