"""One collection of a Milvus server: the vectors of a gallery under one metric, with scalar fields for filters.

A row is identified by its key in the gallery's table, so sending it twice stores it once. The mean that is subtracted
from each vector is in the description of the collection, so that all clients use the same.

Filter expressions hold no text of a user. Texts are compared by a hash, which is the same in every process; the engine
drops rows that match only because two texts have the same hash.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import EngineError
from lookdown.gallery.scale.milvus_server import MilvusServer
from lookdown.gallery.search.engines.engine import Vectors
from lookdown.gallery.search.filters import Where
from lookdown.gallery.store.snapshot import BOUNDS, CategoricalColumn, FilterColumns
from lookdown.gallery.store.timestamps import earliest, latest

__all__ = ["FIELDS", "MAX_ROWS", "Keys", "MilvusCollection", "MilvusRows", "ScalarFields"]

Keys = NDArray[np.int64]
Checksums = NDArray[np.int64]

MAX_ROWS = 16_384  # in one answer of the server
FIELDS = {
    **dict.fromkeys(("label", "scene", "sensor", "time"), "INT64"),
    "background": "BOOL",
    **dict.fromkeys(BOUNDS, "DOUBLE"),
}
_REQUEST_FLOATS = 1 << 21  # in one request or answer: 8 MB; the server takes 64 MB
_DESCRIPTION = "lookdown: less the mean "
_NO_TEXT = -1
_NO_TIME = -(1 << 62)  # microseconds; no chip is that old
_NOWHERE = (1e9, 1e9, -1e9, -1e9)  # bounds that no box meets
_ODD_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # multiplication by an odd number loses no bits


class MilvusRows(NamedTuple):
    """Rows of a collection, in any order."""

    keys: Keys
    vectors: Vectors


class ScalarFields(dict[str, NDArray[Any]]):
    """The values of `FIELDS`, one row per chip."""

    @classmethod
    def of(cls, columns: FilterColumns) -> ScalarFields:
        """Convert what filters read to numbers."""
        times = columns.times.astype("datetime64[us]")
        has_bounds = ~np.isnan(columns.bounds).any(axis=1, keepdims=True)
        return cls(
            label=_hashes(columns.labels),
            scene=_hashes(columns.scenes),
            sensor=_hashes(columns.sensors),
            time=np.where(np.isnat(times), _NO_TIME, times.astype(np.int64)),
            background=columns.background,
            **dict(zip(BOUNDS, np.where(has_bounds, columns.bounds, _NOWHERE).T, strict=True)),
        )

    def checksums(self) -> Checksums:
        """Return a number per row that changes with any value of it: it tells which rows of a server are outdated."""
        sums = np.zeros(len(self["label"]), np.uint64)
        for column in self.values():
            wide = column.astype(np.float64 if column.dtype.kind == "f" else np.int64).view(np.uint64)
            sums = (sums ^ wide) * _ODD_FACTOR
            sums ^= sums >> np.uint64(29)
        return sums.view(np.int64)

    @staticmethod
    def expression(where: Where) -> str:
        """Return a filter expression that is true of every row that `where` keeps, and of few others."""
        return " and ".join(_conditions(where)) or f"time >= {_NO_TIME}"


class MilvusCollection:
    """A collection that exists and can be searched."""

    def __init__(self, server: MilvusServer, name: str) -> None:
        self._server, self.name = server, name
        described = self._call("describe_collection")
        dimension = next(field["params"]["dim"] for field in described["fields"] if field["name"] == "vector")
        self.mean = _read_mean(name, described["description"], int(dimension))
        self._call("create_index", index_params=_index())  # does nothing if there is one, as does the next
        self._call("load_collection")

    @classmethod
    def create(cls, server: MilvusServer, name: str, mean: Vectors) -> MilvusCollection:
        """Create an empty collection for vectors less this mean."""
        server.call("create_collection", collection_name=name, schema=_schema(mean), consistency_level="Bounded")
        return cls(server, name)

    def checksums(self, keys: Keys) -> tuple[Keys, Checksums]:
        """Return the keys up to the last of these rising ones that the server has, with their checksums."""
        rows: list[tuple[int, int]] = []
        first = 0
        for last in keys[MAX_ROWS // 2 :: MAX_ROWS // 2].tolist() + keys[-1:].tolist():
            rows += self._between(first, last)
            first = last + 1
        both = np.array(rows, np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def put(self, keys: Keys, vectors: Vectors, fields: Mapping[str, NDArray[Any]], checksums: Checksums) -> None:
        """Send rows in small batches; existing ones are replaced."""
        step = max(1, _REQUEST_FLOATS // vectors.shape[1])
        for begin in range(0, len(keys), step):
            batch = slice(begin, begin + step)
            columns = {"key": keys[batch], "stamp": checksums[batch]} | {name: fields[name][batch] for name in FIELDS}
            lists = {name: column.tolist() for name, column in columns.items()}
            rows = [
                dict(zip((*lists, "vector"), values, strict=True))
                for values in zip(*lists.values(), vectors[batch], strict=True)
            ]
            self._call("upsert", data=rows)

    def remove(self, keys: Keys) -> None:
        """Remove rows."""
        for begin in range(0, len(keys), MAX_ROWS):
            self._call("delete", filter=f"key in {keys[begin : begin + MAX_ROWS].tolist()}")

    def settle(self, *, flush: bool = False) -> None:
        """Wait until every later search sees all rows that were sent.

        flush: let the server merge the rows. It then searches many new rows several times faster, but merging takes
            seconds, too long for few.
        """
        self._call("query", filter="key >= 0", output_fields=["count(*)"], consistency_level="Strong")
        if flush:
            self._call("flush")

    def nearest(self, points: Vectors, k: int, expression: str, radius: float | None = None) -> list[MilvusRows]:
        """Return for each point the k nearest rows that match, or those of them within a squared distance."""
        within = {} if radius is None else {"radius": radius}
        step = max(1, _REQUEST_FLOATS // (k * points.shape[1]))
        return [
            _rows([hit.id for hit in hits], [hit["entity"]["vector"] for hit in hits], points.shape[1])
            for begin in range(0, len(points), step)
            for hits in self._call(
                "search",
                data=[*points[begin : begin + step]],
                filter=expression,
                limit=k,
                output_fields=["vector"],
                search_params={"metric_type": "L2", "params": within},
            )
        ]

    def fetch(self, keys: Keys) -> Iterator[MilvusRows]:
        """Yield the rows of these keys, as far as they exist."""
        step = min(MAX_ROWS, max(1, _REQUEST_FLOATS // len(self.mean)))
        for begin in range(0, len(keys), step):
            expression = f"key in {keys[begin : begin + step].tolist()}"
            rows = self._call("query", filter=expression, output_fields=["key", "vector"], limit=step)
            yield _rows([row["key"] for row in rows], [row["vector"] for row in rows], len(self.mean))

    def _between(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return key and checksum of all rows in a range of keys; halve the range if one answer cannot hold them."""
        rows = self._call(
            "query",
            filter=f"key >= {first} and key <= {last}",
            output_fields=["key", "stamp"],
            limit=MAX_ROWS,
            consistency_level="Strong",
        )
        if len(rows) < MAX_ROWS or first == last:
            return [(row["key"], row["stamp"]) for row in rows]
        middle = (first + last) // 2
        return self._between(first, middle) + self._between(middle + 1, last)

    def _call(self, method: str, **arguments: Any) -> Any:
        return self._server.call(method, collection_name=self.name, **arguments)


