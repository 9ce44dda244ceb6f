"""One version of the table. What filters read is in memory; the rest of a chip is read from the table when needed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from lookdown.gallery.store.timestamps import parse_times

if TYPE_CHECKING:
    from lookdown.gallery.search.filters import Where
    from lookdown.gallery.store.table import TableLocation

__all__ = [
    "BOUNDS", "CategoricalColumn", "ChipLabel", "Embeddings", "FilterColumns", "GalleryStats", "Rows", "Snapshot",
    "gallery_stats", "shapes",
]  # fmt: skip

Embeddings = NDArray[np.float32]
Rows = NDArray[np.intp]  # row numbers in the table, from 0

BOUNDS = ("west", "south", "east", "north")
_BATCH_ROWS = 65_536
_SHAPES = re.compile(r"\s*(MULTI)?(POINT|LINESTRING|POLYGON)", re.IGNORECASE)
_FEW_IDS = 4  # up to here, scanning all ids is faster than building a hash table of them


@dataclass(frozen=True, slots=True)
class CategoricalColumn:
    """A column of text with many repeats: for each row the index of its text in `values`, -1 where it has none."""

    values: tuple[str, ...]
    codes: NDArray[np.int32]

    @classmethod
    def from_texts(cls, texts: Sequence[str | None]) -> Self:
        """Encode a column."""
        index: dict[str, int] = {}
        codes = [-1 if text is None else index.setdefault(text, len(index)) for text in texts]
        return cls(tuple(index), np.array(codes, dtype=np.int32))

    def __getitem__(self, row: int) -> str | None:
        code = self.codes[row]
        return None if code < 0 else self.values[code]

    def is_in(self, wanted: Collection[str]) -> NDArray[np.bool_]:
        """Return which rows have exactly one of these texts."""
        chosen = [*map(frozenset(wanted).__contains__, self.values), False]  # code -1 picks the last
        return np.array(chosen, dtype=np.bool_)[self.codes]


@dataclass(frozen=True)
class FilterColumns:
    """The columns that filters read."""

    labels: CategoricalColumn
    scenes: CategoricalColumn
    sensors: CategoricalColumn
    timestamps: CategoricalColumn
    background: NDArray[np.bool_]
    bounds: NDArray[np.float64]  # (n, 4) west, south, east, north of the footprint; NaN where there is none
    footprints: Callable[[Rows], Sequence[str | None]]  # reads the WKT of these rows; few are ever needed
    _last: dict[Where, NDArray[np.bool_]] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.background)

    @cached_property
    def times(self) -> NDArray[np.datetime64]:
        """Microseconds UTC, NaT where the time is not known; each distinct text is parsed once."""
        parsed = np.append(parse_times(self.timestamps.values), np.datetime64("NaT", "us"))
        return np.asarray(parsed[self.timestamps.codes])  # code -1 picks the last

    def matching(self, where: Where) -> NDArray[np.bool_]:
        """Return which rows a filter keeps, read-only. The last answer is cached: one search asks several times."""
        mask = self._last.get(where)
        if mask is None:
            mask = where.rows(self)
            mask.flags.writeable = False
            self._last.clear()
            self._last[where] = mask
        return mask


class ChipLabel(NamedTuple):
    """What is known about the content of a chip."""

    label: str | None
    background: bool
    marked: bool  # a user of the gallery has said so, not the source of the chip


class Snapshot:
    """One version of the table; it stays the same while others write."""

    def __init__(self, location: TableLocation, dataset: Any) -> None:
        self.folder = location.folder
        self.version = int(dataset.version)
        self._location, self._opened, self._options = location, dataset, location.storage_options
        with location.explaining("cannot be read"):
            table = dataset.to_table(
                columns=["key", "id", "label", "scene", "sensor", "time", "background", "marked", *BOUNDS]
            )
        self.keys: NDArray[np.int64] = table["key"].to_numpy()
        self.ids = table["id"].combine_chunks()
        self.marked: NDArray[np.bool_] = table["marked"].to_numpy()
        self.columns = FilterColumns(
            labels=_categorical(table["label"]),
            scenes=_categorical(table["scene"]),
            sensors=_categorical(table["sensor"]),
            timestamps=_categorical(table["time"]),
            background=table["background"].to_numpy(),
            bounds=np.column_stack([table[name].to_numpy() for name in BOUNDS]),
            footprints=lambda rows: [row["footprint"] for row in self.read(rows, ["footprint"])],
        )

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def dimension(self) -> int:
        """Numbers in an embedding."""
        return int(self._opened.schema.field("embedding").type.list_size)

    def find(self, ids: Sequence[str]) -> Rows:
        """Return the rows of chips by their ids, -1 where there is no such chip."""
        names = pa.array(map(_valid_text, ids), pa.string())
        if len(names) <= _FEW_IDS:
            return np.array([pc.index(self.ids, name).as_py() if name.is_valid else -1 for name in names], np.intp)
        rows = pc.index_in(names, self.ids)
        return np.asarray(pc.fill_null(rows, -1).to_numpy(zero_copy_only=False), np.intp)

    def labels_of(self, ids: Sequence[str]) -> dict[str, ChipLabel]:
        """Return what is known about chips that are in the table, by their ids."""
        columns, rows = self.columns, self.find(ids).tolist()
        return {
            name: ChipLabel(columns.labels[row], bool(columns.background[row]), bool(self.marked[row]))
            for name, row in zip(ids, rows, strict=True)
        }

    def read(self, rows: Rows, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return columns of these rows, in their order."""
        return list(self._take(rows, columns).to_pylist())

    def texts(self, column: str) -> list[str | None]:
        """Return a column of text."""
        with self._location.explaining("cannot be read"):
            return list(self._dataset().to_table(columns=[column])[column].to_pylist())

    def embeddings(self, rows: Rows | None = None) -> Embeddings:
        """Return the raw embeddings of these rows, or of all."""
        if rows is not None:
            return _matrix(self._take(rows, ["embedding"])["embedding"].combine_chunks(), self.dimension)
        matrix = np.empty((len(self), self.dimension), np.float32)
        begin = 0
        for batch in self.batches():
            matrix[begin : begin + len(batch)] = batch
            begin += len(batch)
        return matrix

    def batches(self) -> Iterator[Embeddings]:
        """Yield all raw embeddings in batches."""
        with self._location.explaining("cannot be read"):
            for batch in self._dataset().scanner(columns=["embedding"], batch_size=_BATCH_ROWS).to_batches():
                yield _matrix(batch["embedding"], self.dimension)

    def _take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        with self._location.explaining("cannot be read"):
            return self._dataset().take(np.asarray(rows, np.int64), columns=list(columns))

    def _dataset(self) -> Any:
        """Return the open dataset; it is opened again once its credentials have been renewed."""
        options = self._location.storage_options
        if options != self._options:
            self._opened, self._options = self._location.open(self.version), options
        return self._opened


