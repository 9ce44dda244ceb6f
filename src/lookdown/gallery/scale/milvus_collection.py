"""One collection of a Milvus server: the vectors of a gallery under one metric, and what filters look at.

A row goes by the number that the gallery gave it, so what is sent twice is there once, and the server itself knows what
it has. The mean that is taken off each vector is written into the collection's description: all who share it agree.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import EngineError
from lookdown.gallery.scale.milvus_facts import FACTS, Facts
from lookdown.gallery.scale.milvus_server import MilvusServer
from lookdown.gallery.search.engines.engine import Vectors

__all__ = ["MOST", "Found", "Keys", "MilvusCollection", "MilvusGallery"]

Keys = NDArray[np.int64]

MOST = 16_384  # rows that the server gives in one answer
_FLOATS = 1 << 21  # numbers that go to the server, or come from it, at a time: 8 MB, and it takes 64
_ABOUT = "lookdown: less the mean "


class Found(NamedTuple):
    """Rows of a collection by their numbers, in any order."""

    keys: Keys
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class MilvusGallery:
    """A gallery on a server: a collection a metric, and an alias that leads to the one in use."""

    server: MilvusServer
    gallery: str

    @classmethod
    def of(cls, server: MilvusServer, folder: Path, lineage: str) -> MilvusGallery:
        """Name it after the folder; a copy of it, or another that takes its place, has another `lineage` or place."""
        word = re.sub(r"\W", "_", folder.resolve().name, flags=re.ASCII)[:40]
        digest = hashlib.blake2b(f"{folder.resolve()}\n{lineage}".encode("utf-8", "surrogatepass"), digest_size=6)
        return cls(server, f"lookdown_{word}_{digest.hexdigest()}")

    def collection(self, metric: str) -> str:
        """Return the name of the collection of a metric."""
        return f"{self.gallery}_{metric.replace('-', '_')}"

    def use(self, metric: str) -> None:
        """Let the alias lead to the collection of a metric; it leads to the old one until then."""
        known = self.gallery in self._aliases("")
        names = {"collection_name": self.collection(metric), "alias": self.gallery}
        self.server.ask("alter_alias" if known else "create_alias", **names)

    def drop(self, metric: str) -> None:
        """Remove the collection of a metric, if there is one."""
        name = self.collection(metric)
        if MilvusCollection.exists(self.server, name):
            for alias in self._aliases(name):  # left behind by who changed the metric without this server
                self.server.ask("drop_alias", alias=alias)
            self.server.ask("drop_collection", collection_name=name)

    def _aliases(self, collection: str) -> list[str]:
        return list(self.server.ask("list_aliases", collection_name=collection)["aliases"])


class MilvusCollection:
    """A collection that is there and can be searched."""

    def __init__(self, server: MilvusServer, name: str) -> None:
        self._server, self.name = server, name
        described = self._ask("describe_collection")
        dimension = next(field["params"]["dim"] for field in described["fields"] if field["name"] == "vector")
        self.centre = _centre(name, described["description"], int(dimension))
        self._ask("create_index", index_params=_index())  # each does nothing where it is done
        self._ask("load_collection")

    @classmethod
    def exists(cls, server: MilvusServer, name: str) -> bool:
        """Tell whether it is there."""
        return bool(server.ask("has_collection", collection_name=name))

    @classmethod
    def make(cls, server: MilvusServer, name: str, centre: Vectors) -> MilvusCollection:
        """Make an empty one for vectors less this mean."""
        server.ask("create_collection", collection_name=name, schema=_schema(centre), consistency_level="Bounded")
        return cls(server, name)

    def held(self, rising: Keys) -> tuple[Keys, NDArray[np.int64]]:
        """Return the numbers up to the last of these that the server has, and their stamps, to the latest."""
        rows: list[tuple[int, int]] = []
        first = 0
        for last in rising[MOST // 2 :: MOST // 2].tolist() + rising[-1:].tolist():
            rows += self._between(first, last)
            first = last + 1
        both = np.array(rows, np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def _between(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return all rows of a stretch of numbers, half of it at a time where one answer cannot hold them."""
        term = f"key >= {first} and key <= {last}"
        found = self._ask("query", filter=term, output_fields=["key", "stamp"], limit=MOST, consistency_level="Strong")
        if len(found) < MOST or first == last:
            return [(row["key"], row["stamp"]) for row in found]
        middle = (first + last) // 2
        return self._between(first, middle) + self._between(middle + 1, last)

    def put(self, keys: Keys, vectors: Vectors, facts: Facts, stamps: NDArray[np.int64]) -> None:
        """Send rows in small parts; those that are there are replaced."""
        step = max(1, _FLOATS // vectors.shape[1])
        for begin in range(0, len(keys), step):
            some = slice(begin, begin + step)
            columns = {"key": keys[some], "stamp": stamps[some]} | {name: facts[name][some] for name in FACTS}
            lists = {name: column.tolist() for name, column in columns.items()}
            rows = [
                dict(zip((*lists, "vector"), values, strict=True))
                for values in zip(*lists.values(), vectors[some], strict=True)
            ]
            self._ask("upsert", data=rows)

    def remove(self, keys: Keys) -> None:
        """Take rows out."""
        for begin in range(0, len(keys), MOST):
            self._ask("delete", filter=f"key in {keys[begin : begin + MOST].tolist()}")

    def settle(self, *, many: bool = False) -> None:
        """Wait until whoever searches from now on sees all that was sent; many rows are put in order by the server.

        It searches rows that came one after the other several times slower, and to put few in order takes seconds.
        """
        self._ask("query", filter="key >= 0", output_fields=["count(*)"], consistency_level="Strong")
        if many:
            self._ask("flush")

    def nearest(self, points: Vectors, k: int, term: str, radius: float | None = None) -> list[Found]:
        """Return for each point the k nearest rows that a term is true of, or those within a squared distance."""
        within = {} if radius is None else {"radius": radius}
        step = max(1, _FLOATS // (k * points.shape[1]))
        return [
            _found([hit.id for hit in hits], [hit["entity"]["vector"] for hit in hits], points.shape[1])
            for begin in range(0, len(points), step)
            for hits in self._ask(
                "search",
                data=[*points[begin : begin + step]],
                filter=term,
                limit=k,
                output_fields=["vector"],
                search_params={"metric_type": "L2", "params": within},
            )
        ]

    def fetch(self, keys: Keys) -> Iterator[Found]:
        """Yield rows by their numbers, those that are there."""
        step = min(MOST, max(1, _FLOATS // len(self.centre)))
        for begin in range(0, len(keys), step):
            term = f"key in {keys[begin : begin + step].tolist()}"
            rows = self._ask("query", filter=term, output_fields=["key", "vector"], limit=step)
            yield _found([row["key"] for row in rows], [row["vector"] for row in rows], len(self.centre))

    def _ask(self, what: str, **arguments: Any) -> Any:
        return self._server.ask(what, collection_name=self.name, **arguments)


def _schema(centre: Vectors) -> Any:
    from pymilvus import CollectionSchema, DataType, FieldSchema

    fields = [
        FieldSchema("key", DataType.INT64, is_primary=True),
        FieldSchema("stamp", DataType.INT64),
        *(FieldSchema(name, DataType[kind]) for name, kind in FACTS.items()),
        FieldSchema("vector", DataType.FLOAT_VECTOR, dim=len(centre)),
    ]
    written = base64.b64encode(centre.astype("<f4").tobytes()).decode()
    return CollectionSchema(fields, description=_ABOUT + written)


def _index() -> Any:
    """Compare with all: with a filter or a radius HNSW and IVF lose what is looked for (docs/scale-out.md)."""
    from pymilvus.milvus_client.index import IndexParams

    index = IndexParams()
    index.add_index("vector", index_type="FLAT", metric_type="L2", params={})
    return index


def _centre(name: str, description: str, dimension: int) -> Vectors:
    try:
        centre = np.frombuffer(base64.b64decode(description.removeprefix(_ABOUT), validate=True), "<f4")
    except ValueError:
        centre = np.empty(0, np.float32)
    if not description.startswith(_ABOUT) or len(centre) != dimension:
        raise EngineError(f"the collection {name} was not made by lookdown; drop or rename it, and open the gallery")
    return np.asarray(centre, np.float32)


def _found(keys: Sequence[int], vectors: Sequence[Sequence[float]], dimension: int) -> Found:
    return Found(np.array(keys, np.int64), np.array(vectors, np.float32).reshape(-1, dimension))
