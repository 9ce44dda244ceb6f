"""The table of record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.gallery.galleries import kinds, rows_of, vector_gallery

from lookdown.errors import GalleryError
from lookdown.gallery.store.table import ChipTable, TableLocation, first_line


def filled(path: Path, n: int = 50) -> tuple[ChipTable, np.ndarray, list[dict[str, object]]]:
    X, y = kinds(n)
    rows = [row | {"thumbnail": b"jpeg %d" % place} for place, row in enumerate(rows_of(y))]
    records = ChipTable.create(TableLocation(path), 8)
    for begin in range(0, n, 20):
        records.append(rows[begin : begin + 20], X[begin : begin + 20], first_key=begin)
    return records, X, rows


def test_rows_come_back_as_they_were_in_their_order(tmp_path: Path) -> None:
    records, X, rows = filled(tmp_path)
    snapshot = records.snapshot()
    assert snapshot.ids.to_pylist() == [row["id"] for row in rows]
    np.testing.assert_array_equal(snapshot.embeddings(), X)
    chosen = np.array([41, 3, 3, 20])
    np.testing.assert_array_equal(snapshot.embeddings(chosen), X[chosen])
    names = ["id", "source", "scene", "scene_group", "label", "footprint", "time", "sensor", "thumbnail"]
    assert snapshot.read(chosen, names) == [{name: rows[row].get(name) for name in names} for row in chosen]
    assert snapshot.dimension == 8


def test_columns_hold_what_filters_ask_for(tmp_path: Path) -> None:
    records, _, rows = filled(tmp_path)
    columns = records.snapshot().columns
    for place, row in enumerate(rows):
        assert columns.labels[place] == row["label"]
        assert columns.sensors[place] == row["sensor"]
        assert np.isnat(columns.times[place]) == (row["time"] is None)
        assert np.isnan(columns.bounds[place]).all() == (row["footprint"] is None)
    placed = next(place for place, row in enumerate(rows) if row["footprint"])
    west, south, east, north = columns.bounds[placed]
    assert f"{west:.4f} {south:.4f}" in str(rows[placed]["footprint"])
    assert f"{east:.4f} {north:.4f}" in str(rows[placed]["footprint"])
    assert columns.footprints(np.array([placed])) == [rows[placed]["footprint"]]
    timed = next(place for place, row in enumerate(rows) if row["time"])
    assert str(columns.times[timed]) == str(rows[timed]["time"]).replace("Z", ".000000")


def test_a_snapshot_stays_while_others_write(tmp_path: Path) -> None:
    records, X, rows = filled(tmp_path)
    before = records.snapshot()
    writer = ChipTable.open(TableLocation(tmp_path))
    writer.remove(np.arange(10))
    writer.mark([str(rows[30]["id"])], ["new"], [False])
    writer.tidy()
    assert len(before) == 50
    np.testing.assert_array_equal(before.embeddings(), X)
    assert before.read(np.array([30]), ["label"]) == [{"label": rows[30]["label"]}]
    assert records.version > before.version
    after = records.snapshot()
    assert len(after) == 40
    assert set(after.keys.tolist()) == set(range(10, 50))
    row = after.find([str(rows[30]["id"])])
    assert after.read(row, ["label", "source", "thumbnail"])[0] == {
        "label": "new", "source": rows[30]["source"], "thumbnail": b"jpeg 30",
    }  # fmt: skip
    np.testing.assert_array_equal(after.embeddings(row)[0], X[30])
    assert after.marked[row].all()


def test_chips_are_found_by_name_whatever_it_is(tmp_path: Path) -> None:
    records, _, rows = filled(tmp_path)
    snapshot = records.snapshot()
    names = [str(rows[7]["id"]), "nobody", "' OR 1=1 --", str(rows[0]["id"])]
    assert snapshot.find(names).tolist() == [7, -1, -1, 0]
    assert snapshot.find([]).tolist() == []


def test_an_empty_table_has_no_rows(tmp_path: Path) -> None:
    snapshot = ChipTable.create(TableLocation(tmp_path), 3).snapshot()
    assert len(snapshot) == 0
    assert snapshot.embeddings().shape == (0, 3)
    assert list(snapshot.batches()) == []
    assert snapshot.find(["x"]).tolist() == [-1]
    assert snapshot.read(np.array([], np.intp), ["id"]) == []


def test_a_table_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(GalleryError, match=r"the table of .* cannot be opened: .*; check the folder"):
        ChipTable.open(TableLocation(tmp_path))


def test_a_mark_taken_away_is_no_mark(tmp_path: Path) -> None:
    records, _, rows = filled(tmp_path)
    name = str(rows[5]["id"])
    records.mark([name], ["x"], [False])
    records.mark([name], [None], [False])
    snapshot = records.snapshot()
    row = int(snapshot.find([name])[0])
    assert snapshot.columns.labels[row] is None
    assert not snapshot.marked[row]


def test_few_and_many_ids_are_found_alike(tmp_path: Path) -> None:
    gallery, _, rows = vector_gallery(tmp_path / "g", 60)
    ids = [*(row["id"] for row in rows[::7]), "none", "\ud800", rows[3]["id"]]
    one_by_one = [int(gallery.snapshot.find([name])[0]) for name in ids]
    assert gallery.snapshot.find(ids).tolist() == one_by_one
    assert one_by_one[-3:] == [-1, -1, 3]
    assert gallery.snapshot.find([]).tolist() == []


def test_a_table_in_the_folder_needs_nothing_but_the_folder(tmp_path: Path) -> None:
    location = TableLocation(tmp_path)
    assert not location.exists()
    table = ChipTable.create(location, 3)
    assert location.exists()
    assert (table.location.uri, table.location.storage_options) == (str(tmp_path / "records.lance"), {})
    assert (location.address, location.identity) == (None, None)
    assert location.unlisted_files_are_leftovers
    with location.writing(tmp_path / "writer.lock"):
        location.check_lock()


def test_what_lance_says_of_its_source_is_left_out() -> None:
    noisy = "LanceError(IO): Generic S3 error: no space, /home/runner/lance/src/io.rs:12:9\nmore"
    assert first_line(OSError(noisy)) == "no space"
    assert first_line(ValueError()) == "ValueError"
