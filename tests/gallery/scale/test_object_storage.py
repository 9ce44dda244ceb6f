"""Galleries whose table is in a bucket: a real S3 server on loopback, copies of the folder, crowds, kills, outages."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import obstore
import pytest
from tests.gallery import killable
from tests.gallery.galleries import kinds, rows_of, vector_gallery
from tests.gallery.killable import Nursery
from tests.gallery.scale.running_store import BUCKET, KEY, SECRET, RunningStore

from lookdown import Gallery, Where
from lookdown.errors import GalleryBusyError, GalleryError
from lookdown.gallery.scale import bucket
from lookdown.gallery.store import table as table_module

LEASE = 3.0  # seconds: enough for the pauses of a busy machine


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory, running_store: RunningStore) -> Iterator[Nursery]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in running_store.environment.items():
            patch.setenv(name, value)
        with Nursery(tmp_path_factory.mktemp("said")) as made:
            yield made


def copied(gallery: Path) -> Path:
    """Return another machine's copy of the folder."""
    copy = gallery.with_name(f"copy of {gallery.name}")
    shutil.copytree(gallery, copy)
    return copy


def whole(gallery: Path) -> list[str]:
    """Return the ids, when no id and no key is there twice."""
    snapshot = Gallery.open(gallery).snapshot
    ids: list[str] = snapshot.ids.to_pylist()
    assert len(set(ids)) == len(ids)
    assert len(set(snapshot.keys.tolist())) == len(ids)
    assert (np.diff(snapshot.keys) > 0).all()
    return ids


def refusal(gallery: Path, chip: str) -> str:
    """Add a chip; return who writes instead, if another does."""
    try:
        Gallery.open(gallery).add_embeddings([{"id": chip}], np.ones((1, 8)))
    except GalleryBusyError as busy:
        return str(busy)
    return ""


def test_a_gallery_in_a_bucket_is_that_on_a_disk_bit_for_bit(tmp_path: Path, table: str) -> None:
    here, X, rows = vector_gallery(tmp_path / "here", 200)
    there, *_ = vector_gallery(tmp_path / "there", 200, table=table)
    more, y = kinds(40, seed=3)
    new = [row | {"id": f"new {row['id']}"} for row in rows_of(y, 3)]
    for gallery in (here, there):
        assert gallery.add_embeddings(rows, X).present == 200
        assert gallery.add_embeddings(new, more).added == 40
        assert gallery.remove([row["id"] for row in rows[:20]]) == 20
        assert gallery.remove(where=Where(scene="sea", sensor="S2A")) > 0
        *some, empty = gallery.snapshot.ids.to_pylist()[-5:]
        gallery.label(some, ["a", "a", "b", None], background=[empty])
        gallery.adapt(clusters=5, seed=1)
        gallery.calibrate()
    assert here.metric == there.metric
    for where in (None, Where(label="tanker"), Where(since="2021-05-01")):
        for query in more[:5]:
            found, wanted = there.search(query, k=30, where=where), here.search(query, k=30, where=where)
            assert (found.hits, found.rows_searched) == (wanted.hits, wanted.rows_searched)
    np.testing.assert_array_equal(there.snapshot.embeddings(), here.snapshot.embeddings())
    assert not (tmp_path / "there" / "records.lance").exists()


def test_the_folder_knows_the_table_and_no_credentials(tmp_path: Path, table: str) -> None:
    gallery, *_ = vector_gallery(tmp_path / "g", 40, table=f"{table}/")
    assert gallery.stats().table == f"{table}/records.lance"
    assert json.loads((tmp_path / "g" / "gallery.json").read_text())["table"]["address"] == table
    for file in (tmp_path / "g").rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert KEY.encode() not in content
            assert SECRET.encode() not in content
    assert gallery._table.location.uri == f"{table}/records.lance"
    assert gallery._table.location.storage_options["aws_access_key_id"] == KEY
    Gallery.open(tmp_path / "g", table=table)
    with pytest.raises(GalleryError, match=f"has its table at {table}/records.lance, and it stays there; omit"):
        Gallery.open(tmp_path / "g", table=f"{table}2")
    vector_gallery(tmp_path / "local", 20)
    with pytest.raises(GalleryError, match=r"has its table at .*local/records\.lance, and it stays there"):
        Gallery.open(tmp_path / "local", table=table)


def test_a_copy_of_the_folder_opens_the_same_table_and_sees_what_the_other_writes(tmp_path: Path, table: str) -> None:
    first, X, rows = vector_gallery(tmp_path / "g", 40, table=table)
    second = Gallery.open(copied(tmp_path / "g"))
    more = kinds(60, seed=2)[0]
    before = second.search(X[0], k=5)
    first.add_embeddings([{"id": f"more {place}"} for place in range(60)], more)
    assert second.search(X[0], k=5).hits == before.hits
    assert second.refresh()
    assert len(second) == 100
    second.remove([rows[0]["id"]])
    assert first.refresh()
    assert len(first) == 99
    with (
        first.writing(),
        pytest.raises(GalleryBusyError, match=f"{table} is being written to by process {os.getpid()}"),
    ):
        second.remove([rows[1]["id"]])


def test_a_making_that_was_cut_off_is_begun_anew(tmp_path: Path, table: str) -> None:
    Gallery.create(tmp_path / "g", dimension=8, table=table)
    (tmp_path / "g" / "gallery.json").unlink()
    gallery, *_ = vector_gallery(tmp_path / "g", 20, table=table)
    assert len(gallery) == 20


