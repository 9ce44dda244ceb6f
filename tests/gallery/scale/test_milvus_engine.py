"""What the Milvus engine does besides searching: it keeps a collection up to the table, through kills of the server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from tests.gallery.galleries import LABELS, SCENES, vector_gallery
from tests.gallery.scale.running_milvus import RunningMilvus
from tests.gallery.search.engines.vectors import assert_all, brute_force, clustered, columns, keeping, share_of, stream

from lookdown import Gallery, Where
from lookdown.errors import EngineError
from lookdown.gallery.scale import milvus_collection, milvus_engine
from lookdown.gallery.scale.milvus_collection import MilvusCollection, ScalarFields
from lookdown.gallery.scale.milvus_engine import MilvusEngine
from lookdown.gallery.scale.milvus_server import MilvusGallery, MilvusServer
from lookdown.gallery.search.engines.engine import VectorStream

Z = clustered(600)
QUERIES = clustered(5, seed=1)


@pytest.fixture
def place(milvus: MilvusServer) -> Iterator[MilvusGallery]:
    place = MilvusGallery(milvus, f"test_{uuid4().hex}")
    yield place
    for metric in ("1-trained", "2-adapted"):
        place.drop(metric)


def made(place: MilvusGallery, keys: Any, table: Any = None, **options: Any) -> MilvusEngine:
    keys = np.asarray(keys, np.int64)
    return MilvusEngine(stream(Z[keys]), table or columns(len(keys)), keys, place, "1-trained", **options)


def held(place: MilvusGallery) -> list[int]:
    """All numbers that the server has."""
    rows = place.server.call(
        "query",
        collection_name=place.collection("1-trained"),
        filter="key >= 0",
        output_fields=["key"],
        consistency_level="Strong",
    )
    return sorted(row["key"] for row in rows)


def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Hear of the numbers that are sent from now on."""
    heard: list[int] = []
    real = MilvusCollection.put

    def put(self: MilvusCollection, keys: Any, *rest: Any) -> None:
        heard.extend(keys.tolist())
        real(self, keys, *rest)

    monkeypatch.setattr(MilvusCollection, "put", put)
    return heard