def _schema(mean: Vectors) -> Any:
    from pymilvus import CollectionSchema, DataType, FieldSchema

    fields = [
        FieldSchema("key", DataType.INT64, is_primary=True),
        FieldSchema("stamp", DataType.INT64),
        *(FieldSchema(name, DataType[kind]) for name, kind in FIELDS.items()),
        FieldSchema("vector", DataType.FLOAT_VECTOR, dim=len(mean)),
    ]
    return CollectionSchema(fields, description=_DESCRIPTION + base64.b64encode(mean.astype("<f4").tobytes()).decode())


def _index() -> Any:
    """Return the index that compares all rows: HNSW and IVF miss results under a filter (docs/scale-out.md)."""
    from pymilvus.milvus_client.index import IndexParams

    index = IndexParams()
    index.add_index("vector", index_type="FLAT", metric_type="L2", params={})
    return index


def _read_mean(name: str, description: str, dimension: int) -> Vectors:
    try:
        mean = np.frombuffer(base64.b64decode(description.removeprefix(_DESCRIPTION), validate=True), "<f4")
    except ValueError:
        mean = np.empty(0, np.float32)
    if not description.startswith(_DESCRIPTION) or len(mean) != dimension:
        raise EngineError(f"the collection {name} was not made by lookdown; drop or rename it, and open the gallery")
    return np.asarray(mean, np.float32)


def _rows(keys: Sequence[int], vectors: Sequence[Sequence[float]], dimension: int) -> MilvusRows:
    return MilvusRows(np.array(keys, np.int64), np.array(vectors, np.float32).reshape(-1, dimension))


def _conditions(where: Where) -> Iterator[str]:
    for field, texts in (("label", where.label), ("scene", where.scene), ("sensor", where.sensor)):
        if texts is not None:
            yield f"{field} in [{', '.join(str(_hash(text)) for text in texts)}]"
    if where.labelled is not None:
        yield f"label {'!=' if where.labelled else '=='} {_NO_TEXT}"
    if where.background is not None:
        yield f"background == {'true' if where.background else 'false'}"
    if where.since is not None or where.until is not None:
        yield f"time > {_NO_TIME}"
    if where.since is not None:
        yield f"time >= {int(earliest(where.since, 'since').astype(np.int64))}"
    if where.until is not None:
        yield f"time <= {int(latest(where.until, 'until').astype(np.int64))}"
    for region in where.regions():
        meets = [
            f"(west <= {east!r} and east >= {west!r} and south <= {north!r} and north >= {south!r})"
            for west, south, east, north in region.boxes()
        ]
        yield f"({' or '.join(meets)})"


def _hashes(column: CategoricalColumn) -> NDArray[np.int64]:
    hashes = np.array([*map(_hash, column.values), _NO_TEXT], np.int64)  # code -1 picks the last
    return hashes[column.codes]


def _hash(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # never negative, as `_NO_TEXT` is
