"""A table in the folder of its gallery."""

from __future__ import annotations

from pathlib import Path

from lookdown.gallery.store.records import Records
from lookdown.gallery.store.table_place import TablePlace, first_line


def test_a_table_in_the_folder_needs_nothing_but_the_folder(tmp_path: Path) -> None:
    place = TablePlace(tmp_path)
    assert not place.begun()
    records = Records.create(place, 3)
    assert place.begun()
    assert (records.uri, records.storage_options) == (str(tmp_path / "records.lance"), {})
    assert (place.address, place.identity) == (None, None)
    assert place.is_alone
    with place.writing(tmp_path / "writer.lock"):
        records.check_writer()


def test_what_lance_says_of_its_source_is_left_out() -> None:
    noisy = "LanceError(IO): Generic S3 error: no space, /home/runner/lance/src/io.rs:12:9\nmore"
    assert first_line(OSError(noisy)) == "no space"
    assert first_line(ValueError()) == "ValueError"
