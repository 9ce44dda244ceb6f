"""A table in a bucket: addresses, the fence against a writer that was taken over, and sentences for what goes wrong."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pyarrow as pa
import pytest
from tests.gallery.galleries import kinds, rows_of, vector_gallery
from tests.gallery.scale.running_milvus import free_ports
from tests.gallery.scale.running_store import KEY, SECRET, RunningStore

from lookdown import Gallery
from lookdown.errors import GalleryError, InputError, LookdownError, MissingExtraError, StorageError
from lookdown.gallery.scale import bucket
from lookdown.gallery.scale.bucket import BucketLocation, table_address
from lookdown.gallery.scale.lease import LEASE_FILE, NoConditionalPutsError
from lookdown.gallery.store.table import schema
from lookdown.service.problems import of_error

X, KINDS = kinds(50)
WHOLE = [row | {"thumbnail": b""} for row in rows_of(KINDS)]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("s3://lake/ships", "s3://lake/ships"),
        ("s3://lake/a/b c/", "s3://lake/a/b c"),
        ("s3://my.lake-2", "s3://my.lake-2"),
        ("gs://lake/ships", "gs://lake/ships"),
    ],
)
def test_addresses_are_kept_in_one_form(given: str, kept: str) -> None:
    assert table_address(given) == kept


@pytest.mark.parametrize(
    "given",
    [
        "lake/ships",
        "s3://",
        "s3://La/x",
        "s3://id:secret@lake/x",
        "s3://lake/x?versionId=1",
        "s3://lake/x#y",
        "s3://lake//x",
    ],
)
def test_what_is_no_address_is_refused_and_not_echoed(given: str) -> None:
    with pytest.raises(InputError, match="s3://bucket/name, without user, password or options") as told:
        table_address(given)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("scheme", ["az", "http", "file", "hdfs"])
def test_other_stores_are_refused_by_name(scheme: str) -> None:
    with pytest.raises(InputError, match=f"cannot be kept at {scheme}://; give it as s3://"):
        table_address(f"{scheme}://lake/x")


STEPS: dict[str, Callable[[Gallery], object]] = {
    "add": lambda gallery: gallery.add_embeddings(WHOLE[40:], X[40:]),
    "label": lambda gallery: gallery.label([WHOLE[0]["id"]], ["late"]),
    "remove": lambda gallery: gallery.remove([WHOLE[0]["id"]]),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_begun_before_a_takeover_is_void(
    step: str, tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst moment: a writer stands still right after it has made sure, and goes on when another has written."""
    gallery = Gallery.create(tmp_path / "g", dimension=8, table=table)
    gallery.add_embeddings(WHOLE[:30], X[:30])
    shutil.copytree(tmp_path / "g", tmp_path / "copy")
    check = BucketLocation.check_lock

    def stands_still(location: BucketLocation) -> None:
        check(location)
        monkeypatch.setattr(BucketLocation, "check_lock", check)
        copy = Gallery.open(tmp_path / "copy")
        with copy._folder.location.writing(tmp_path / "g" / "writer.lock"):  # as if the first were known to be dead
            copy._table.append(WHOLE[30:40], X[30:40], first_key=1 << 60)

    monkeypatch.setattr(BucketLocation, "check_lock", stands_still)
    with pytest.raises(GalleryError, match=f"another writer has taken over {table}; run the same again"):
        STEPS[step](gallery)
    after = Gallery.open(tmp_path / "copy").snapshot
    assert after.ids.to_pylist() == [row["id"] for row in WHOLE[:40]]
    np.testing.assert_array_equal(after.embeddings(), X[:40])
    assert "late" not in after.columns.labels.values
    STEPS[step](Gallery.open(tmp_path / "g"))