def shapes(texts: Sequence[str | None]) -> NDArray[np.object_]:
    """Read a column of WKT; None where a text is missing, cannot be read or is not finite."""
    # GEOS overflows the stack on nested collections and raises for curves; neither is a footprint.
    known = [text if text is not None and text.isascii() and _SHAPES.match(text) else None for text in texts]
    with np.errstate(all="ignore"):  # a coordinate may be NaN or beyond a double
        geometries: NDArray[np.object_] = shapely.from_wkt(np.array(known, dtype=object), on_invalid="ignore")
    corners, owners = shapely.get_coordinates(geometries, return_index=True)
    geometries[owners[~np.isfinite(corners).all(axis=1)]] = None
    return geometries


def _valid_text(name: str) -> str | None:
    """Return None for text that is not valid Unicode, such as file names of old systems: no id is like that."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return None
    return name


def _matrix(column: pa.FixedSizeListArray, dimension: int) -> Embeddings:
    return np.asarray(column.flatten().to_numpy(zero_copy_only=False), np.float32).reshape(-1, dimension)


def _categorical(column: pa.ChunkedArray) -> CategoricalColumn:
    encoded = pc.dictionary_encode(column.combine_chunks())
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return CategoricalColumn(tuple(encoded.dictionary.to_pylist()), np.asarray(codes, np.int32))


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryStats:
    """What a gallery holds."""

    chips: int
    labelled: int
    marked: int  # label or background set by a user of the gallery
    background: int
    classes: int
    scenes: int
    placed: int  # with a footprint on Earth
    first_time: str | None
    last_time: str | None
    sensors: tuple[str, ...]
    dimension: int
    embedder: str | None  # its fingerprint
    metric: str
    table: str  # a path, or s3://bucket/name/...
    bytes_on_disk: int  # of the folder, without a table in a bucket


def gallery_stats(snapshot: Snapshot, folder: Path, *, embedder: str | None, metric: str, table: str) -> GalleryStats:
    """Count the rows of the table by what they hold, and the bytes of the folder."""
    columns = snapshot.columns
    times = columns.times[~np.isnat(columns.times)]
    return GalleryStats(
        chips=len(snapshot),
        labelled=int((columns.labels.codes >= 0).sum()),
        marked=int(snapshot.marked.sum()),
        background=int(columns.background.sum()),
        classes=len(columns.labels.values),
        scenes=len(columns.scenes.values),
        placed=int(np.isfinite(columns.bounds[:, 0]).sum()),
        first_time=str(times.min()) if len(times) else None,
        last_time=str(times.max()) if len(times) else None,
        sensors=columns.sensors.values,
        dimension=snapshot.dimension,
        embedder=embedder,
        metric=metric,
        table=table,
        bytes_on_disk=_bytes(folder),
    )


def _bytes(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # a writer may tidy up meanwhile
                total += Path(parent, name).stat().st_size
    return total
