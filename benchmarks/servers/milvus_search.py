"""Compare search by a Milvus server on this machine with exact search in the process: the same hits, and their time.

Also print the recall of the server's approximate indexes, with filters and without: it is why the engine uses none.
Run it in a checkout, since the server is that of the tests:
PYTHONPATH=.:benchmarks python benchmarks/servers/milvus_search.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tests.gallery.scale.running_milvus import RunningMilvus, why_not
from threadpoolctl import threadpool_limits

from lookdown.gallery.scale.milvus_engine import MilvusEngine
from lookdown.gallery.scale.milvus_server import MilvusGallery, MilvusServer
from lookdown.gallery.search.engines.engine import Nearest, Vectors
from lookdown.gallery.search.engines.in_memory import ExactEngine
from lookdown.gallery.search.filters import Where
from lookdown.gallery.store.snapshot import CategoricalColumn, FilterColumns
from search import chips, one_by_one, recall, stream
from sidebyside import Row, compare, report

ROWS, K, QUERIES = 100_000, 50, 50
SCENES = 1_000
COLLECTION = "bench_1_trained"
_SEALED = 3  # the number of this state of a segment
SHARES = (0.002, 0.01, 0.2, 0.5, 0.8)
INDEXES = {"HNSW": ({"M": 16, "efConstruction": 200}, {"ef": 128}), "IVF_FLAT": ({"nlist": 512}, {"nprobe": 16})}


def columns(scenes: NDArray[np.int32]) -> FilterColumns:
    """Return columns of chips that have a scene, and nothing else that a filter could read."""
    rows, none = len(scenes), CategoricalColumn((), np.full(len(scenes), -1, np.int32))
    return FilterColumns(
        labels=none,
        scenes=CategoricalColumn(tuple(map(str, range(SCENES))), scenes),
        sensors=none,
        timestamps=none,
        background=np.zeros(rows, np.bool_),
        bounds=np.full((rows, 4), np.nan),
        footprints=lambda rows: [None] * len(rows),
    )


def scenes_filter(share: float) -> Where:
    """Return a filter that keeps this share of the rows."""
    return Where(scene=[*map(str, range(round(share * SCENES)))])


def side_by_side(served: MilvusEngine, exact: ExactEngine, queries: Vectors) -> list[Row]:
    """Check that the hits are the same, and time queries one by one, as users ask them."""
    assert recall(served.nearest(queries, K), exact.nearest(queries, K)) == 1
    rows = [
        compare(
            f"Milvus, {ROWS:,} rows, {QUERIES} queries alone",
            lambda: one_by_one(served, queries),
            "exact in the process",
            lambda: one_by_one(exact, queries),
            limit=20,
            turns=3,
        )
    ]
    for share in SHARES[:3]:
        where = scenes_filter(share)
        assert recall(served.nearest(queries, K, where), exact.nearest(queries, K, where)) == 1

        def ours(where: Where = where) -> object:
            return one_by_one(served, queries, K, where)

        what = f"the same, a filter that keeps {share:.1%}"
        rows.append(
            compare(what, ours, "Milvus without a filter", lambda: one_by_one(served, queries), limit=3, turns=3)
        )
    return rows


def approximate(
    server: MilvusServer, exact: ExactEngine, z: Vectors, scenes: NDArray[np.int32], queries: Vectors
) -> None:
    """Print the recall of indexes that the engine does not use."""
    from pymilvus import CollectionSchema, DataType, FieldSchema
    from pymilvus.milvus_client.index import IndexParams

    print("| index | all rows | " + " | ".join(f"{share:.1%} kept" for share in SHARES) + " |")
    print("|---|---|" + "---|" * len(SHARES))
    fields = [FieldSchema("key", DataType.INT64, is_primary=True), FieldSchema("scene", DataType.INT64)]
    for kind, (made, asked) in INDEXES.items():
        vector = FieldSchema("vector", DataType.FLOAT_VECTOR, dim=z.shape[1])
        index = IndexParams()
        index.add_index("vector", index_type=kind, metric_type="L2", params=made)
        server.call("create_collection", collection_name=kind, schema=CollectionSchema([*fields, vector]))
        for begin in range(0, ROWS, 20_000):
            data = [{"key": n, "scene": int(scenes[n]), "vector": z[n]} for n in range(begin, begin + 20_000)]
            server.call("upsert", collection_name=kind, data=data)
        server.call("flush", collection_name=kind)
        server.call("create_index", collection_name=kind, index_params=index)
        while server.call("describe_index", collection_name=kind, index_name="vector")["pending_index_rows"]:
            time.sleep(1)
        server.call("load_collection", collection_name=kind)  # sealed and indexed: no row is searched another way
        found = []
        for share in (1.0, *SHARES):
            answers = server.call(
                "search",
                collection_name=kind,
                data=[*queries],
                limit=K,
                filter=f"scene < {round(share * SCENES)}",
                search_params={"metric_type": "L2", "params": asked},
            )
            rows = [Nearest(np.array([hit.id for hit in hits]), np.empty(0)) for hits in answers]
            found.append(recall(rows, exact.nearest(queries, K, scenes_filter(share))))
        print(f"| {kind} | " + " | ".join(f"{share:.3f}" for share in found) + " |")
        server.call("drop_collection", collection_name=kind)
    print()


def until_sealed(server: MilvusServer) -> None:
    """Wait until the server has sealed its segments, some seconds after the rows were sent."""
    while {int(part.state) for part in server.call("list_loaded_segments", collection_name=COLLECTION)} != {_SEALED}:
        time.sleep(1)


def main() -> None:
    """Start a server, fill it and search it."""
    if reason := why_not():
        sys.exit(reason)
    z = np.concatenate([vectors for vectors, _ in chips(ROWS + QUERIES)])
    z, queries = z[:ROWS], z[ROWS:]
    scenes = np.random.default_rng(1).integers(SCENES, size=ROWS).astype(np.int32)
    table = columns(scenes)
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        (data := Path(folder) / "data").mkdir()
        with RunningMilvus(data, Path(folder)) as running:
            server = MilvusServer(uri=running.uri)
            exact = ExactEngine(stream(z), table)
            approximate(server, exact, z, scenes, queries)
            begin = time.perf_counter()
            served = MilvusEngine(stream(z), table, np.arange(ROWS), MilvusGallery(server, "bench"), "1-trained")
            print(f"{ROWS:,} rows sent in {time.perf_counter() - begin:.1f} s\n")
            until_sealed(server)
            rows = side_by_side(served, exact, queries)
    report("Search by a Milvus server; one machine has both, so its cores are shared", rows)


if __name__ == "__main__":
    main()