def test_a_step_between_the_look_and_the_fence_is_kept(
    tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gallery = Gallery.create(tmp_path / "g", dimension=8, table=table)
    shutil.copytree(tmp_path / "g", tmp_path / "copy")
    opened = BucketLocation.open

    def late(location: BucketLocation) -> Any:
        dataset = opened(location)
        monkeypatch.setattr(BucketLocation, "open", opened)
        gallery._table._latest().add(_table(WHOLE[:5]))
        return dataset

    with gallery._folder.location.writing(tmp_path / "g" / "writer.lock"):
        monkeypatch.setattr(BucketLocation, "open", late)
        copy = Gallery.open(tmp_path / "copy")
        with copy._folder.location.writing(tmp_path / "g" / "writer.lock"):
            copy.refresh()
            assert len(copy) == 5


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    kept = schema(8)
    known = [row | {"key": location, "marked": False, "embedding": [1.0] * 8} for location, row in enumerate(rows)]
    return pa.Table.from_pylist(known, schema=kept)


def refusal(work: Callable[[], object]) -> str:
    """Return the sentence; it never holds what opens the door."""
    with pytest.raises(LookdownError) as told:
        work()
    text = str(told.value)
    assert KEY not in text
    assert SECRET not in text
    assert len(text) < 400
    assert ".rs" not in text
    return text


def test_a_bucket_that_is_not_there_is_named(tmp_path: Path, store: RunningStore) -> None:
    told = refusal(lambda: Gallery.create(tmp_path / "g", dimension=8, table="s3://lakes/ships"))
    assert told.startswith("the bucket lakes does not exist; make it, or check")


def test_wrong_credentials_are_told_without_showing_them(tmp_path: Path, store: RunningStore, table: str) -> None:
    gallery, *_ = vector_gallery(tmp_path / "g", 30, table=table)
    store.let_in(False)
    try:
        for work in (
            lambda: Gallery.open(tmp_path / "g"),
            lambda: gallery.remove(["x"]),
            lambda: gallery._table.snapshot(),
            lambda: Gallery.create(tmp_path / "h", dimension=8, table=table + "2"),
        ):
            assert "refuses our credentials; set AWS_ACCESS_KEY_ID" in refusal(work)
    finally:
        store.let_in(True)
    assert len(Gallery.open(tmp_path / "g")) == 30


def test_a_store_that_nobody_answers_at_is_told_soon(
    tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector_gallery(tmp_path / "g", 30, table=table)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_ports(1)[0]}")
    monkeypatch.setattr(bucket, "_RETRY_FOR", timedelta(seconds=1))
    told = refusal(lambda: Gallery.open(tmp_path / "g"))
    assert told.startswith(f"the store of {table} does not answer; check the network and AWS_ENDPOINT_URL")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "false")
    assert "AWS_ALLOW_HTTP forbids that" in refusal(lambda: Gallery.open(tmp_path / "g"))


def test_a_table_that_is_gone_or_anothers_is_told(tmp_path: Path, store: RunningStore, table: str) -> None:
    vector_gallery(tmp_path / "g", 30, table=table)
    occupied = refusal(lambda: Gallery.create(tmp_path / "h", dimension=8, table=table))
    assert "holds a table of 30 chips of another gallery; use a copy of that folder" in occupied
    obstore.delete(store.objects, [name for name in store.names(table.split("/", 3)[3]) if "/data/" in name])
    assert "it is gone, or parts of it are; restore it" in refusal(lambda: Gallery.open(tmp_path / "g"))
    obstore.delete(store.objects, store.names(table.split("/", 3)[3]))
    assert "it is gone, or parts of it are; restore it" in refusal(lambda: Gallery.open(tmp_path / "g"))
    first = Gallery.create(tmp_path / "first", dimension=8, table=table)
    Gallery.create(tmp_path / "second", dimension=5, table=table)  # over a table without rows
    for work in (lambda: Gallery.open(tmp_path / "first"), first.refresh, lambda: first.add_embeddings(WHOLE, X)):
        assert "belongs to another gallery than" in refusal(work)


def test_a_damaged_lease_and_a_store_without_conditions_are_told(
    tmp_path: Path, store: RunningStore, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gallery, *_ = vector_gallery(tmp_path / "g", 30, table=table)
    obstore.put(store.objects, f"{table.split('/', 3)[3]}/{LEASE_FILE}", b"?")
    assert f"{table}/writer.json is damaged; remove it if nobody is writing" in refusal(lambda: gallery.remove(["x"]))
    location = BucketLocation(tmp_path, table, "me")
    told = str(location.explain("cannot be written", NoConditionalPutsError()))
    assert "does not decide conditional writes (If-None-Match, If-Match)" in told
    assert str(location.explain("cannot be written", OSError("501: <Code>NotImplemented</Code>"))) == told


def test_what_is_unknown_is_quoted_without_credentials(tmp_path: Path, store: RunningStore) -> None:
    location = BucketLocation(tmp_path, "s3://lake/x", "me")
    told = location.explain("cannot be read", OSError(f"LanceError(IO): odd {KEY} {SECRET}: <?xml?><Key>{KEY}</Key>"))
    assert str(told) == f"the table of {tmp_path} at s3://lake/x cannot be read: odd … …; " + (
        "check the bucket; restore the table from a copy, or index anew"
    )
    assert SECRET not in repr(location)
    assert "another region; set AWS_REGION" in str(location.explain("x", OSError("301 <Code>PermanentRedirect</Code>")))


def test_what_is_missing_is_named(tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(MissingExtraError, match=r"a table in a bucket needs .* 'lookdown\[object-storage\]'"):
        Gallery.create(tmp_path / "g", dimension=8, table=table)


def test_the_service_tells_that_the_store_is_away() -> None:
    assert of_error(StorageError("away"), Path("/g")).status_code == 503