def test_only_what_is_new_is_sent_and_what_is_gone_is_removed(
    place: MilvusGallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = sent(monkeypatch)
    made(place, range(400))
    assert (sorted(heard), held(place)) == ([*range(400)], [*range(400)])
    heard.clear()
    made(place, range(400))
    assert heard == []
    kept = [*range(100, 400), *range(500, 520)]
    rows_read: list[int] = []

    def read(rows: Any) -> Any:
        rows_read.extend(rows.tolist())
        return Z[np.array(kept)[rows]]

    engine = made(place, kept, read=read)
    assert (sorted(heard), held(place)) == ([*range(500, 520)], kept)
    assert rows_read == [*range(300, 320)]
    for query, found in zip(QUERIES, engine.nearest(QUERIES, 10), strict=True):
        assert_all(found, brute_force(Z[kept], query), 10, rtol=1e-5)


def test_rows_of_a_newer_table_are_neither_shown_nor_removed(place: MilvusGallery) -> None:
    old = made(place, range(200))
    new = made(place, range(50, 600))
    assert new.count() == 550
    again = made(place, range(200))  # who still sees the older table brings back what it lacks
    assert held(place) == [*range(600)]
    for query in QUERIES:
        for engine, rows in ((again, range(200)), (new, range(50, 600))):
            assert_all(engine.nearest(query[None], 20)[0], brute_force(Z[rows], query), 20, rtol=1e-5)
            least = float(brute_force(Z[rows], query).closeness[30])
            assert len(engine.reaching(query, least * 1.0001).rows) == 31
    assert old.count() == 200


def test_what_is_sent_twice_is_there_once(place: MilvusGallery) -> None:
    engine = made(place, range(300))
    collection = engine._collection
    fields = {name: column[:50] for name, column in ScalarFields.of(columns(300)).items()}
    for _ in range(2):
        collection.put(np.arange(50), Z[:50] - collection.mean, fields, np.zeros(50, np.int64))
    collection.settle()
    assert held(place) == [*range(300)]
    assert_all(engine.nearest(QUERIES[:1], 300)[0], brute_force(Z[:300], QUERIES[0]), 300, rtol=1e-5)


def test_answers_are_whole_where_one_cannot_hold_them(place: MilvusGallery, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (milvus_engine, milvus_collection):
        monkeypatch.setattr(module, "MAX_ROWS", 64)
    engine = made(place, range(600))
    assert made(place, range(600)).count() == 600
    mask = share_of(600, 0.5)
    for query in QUERIES[:2]:
        assert_all(engine.nearest(query[None], 500)[0], brute_force(Z, query), 500, rtol=1e-5)
        assert_all(engine.nearest(query[None], 200, keeping(mask))[0], brute_force(Z, query, mask), 200, rtol=1e-5)
        assert len(engine.reaching(query, -np.inf).rows) == 600
    np.testing.assert_allclose(engine.vectors(np.arange(600)[::-1]), Z[::-1], atol=1e-6)


def test_where_are_left_to_the_server_where_they_keep_many(
    tmp_path: Path, milvus: MilvusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(milvus_engine, "_LISTED_KEYS", 3)
    gallery, X, rows = vector_gallery(tmp_path / "g", 250, engine=milvus)
    plain = Gallery.open(tmp_path / "g", engine="exact")
    rng = np.random.default_rng(3)
    for number in range(60):
        west, south = rng.uniform(-12, 8), rng.uniform(38, 58)
        drawn: dict[str, Any] = {
            "label": [*rng.choice(LABELS, 3)],
            "scene": [*rng.choice(SCENES, 2)],
            "since": f"2021-{rng.integers(1, 7):02d}",
            "until": f"2021-{rng.integers(7, 13):02d}",
            "box": (west, south, west + 9, south + 9),
            "labelled": bool(number % 3),
        }
        if not number % 2:
            drawn["polygon"] = f"POLYGON (({west} {south}, {west + 9} {south}, {west} {south + 9}, {west} {south}))"
        where = Where(**{name: value for name, value in drawn.items() if rng.random() < 0.4})
        found, expected = (one.search(X[number], k=12, where=where) for one in (gallery, plain))
        assert [hit.id for hit in found.hits] == [hit.id for hit in expected.hits], where
        assert found.rows_searched == expected.rows_searched
    gallery.label([rows[0]["id"]], ["another"])
    assert [hit.id for hit in gallery.search(X[0], where=Where(label="another")).hits] == [rows[0]["id"]]


def test_the_alias_leads_to_the_metric_in_use(tmp_path: Path, milvus: MilvusServer) -> None:
    gallery, X, _ = vector_gallery(tmp_path / "g", 200, engine=milvus)
    place = gallery._searchers._milvus()
    assert place is not None

    def leads_to() -> str:
        return str(milvus.call("describe_alias", alias=place.alias)["collection_name"])

    gallery.prepare()
    assert leads_to() == place.collection("1-trained")
    other = Gallery.open(tmp_path / "g", engine=milvus)
    assert gallery.adapt(clusters=8).metric == "2-adapted"
    assert leads_to() == place.collection("2-adapted")
    assert other.search(X[0], k=3).metric == "1-trained"
    assert leads_to() == place.collection("2-adapted"), "who looks at an older choice does not go back"
    gallery.use("1-trained")
    assert leads_to() == place.collection("1-trained")
    gallery.forget("2-adapted")
    assert not milvus.has_collection(place.collection("2-adapted"))


def test_a_metric_that_is_brought_is_searched_in_this_process(tmp_path: Path, milvus: MilvusServer) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g", 60, engine=milvus)
    found = gallery.search(X[3], k=1, metric=gallery.read_metric("cosine"))
    assert (found.engine, found.hits[0].id) == ("exact", rows[3]["id"])


def test_rows_that_others_removed_are_missed(place: MilvusGallery) -> None:
    engine = made(place, range(20))
    engine._collection.remove(np.arange(5))
    engine._collection.settle()
    with pytest.raises(EngineError, match="are gone; open the gallery again"):
        engine.vectors(np.arange(20))
    assert len(engine.nearest(QUERIES[:1], 20)[0].rows) == 15


def test_a_server_killed_in_the_middle_loses_nothing_that_it_acknowledged(
    milvus_binaries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thrice: killed while rows are being sent, and started again on the same folder a moment later."""
    monkeypatch.setattr(milvus_collection, "_REQUEST_FLOATS", 16 * 500)  # rows a step
    z = clustered(30_000)
    acknowledged: list[int] = []
    real = MilvusServer.call

    def call(self: MilvusServer, what: str, **arguments: Any) -> Any:
        answer = real(self, what, **arguments)
        if what == "upsert":
            acknowledged.extend(row["key"] for row in arguments["data"])
        return answer

    monkeypatch.setattr(MilvusServer, "call", call)
    (tmp_path / "data").mkdir()
    with RunningMilvus(tmp_path / "data", milvus_binaries) as running:
        place = MilvusGallery(MilvusServer(uri=running.uri, timeout=150), "killed")
        kills: list[int] = []
        engines: list[MilvusEngine] = []

        def send() -> None:
            table = columns(len(z))
            engines.append(MilvusEngine(stream(z, 500), table, np.arange(len(z)), place, "1-trained"))

        sender = threading.Thread(target=send)
        sender.start()
        for amount in (4_000, 12_000, 20_000):
            while len(acknowledged) < amount and sender.is_alive():
                time.sleep(0.002)
            running.kill()
            kills.append(len(acknowledged))
            time.sleep(1)
            running.start()
        sender.join()
        (engine,) = engines
        assert len(kills) == 3
        assert kills[0] < kills[1] < kills[2] < len(z)
        keys, _ = engine._collection.checksums(np.arange(len(z)))
        assert sorted(keys.tolist()) == sorted(acknowledged) == [*range(len(z))]
        for query in QUERIES:
            assert_all(engine.nearest(query[None], 50)[0], brute_force(z, query), 50, rtol=1e-5)
        running.kill()
        running.start()
        again = MilvusEngine(
            VectorStream(len(z), 16, lambda: pytest.fail("all is there")), columns(len(z)), np.arange(len(z)), place,
            "1-trained", read=lambda rows: z[rows],
        )  # fmt: skip
        assert again.count() == len(z)
        assert len(acknowledged) == len(z)
