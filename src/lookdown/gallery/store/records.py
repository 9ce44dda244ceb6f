"""The table of record: a row a chip, with its raw embedding and thumbnail, in LanceDB.

Everything else that a gallery holds in memory or beside the table is derived from it. Rows are found by place or by a
number that we gave them, so no text of a user ever stands in an expression.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from lookdown.errors import GalleryError, LookdownError
from lookdown.gallery.search.region import shapes
from lookdown.gallery.store.columns import Codes, Columns, Rows
from lookdown.gallery.store.instants import parse_times
from lookdown.gallery.store.table_place import NAME, TablePlace

__all__ = ["Mark", "Records", "Snapshot", "as_table", "schema"]

for _name in ("LANCE_LOG", "LANCEDB_LOG"):  # read at the imports, below: they warn of every table that is made
    os.environ.setdefault(_name, "error")

Embeddings = NDArray[np.float32]

BOUNDS = ("west", "south", "east", "north")
_AT_ONCE = 65_536  # rows streamed
_GONE_AT_ONCE = 10_000  # keys in one deletion
_FEW = 4  # ids that are found faster by looking through all than by a table made of all
_RAISED = (OSError, RuntimeError, ValueError, pa.ArrowException)
_PANICS = ("PanicException", "RustPanic")  # of damaged files; they cannot be imported, and the first is no Exception
_WHOSE = b"lookdown.gallery"  # what a table in a bucket bears, so that a gallery knows its own
_KEPT = timedelta(days=1)  # what readers opened before may still read


def schema(dimension: int) -> pa.Schema:
    """Return the columns of the table."""
    return pa.schema([
        pa.field("key", pa.int64(), nullable=False),  # ours, rising, never given twice
        pa.field("id", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),  # the file
        pa.field("scene", pa.string(), nullable=False),
        pa.field("scene_group", pa.string(), nullable=False),
        pa.field("polygon", pa.string()),  # WKT, pixels in the scene; empty where the chip is the whole image
        pa.field("footprint", pa.string()),  # WKT, degrees of longitude and latitude (WGS84)
        *(pa.field(name, pa.float64()) for name in BOUNDS),  # of the footprint
        pa.field("time", pa.string()),  # ISO 8601
        pa.field("sensor", pa.string()),
        pa.field("gsd", pa.float64()),  # metres a pixel
        pa.field("label", pa.string()),
        pa.field("background", pa.bool_(), nullable=False),  # known to show none of the objects
        pa.field("marked", pa.bool_(), nullable=False),  # label or background said by a user of the gallery
        pa.field("embedding", pa.list_(pa.float32(), dimension), nullable=False),  # raw
        pa.field("thumbnail", pa.binary(), nullable=False),  # JPEG
    ])  # fmt: skip


def as_table(rows: Sequence[Mapping[str, Any]], embeddings: Embeddings, *, first_key: int) -> pa.Table:
    """Return chips as the table takes them, numbered from `first_key` on."""
    dimension = embeddings.shape[1]
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in schema(dimension).names}
    columns |= {"key": np.arange(first_key, first_key + len(rows)), "marked": [False] * len(rows)}
    columns |= dict(zip(BOUNDS, _bounds(columns["footprint"]), strict=True))
    columns["embedding"] = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.ravel()), dimension)
    arrays = [_array(columns[field.name], field.type) for field in schema(dimension)]
    return pa.table(arrays, schema=schema(dimension))


class Mark(NamedTuple):
    """What is known of a chip."""

    label: str | None
    background: bool
    marked: bool  # said by a user of the gallery


class Records:
    """The table, to write to; one writer at a time.

    What only reads goes by way of Lance, which LanceDB is built on: LanceDB takes a second to import.
    """

    def __init__(self, place: TablePlace, dataset: Any) -> None:
        self._place = place
        self._dataset = dataset

    @classmethod
    def create(cls, at: Path | TablePlace, dimension: int) -> Records:
        """Make the table, without rows; one without rows that an unfinished gallery left is replaced."""
        place = _place(at)
        with _told(place, "cannot be made"):
            database = _database(place)
            if place.begun() and (rows := database.open_table(NAME).count_rows()):
                raise place.occupied(rows)
            place.check()
            whose = {_WHOSE: place.identity.encode()} if place.identity else None
            database.create_table(NAME, schema=schema(dimension).with_metadata(whose), mode="overwrite")
            return cls(place, _latest(place))

    @classmethod
    def open(cls, at: Path | TablePlace) -> Records:
        """Open the table of a gallery: in a folder, or at its place."""
        place = _place(at)
        place.reach()
        with _told(place, "cannot be opened"):
            return cls(place, _latest(place))

    @property
    def uri(self) -> str:
        """The address of the Lance table."""
        return self._place.uri

    @property
    def storage_options(self) -> dict[str, str]:
        """What Lance must be told to get there; it may hold credentials, so hand it on and write it nowhere."""
        return self._place.storage_options

    def check_writer(self) -> None:
        """Refuse to write more if another may have become the writer; for who writes past these methods."""
        self._place.check()

    @property
    def version(self) -> int:
        """The latest version, whoever wrote it."""
        with _told(self._place, "cannot be read"):
            return int(self._dataset.latest_version)

    def append(self, rows: Sequence[Mapping[str, Any]], embeddings: Embeddings, *, first_key: int) -> None:
        """Add rows in one step: all of them are there when this returns, and before that none."""
        with _told(self._place, "cannot be written"):
            self._table.add(as_table(rows, embeddings, first_key=first_key))

    def commit(self, fragments: Sequence[Any]) -> None:
        """Add rows that others have written beside those of the table, in one step."""
        import lance

        with _told(self._place, "cannot be written"):
            begun = self.version  # before it is asked who writes: see `_table`
            self.check_writer()
            lance.LanceDataset.commit(
                self.uri,
                lance.LanceOperation.Append(fragments),
                read_version=begun,
                storage_options=self.storage_options or None,
            )

    def mark(
        self, ids: Sequence[str], labels: Sequence[str | None], background: Sequence[bool], *, marked: bool = True
    ) -> None:
        """Say of chips what they show; the rest of their rows stays. Not `marked`, it is as the source had said it."""
        told = [marked and (label is not None or empty) for label, empty in zip(labels, background, strict=True)]
        marks = pa.table({
            "id": pa.array(ids, pa.string()),
            "label": pa.array(labels, pa.string()),
            "background": pa.array(background, pa.bool_()),
            "marked": pa.array(told, pa.bool_()),
        })  # fmt: skip
        with _told(self._place, "cannot be written"):
            self._table.merge_insert("id").when_matched_update_all().execute(marks)

    def move(self, sources: Mapping[str, str]) -> None:
        """Say where the files of chips are now, by the ids of the chips."""
        places = pa.table({"id": pa.array(sources, pa.string()), "source": pa.array(sources.values(), pa.string())})
        with _told(self._place, "cannot be written"):
            self._table.merge_insert("id").when_matched_update_all().execute(places)

    def remove(self, keys: NDArray[np.int64]) -> None:
        """Take rows out, by their numbers."""
        with _told(self._place, "cannot be written"):
            for begin in range(0, len(keys), _GONE_AT_ONCE):
                listed = ", ".join(str(int(key)) for key in keys[begin : begin + _GONE_AT_ONCE])
                self._table.delete(f"key IN ({listed})")

    def tidy(self) -> None:
        """Merge the many small files that many small steps leave behind, and remove what a killed one left.

        The one writer does so, or it would take what another is about to add for such a rest.
        """
        with _told(self._place, "cannot be tidied"):
            self._table.optimize(cleanup_older_than=_KEPT, delete_unverified=self._place.is_alone)

    def snapshot(self) -> Snapshot:
        """Return the table as it is now; it stays so while others write."""
        with _told(self._place, "cannot be read"):
            return Snapshot(self._place, _latest(self._place))

    @cached_property
    def _opened(self) -> Any:
        return _database(self._place).open_table(NAME)

    @property
    def _table(self) -> Any:
        """The table as LanceDB writes to it, with what others have written meanwhile.

        Who is the writer is asked after that: what another writes from then on, as it takes over, voids our step.
        """
        self._opened.checkout_latest()
        self._place.check()
        return self._opened


class Snapshot:
    """One version of the table: ids and what filters look at in memory, the rest read when it is asked for."""

    def __init__(self, place: TablePlace, dataset: Any) -> None:
        self.folder = place.folder
        self._place, self._dataset = place, dataset
        self.version = int(dataset.version)
        with _told(place, "cannot be read"):
            table = dataset.to_table(
                columns=["key", "id", "label", "scene", "sensor", "time", "background", "marked", *BOUNDS]
            )
        self.keys: NDArray[np.int64] = table["key"].to_numpy()
        self.ids = table["id"].combine_chunks()
        self.marked: NDArray[np.bool_] = table["marked"].to_numpy()
        self.columns = Columns(
            labels=_codes(table["label"]),
            scenes=_codes(table["scene"]),
            sensors=_codes(table["sensor"]),
            times=_times(table["time"]),
            background=table["background"].to_numpy(),
            bounds=np.column_stack([table[name].to_numpy() for name in BOUNDS]),
            footprints=lambda rows: [row["footprint"] for row in self.read(rows, ["footprint"])],
        )

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def dimension(self) -> int:
        """Of the embeddings."""
        return int(self._dataset.schema.field("embedding").type.list_size)

    def find(self, ids: Sequence[str]) -> Rows:
        """Return the rows of chips, -1 where there is none of that name."""
        names = pa.array(map(_text, ids), pa.string())
        if len(names) <= _FEW:
            return np.array([pc.index(self.ids, name).as_py() if name.is_valid else -1 for name in names], np.intp)
        found = pc.index_in(names, self.ids)
        return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.intp)

    def marks(self, ids: Sequence[str]) -> dict[str, Mark]:
        """Return what is known of chips that are there."""
        columns, rows = self.columns, self.find(ids).tolist()
        return {
            name: Mark(columns.labels[row], bool(columns.background[row]), bool(self.marked[row]))
            for name, row in zip(ids, rows, strict=True)
        }

    def read(self, rows: Rows, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return columns of some rows, in their order."""
        return list(self._take(rows, columns).to_pylist())

    def texts(self, column: str) -> list[str | None]:
        """Return a column of text."""
        with _told(self._place, "cannot be read"):
            return list(self._dataset.to_table(columns=[column])[column].to_pylist())

    def embeddings(self, rows: Rows | None = None) -> Embeddings:
        """Return raw embeddings, of some rows or of all."""
        if rows is not None:
            return _matrix(self._take(rows, ["embedding"])["embedding"].combine_chunks(), self.dimension)
        whole = np.empty((len(self), self.dimension), np.float32)
        begin = 0
        for batch in self.batches():
            whole[begin : begin + len(batch)] = batch
            begin += len(batch)
        return whole

    def batches(self) -> Iterator[Embeddings]:
        """Yield all raw embeddings, some at a time."""
        with _told(self._place, "cannot be read"):
            for batch in self._dataset.scanner(columns=["embedding"], batch_size=_AT_ONCE).to_batches():
                yield _matrix(batch["embedding"], self.dimension)

    def _take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        with _told(self._place, "cannot be read"):
            return self._dataset.take(np.asarray(rows, np.int64), columns=list(columns))


