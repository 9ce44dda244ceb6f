"""The table of chips, in LanceDB: one row per chip, with its raw embedding and its thumbnail.

Everything else that a gallery keeps about chips is derived from this table. Rows are selected by their row number or by
a key that we assign, so no text of a user ever becomes part of an expression. The table is stored in the folder of the
gallery, or in a bucket (`scale/bucket.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from lookdown.errors import GalleryError, LookdownError
from lookdown.gallery.store.snapshot import BOUNDS, Embeddings, Snapshot, shapes

__all__ = ["READING", "ChipTable", "TableLocation", "as_table", "first_line", "is_not_found", "schema"]

for _name in ("LANCE_LOG", "LANCEDB_LOG"):  # read at their import; else they warn about every new table
    os.environ.setdefault(_name, "error")

READING = ("cannot be opened", "cannot be read")
_NAME = "records"
_LANCE_ERRORS = (OSError, RuntimeError, ValueError, pa.ArrowException)
_PANICS = ("PanicException", "RustPanic")  # of Lance on damaged files; they cannot be imported
_NOT_FOUND = re.compile(r"was not found|not found:|NoSuchKey", re.IGNORECASE)
_NOISE = re.compile(r"(lance error|External error|LanceError\(\w+\)|Generic \w+ error): |, /\S+\.rs:\d+:\d+")
_AFTER_WRITING = "free the disk or check the folder, and run the same again: what was added before is kept"
_AFTER_READING = "check the folder; restore it from a copy, or index anew"
_DELETED_KEYS = 10_000  # in one expression
_IDENTITY = b"lookdown.gallery"  # the field of the schema's metadata with the identity of the gallery
_KEEP_VERSIONS = timedelta(days=1)  # readers that opened an older one may still read it


@dataclass(frozen=True)
class TableLocation:
    """A table in the folder of its gallery. The lock file of that folder keeps writers apart."""

    folder: Path  # of the gallery
    address: str | None = None  # s3://bucket/name of a table outside the folder
    identity: str | None = field(default=None, repr=False)  # random; the table has it too, so a gallery knows its own

    unlisted_files_are_leftovers: ClassVar[bool] = True  # while we hold the lock, no other process can be writing them

    @property
    def root(self) -> str:
        """What LanceDB connects to: an absolute path, since other machines may write to it, or an address."""
        return self.address or str(self.folder.resolve())

    @property
    def uri(self) -> str:
        """The Lance dataset."""
        return f"{self.root}/{_NAME}.lance"

    @property
    def storage_options(self) -> dict[str, str]:
        """Options for Lance. They may hold credentials: pass them on, and never write them down."""
        return {}

    def open(self, version: int | None = None) -> Any:
        """Open the Lance dataset, at its latest version or at the one given."""
        import lance

        return lance.dataset(self.uri, version=version, storage_options=self.storage_options or None)

    def exists(self) -> bool:
        """Whether there is a table; one whose creation was killed early has no version."""
        try:
            self.open()
        except ValueError as error:
            if is_not_found(error):
                return False
            raise
        return True

    @contextmanager
    def writing(self, lock_file: Path) -> Iterator[None]:
        """Keep out writers that use another copy of the folder; `lock_file` keeps out those that use this one."""
        yield

    def check_lock(self) -> None:
        """Raise if another process may have taken over the lock."""

    def check_reachable(self) -> None:
        """Raise if the store does not answer: before long work, not after it."""

    @contextmanager
    def explaining(self, failure: str) -> Iterator[None]:
        """Turn any error of Lance into a GalleryError; `failure` says what failed: "cannot be written"."""
        try:
            yield
        except BaseException as error:  # a panic is not an Exception
            of_lance = isinstance(error, _LANCE_ERRORS) or type(error).__name__ in _PANICS
            if isinstance(error, LookdownError) or not of_lance:
                raise
            raise self.explain(failure, error) from error

    def explain(self, failure: str, error: BaseException) -> GalleryError:
        """Return the GalleryError for an error of Lance."""
        next_step = _AFTER_READING if failure in READING else _AFTER_WRITING
        return GalleryError(f"the table of {self.folder} {failure}: {first_line(error)}; {next_step}")

    def occupied(self, rows: int) -> GalleryError:
        """Return the error for a new table where there is one with rows."""
        return GalleryError(
            f"{self.folder} holds a table of {rows:,} chips without its gallery.json; restore that file from a copy, "
            "or name another folder"
        )


def is_not_found(error: BaseException) -> bool:
    """Whether the table is not there, or parts of it."""
    return _NOT_FOUND.search(str(error)) is not None and "NoSuchBucket" not in str(error)


def first_line(error: BaseException) -> str:
    """Return the first line of an error, without the source lines that Lance adds."""
    return _NOISE.sub("", (str(error).strip() or type(error).__name__).splitlines()[0])


def schema(dimension: int) -> pa.Schema:
    """Return the columns of the table."""
    return pa.schema([
        pa.field("key", pa.int64(), nullable=False),  # assigned by us, rising, never used twice
        pa.field("id", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),  # the file
        pa.field("scene", pa.string(), nullable=False),
        pa.field("scene_group", pa.string(), nullable=False),
        pa.field("polygon", pa.string()),  # WKT, pixels in the scene; empty where the chip is the whole image
        pa.field("footprint", pa.string()),  # WKT, degrees of longitude and latitude (WGS84)
        *(pa.field(name, pa.float64()) for name in BOUNDS),  # of the footprint
        pa.field("time", pa.string()),  # ISO 8601
        pa.field("sensor", pa.string()),
        pa.field("gsd", pa.float64()),  # metres per pixel
        pa.field("label", pa.string()),
        pa.field("background", pa.bool_(), nullable=False),  # known to show none of the objects
        pa.field("marked", pa.bool_(), nullable=False),  # label or background set by a user of the gallery
        pa.field("embedding", pa.list_(pa.float32(), dimension), nullable=False),  # raw
        pa.field("thumbnail", pa.binary(), nullable=False),  # JPEG
    ])  # fmt: skip


def as_table(rows: Sequence[Mapping[str, Any]], embeddings: Embeddings, *, first_key: int) -> pa.Table:
    """Return chips in the columns of the table, with keys from `first_key` on."""
    dimension = embeddings.shape[1]
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in schema(dimension).names}
    columns |= {"key": np.arange(first_key, first_key + len(rows)), "marked": [False] * len(rows)}
    bounds = np.asarray(shapely.bounds(shapes(columns["footprint"]))).reshape(-1, 4).T
    columns |= dict(zip(BOUNDS, bounds, strict=True))
    columns["embedding"] = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.ravel()), dimension)
    arrays = [_array(columns[field.name], field.type) for field in schema(dimension)]
    return pa.table(arrays, schema=schema(dimension))


class ChipTable:
    """The table, to read snapshots of and to write to; one process writes at a time.

    Reading uses Lance, which LanceDB is built on, because LanceDB takes a second to import.
    """

    def __init__(self, location: TableLocation, dataset: Any) -> None:
        self.location, self._dataset, self._dataset_options = location, dataset, location.storage_options
        self._lancedb: Any = None
        self._lancedb_options: dict[str, str] = {}

    @classmethod
    def create(cls, location: TableLocation, dimension: int) -> ChipTable:
        """Create a table without rows; an empty one that an unfinished gallery left is replaced."""
        with location.explaining("cannot be made"):
            database = _connect(location)
            if location.exists() and (rows := database.open_table(_NAME).count_rows()):
                raise location.occupied(rows)
            location.check_lock()
            metadata = {_IDENTITY: location.identity.encode()} if location.identity else None
            database.create_table(_NAME, schema=schema(dimension).with_metadata(metadata), mode="overwrite")
            return cls(location, _open_own(location))

    @classmethod
    def open(cls, location: TableLocation) -> ChipTable:
        """Open the table of a gallery."""
        location.check_reachable()
        with location.explaining("cannot be opened"):
            return cls(location, _open_own(location))

    @property
    def version(self) -> int:
        """The latest version, whoever wrote it."""
        with self.location.explaining("cannot be read"):
            options = self.location.storage_options
            if options != self._dataset_options:  # credentials were renewed
                self._dataset, self._dataset_options = self.location.open(), options
            return int(self._dataset.latest_version)

    def append(self, rows: Sequence[Mapping[str, Any]], embeddings: Embeddings, *, first_key: int) -> None:
        """Add rows in one step: readers see all of them or none."""
        with self.location.explaining("cannot be written"):
            self._latest().add(as_table(rows, embeddings, first_key=first_key))

    def commit(self, fragments: Sequence[Any]) -> None:
        """Add rows that other processes have written as fragments of this table, in one step."""
        import lance

        with self.location.explaining("cannot be written"):
            version = self.version  # before we check the lock: see `_latest`
            self.location.check_lock()
            lance.LanceDataset.commit(
                self.location.uri,
                lance.LanceOperation.Append(fragments),
                read_version=version,
                storage_options=self.location.storage_options or None,
            )

    def mark(
        self, ids: Sequence[str], labels: Sequence[str | None], background: Sequence[bool], *, marked: bool = True
    ) -> None:
        """Set what chips show. Without `marked`, the labels count as those of the source."""
        by_user = [marked and (label is not None or empty) for label, empty in zip(labels, background, strict=True)]
        self._update({"id": ids, "label": labels, "background": background, "marked": by_user})

    def move(self, sources: Mapping[str, str]) -> None:
        """Set the files of chips that were moved, by the ids of the chips."""
        self._update({"id": [*sources], "source": [*sources.values()]})

    def remove(self, keys: NDArray[np.int64]) -> None:
        """Remove rows by their keys."""
        with self.location.explaining("cannot be written"):
            for begin in range(0, len(keys), _DELETED_KEYS):
                listed = ", ".join(str(int(key)) for key in keys[begin : begin + _DELETED_KEYS])
                self._latest().delete(f"key IN ({listed})")

    def tidy(self) -> None:
        """Merge small files, and remove old versions and what killed writers left.

        Hold the lock: files that another process is about to add look like those of a killed writer.
        """
        with self.location.explaining("cannot be tidied"):
            unverified = self.location.unlisted_files_are_leftovers
            self._latest().optimize(cleanup_older_than=_KEEP_VERSIONS, delete_unverified=unverified)

    def snapshot(self) -> Snapshot:
        """Return the table as it is now."""
        with self.location.explaining("cannot be read"):
            return Snapshot(self.location, _open_own(self.location))

    def _update(self, columns: Mapping[str, Sequence[Any]]) -> None:
        new = pa.table([*columns.values()], schema=pa.schema([schema(1).field(name) for name in columns]))
        with self.location.explaining("cannot be written"):
            self._latest().merge_insert("id").when_matched_update_all().execute(new)

    def _latest(self) -> Any:
        """Return LanceDB's table at the latest version, to write to.

        Check that we still hold the lock after reading the version; a new lock holder invalidates our step.
        """
        options = self.location.storage_options
        if self._lancedb is None or options != self._lancedb_options:  # credentials were renewed
            self._lancedb, self._lancedb_options = _connect(self.location).open_table(_NAME), options
        self._lancedb.checkout_latest()
        self.location.check_lock()
        return self._lancedb


def _open_own(location: TableLocation) -> Any:
    """Open the latest version; refuse a table that another gallery has put there."""
    dataset = location.open()
    if location.identity and (dataset.schema.metadata or {}).get(_IDENTITY) != location.identity.encode():
        raise GalleryError(
            f"the table at {location.address} belongs to another gallery than {location.folder}; use a copy of that "
            "folder, or index anew at another address"
        )
    return dataset


def _connect(location: TableLocation) -> Any:
    import lancedb

    return lancedb.connect(location.root, storage_options=location.storage_options or None)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind, from_pandas=True)
