"""A table in the folder of its gallery."""

from __future__ import annotations

from pathlib import Path

from lookdown.gallery.store.table import ChipTable
from lookdown.gallery.store.table_location import TableLocation, first_line


def test_a_table_in_the_folder_needs_nothing_but_the_folder(tmp_path: Path) -> None:
    location = TableLocation(tmp_path)
    assert not location.exists()
    table = ChipTable.create(location, 3)
    assert location.exists()
    assert (table.uri, table.storage_options) == (str(tmp_path / "records.lance"), {})
    assert (location.address, location.identity) == (None, None)
    assert location.unlisted_files_are_leftovers
    with location.writing(tmp_path / "writer.lock"):
        location.check_lock()


def test_what_lance_says_of_its_source_is_left_out() -> None:
    noisy = "LanceError(IO): Generic S3 error: no space, /home/runner/lance/src/io.rs:12:9\nmore"
    assert first_line(OSError(noisy)) == "no space"
    assert first_line(ValueError()) == "ValueError"