def _place(at: Path | TablePlace) -> TablePlace:
    return at if isinstance(at, TablePlace) else TablePlace(at)


def _latest(place: TablePlace) -> Any:
    """Open the table at its latest version, whoever wrote it; not one that another gallery has put there."""
    import lance

    dataset = lance.dataset(place.uri, storage_options=place.storage_options or None)
    if place.identity and (dataset.schema.metadata or {}).get(_WHOSE) != place.identity.encode():
        raise GalleryError(
            f"the table at {place.address} is that of another gallery than {place.folder}; use a copy of that folder, "
            "or index anew into another place"
        )
    return dataset


def _database(place: TablePlace) -> Any:
    import lancedb

    return lancedb.connect(place.root, storage_options=place.storage_options or None)


def _text(name: str) -> str | None:
    """Return a name, None where it is no Unicode text, which no id is: file names of old systems, say."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return None
    return name


def _matrix(column: pa.FixedSizeListArray, dimension: int) -> Embeddings:
    return np.asarray(column.flatten().to_numpy(zero_copy_only=False), np.float32).reshape(-1, dimension)


def _codes(column: pa.ChunkedArray) -> Codes:
    encoded = pc.dictionary_encode(column.combine_chunks())
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return Codes(tuple(encoded.dictionary.to_pylist()), np.asarray(codes, np.int32))


def _times(column: pa.ChunkedArray) -> NDArray[np.datetime64]:
    """Parse each distinct text once; many chips share a scene, and so a time."""
    texts = _codes(column)
    parsed = np.append(parse_times(texts.values), np.datetime64("NaT", "us"))
    return np.asarray(parsed[texts.codes])


def _bounds(footprints: Sequence[str | None]) -> NDArray[np.float64]:
    return np.asarray(shapely.bounds(shapes(footprints))).reshape(-1, 4).T


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind, from_pandas=True)


@contextmanager
def _told(place: TablePlace, what: str) -> Iterator[None]:
    """Turn what Lance raises, of a dozen kinds, panics among them, into a sentence."""
    try:
        yield
    except BaseException as error:
        known = isinstance(error, _RAISED) or type(error).__name__ in _PANICS
        if isinstance(error, LookdownError) or not known:
            raise
        raise place.trouble(what, error) from error