def test_of_writers_at_once_in_copies_one_writes_and_none_is_lost(tmp_path: Path, table: str, nursery: Nursery) -> None:
    vector_gallery(tmp_path / "g", 10, table=table)
    folders = [tmp_path / "g", copied(tmp_path / "g")]
    folders.append(copied(folders[1]))
    wanted = {f"writer {number} {place}" for number in range(3) for place in range(60)}
    refused, turns = 0, 0
    left = set(range(3))
    while left:
        turns += 1
        assert turns < 10
        children = {
            number: nursery.start(killable.add, folders[number], f"writer {number}", 60, LEASE) for number in left
        }
        for number, child in children.items():
            said = child.join()
            if child.status == 0:
                left.discard(number)
            else:
                assert said[-1]["error"] == "GalleryBusyError", said[-1]
                assert "is being written to by process" in said[-1]["message"]
                refused += 1
    assert refused
    assert set(whole(folders[0])[10:]) == wanted


def test_a_killed_writer_holds_others_up_for_a_while_and_loses_nothing_it_had_said(
    tmp_path: Path, table: str, nursery: Nursery, store: RunningStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "LEASE_SECONDS", LEASE)
    vector_gallery(tmp_path / "g", 10, table=table)
    copy = copied(tmp_path / "g")
    for number, (folder, waits) in enumerate([(copy, True), (tmp_path / "g", False)]):
        child = nursery.start(killable.add, tmp_path / "g", f"round {number}", 400, LEASE)
        child.hear(lambda said: len(said) > 4)
        killed = time.monotonic()
        assert child.kill()
        last = child.said[-1]
        advanced = 0.0
        while busy := refusal(folder, f"after {number}"):
            assert waits
            assert f"by process {child.pid} on" in busy
            assert advanced < 2 * LEASE
            store.advance(0.2)
            advanced += 0.2
        waited = advanced + time.monotonic() - killed  # the store's clock runs on by itself, too
        assert waited > LEASE / 2 if waits else not advanced
        ids = whole(folder)
        assert last in ids
        assert ids[-1] == f"after {number}"
        done = nursery.start(killable.add, tmp_path / "g", f"round {number}", 400, LEASE).finish()
        assert 0 < done[-1]["added"] < 400  # it went on where it was
        assert len([name for name in whole(copy) if name.startswith(f"round {number}")]) == 400


def test_a_writer_that_slept_too_long_stops_when_it_wakes(
    tmp_path: Path, table: str, nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "LEASE_SECONDS", LEASE)
    vector_gallery(tmp_path / "g", 10, table=table)
    copy = copied(tmp_path / "g")
    child = nursery.start(killable.add, tmp_path / "g", "sleeper", 400, LEASE)
    child.hear(lambda said: len(said) > 3)
    child.stop()
    time.sleep(LEASE + 1.5)
    Gallery.open(copy).add_embeddings([{"id": "sleeper 399"}, {"id": "another"}], np.ones((2, 8)))
    ids = whole(copy)
    child.go_on()
    said = child.join()
    assert said[-1]["error"] == "GalleryError"
    assert "has expired" in said[-1]["message"] or "another writer has taken over" in said[-1]["message"]
    assert whole(copy) == ids  # not one row after another had begun
    assert all(name in ids for name in said[1:-1])


def test_adding_goes_on_when_the_store_comes_back(
    tmp_path: Path, table: str, nursery: Nursery, store: RunningStore
) -> None:
    vector_gallery(tmp_path / "g", 10, table=table)
    child = nursery.start(killable.add, tmp_path / "g", "patient", 300, 60.0)
    for steps in (3, 10):
        child.hear(lambda said, steps=steps: len(said) > steps)  # type: ignore[misc]
        store.pause()
        time.sleep(2)
        store.go_on()
    child.finish()
    assert len(whole(tmp_path / "g")) == 310


def test_what_a_killed_step_left_is_in_nobodys_way_and_old_versions_go(
    tmp_path: Path, table: str, store: RunningStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    gallery, *_ = vector_gallery(tmp_path / "g", 10, table=table)
    below = table.split("/", 3)[3]
    obstore.put(store.objects, f"{below}/records.lance/data/orphan.lance", b"half")
    for place in range(12):
        gallery.add_embeddings([{"id": f"one {place}"}], np.ones((1, 8)))
    many = store.names(f"{below}/records.lance/data")
    monkeypatch.setattr(table_module, "_KEEP_VERSIONS", timedelta(milliseconds=1))
    gallery.add_embeddings([{"id": "last"}], np.ones((1, 8)))
    few = store.names(f"{below}/records.lance/data")
    assert len(few) < len(many)
    assert f"{below}/records.lance/data/orphan.lance" in few  # Lance keeps what no version names for seven days
    assert len(Gallery.open(tmp_path / "g")) == 23


def test_opening_reads_the_columns_and_not_the_thumbnails(tmp_path: Path, table: str, store: RunningStore) -> None:
    X, y = kinds(300)
    rows = [row | {"thumbnail": os.urandom(4_000)} for row in rows_of(y)]
    Gallery.create(tmp_path / "g", dimension=8, table=table).add_embeddings(rows, X)
    before = len(store.read())
    gallery = Gallery.open(tmp_path / "g")
    opened = store.read()[before:]
    assert sum(size for *_, size in opened) < 0.5 * 300 * 4_000
    assert len(opened) < 25
    found = gallery.search(X[0], k=3)
    assert all(hit.thumbnail == rows[int(str(hit.id).split("'")[1])]["thumbnail"] for hit in found.hits)
    assert BUCKET in opened[0][1]
