"""What every engine owes, against brute force; a new engine joins by one line in ENGINES."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import pytest
from tests.gallery.search.engines.vectors import (
    assert_all,
    assert_true,
    brute_force,
    clustered,
    columns,
    keeping,
    recall,
    share_of,
    stream,
)

from lookdown.errors import InputError
from lookdown.gallery.scale.milvus_engine import MilvusEngine
from lookdown.gallery.scale.milvus_server import MilvusGallery, MilvusServer
from lookdown.gallery.search.engines import engine as engine_module
from lookdown.gallery.search.engines.engine import (
    Engine,
    Vectors,
    VectorStream,
    as_points,
    chosen_engine,
    closeness_to,
    make_engine,
    mean_of,
    nearest_first,
    nothing,
)
from lookdown.gallery.search.engines.in_memory import ExactEngine
from lookdown.gallery.search.engines.ivf import IVFEngine
from lookdown.gallery.store.snapshot import FilterColumns


@dataclass(frozen=True)
class Kind:
    make: Callable[..., Engine]
    recall: float  # without a filter


ENGINES = {"exact": Kind(ExactEngine, 1.0), "ivf": Kind(IVFEngine, 0.99)}
ROWS = 20_000
Z = clustered(ROWS)
FEW = clustered(200)
FLAT = clustered(300, 4)
QUERIES = clustered(40, seed=1)
TOLERANCE = {"rtol": 1e-5, "atol": 1e-6}
SHARES = [0, 1 / ROWS, 0.001, 0.01, 0.2, 0.8]


@pytest.fixture(params=[*ENGINES, pytest.param("milvus", marks=pytest.mark.server)])
def kind(request: Any) -> Kind:
    return ENGINES.get(request.param) or milvus_kind(request.getfixturevalue("milvus"))


@cache
def milvus_kind(server: MilvusServer) -> Kind:
    """Each engine has a collection of its own, and rows have any numbers."""
    number = count()

    def make(vectors: VectorStream, table: FilterColumns) -> Engine:
        keys = 3 * np.random.default_rng(0).permutation(vectors.rows) + 7
        return MilvusEngine(vectors, table, keys, MilvusGallery(server, f"contract_{next(number)}"), "1-trained")

    return Kind(make, 1.0)


def engine_of(kind: Kind, z: Vectors) -> Engine:
    return kind.make(stream(z), columns(len(z)))


@cache
def large(kind: Kind) -> Engine:
    return engine_of(kind, Z)


@pytest.mark.parametrize("k", [1, 7, 50, 300, 2000])
def test_the_nearest_are_found_and_measured_truly(kind: Kind, k: int) -> None:
    found = large(kind).nearest(QUERIES, k)
    expected = [brute_force(Z, query) for query in QUERIES]
    for one, other in zip(found, expected, strict=True):
        assert_true(one, other, **TOLERANCE)
        assert one.rows.shape == one.closeness.shape == (k,)
        assert one.closeness.dtype == np.float64
    assert np.mean([recall(*pair, k) for pair in zip(found, expected, strict=True)]) >= kind.recall


def test_few_queries_are_answered_as_many_are(kind: Kind) -> None:
    together = large(kind).nearest(QUERIES, 50)
    for query, other in zip(QUERIES, together, strict=True):
        (alone,) = large(kind).nearest(query[None], 50)
        np.testing.assert_array_equal(alone.rows, other.rows)
        np.testing.assert_array_equal(alone.closeness, other.closeness)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("queries", [1, 40])  # where few rows are kept or queries are many, rows are fetched
def test_with_a_filter_the_answer_is_exact(kind: Kind, share: float, queries: int) -> None:
    mask = share_of(ROWS, share)
    found = large(kind).nearest(QUERIES[:queries], 50, keeping(mask))
    for query, one in zip(QUERIES, found, strict=False):
        assert mask[one.rows].all()
        assert_all(one, brute_force(Z, query, mask), 50, **TOLERANCE)
    assert large(kind).count(keeping(mask)) == mask.sum()


@pytest.mark.parametrize("share", [None, *SHARES, 1])
@pytest.mark.parametrize("rank", [0, 100, 5000])
def test_everything_that_is_close_enough_is_found(kind: Kind, share: float | None, rank: int) -> None:
    mask = None if share is None else share_of(ROWS, share)
    for query in QUERIES[:3]:
        expected = brute_force(Z, query, mask)
        least = brute_force(Z, query).closeness[rank : rank + 2].mean()
        found = large(kind).reaching(query, least, None if mask is None else keeping(mask))
        assert_all(found, expected, int((expected.closeness >= least).sum()), **TOLERANCE)
        assert len(found.rows) == (expected.closeness >= least).sum()


def test_a_row_exactly_as_close_as_asked_is_found(kind: Kind) -> None:
    for query in QUERIES[:10]:
        found = large(kind).reaching(query, -np.inf)
        again = large(kind).reaching(query, float(found.closeness[99]))
        np.testing.assert_array_equal(again.rows, found.rows[:100])


def test_any_closeness_is_all_rows_and_more_than_none_is_no_row(kind: Kind) -> None:
    engine, mask = large(kind), share_of(ROWS, 0.5)
    assert len(engine.reaching(QUERIES[0], -np.inf).rows) == engine.count() == ROWS
    np.testing.assert_array_equal(np.sort(engine.reaching(QUERIES[0], -np.inf, keeping(mask)).rows), mask.nonzero()[0])
    assert len(engine.reaching(QUERIES[0], 1e-9).rows) == 0
    assert len(engine.reaching(QUERIES[0], np.inf).rows) == 0


@pytest.mark.parametrize("k", [1, 50])
def test_a_row_is_at_no_distance_from_itself(kind: Kind, k: int) -> None:
    rows = np.array([0, 77, ROWS - 1])
    for row, found in zip(rows, large(kind).nearest(Z[rows], k), strict=True):
        assert found.rows[0] == row
        assert found.closeness[0] == 0
    assert [large(kind).reaching(Z[row], 0.0).rows.tolist() for row in rows] == [[row] for row in rows]


def test_an_offset_does_not_cost_recall(kind: Kind) -> None:
    shift = 1000 + np.arange(16, dtype=np.float32)
    z, queries = Z[:5000] + shift, QUERIES + shift
    engine = engine_of(kind, z)
    expected = [brute_force(z, query) for query in queries]
    for one, other in zip(engine.nearest(queries, 50), expected, strict=True):
        assert_true(one, other, rtol=1e-4)
    found = [recall(*pair, 50) for pair in zip(engine.nearest(queries, 50), expected, strict=True)]
    assert np.mean(found) >= kind.recall
    mask = share_of(len(z), 0.3)
    for query in queries[:5]:
        assert_all(engine.nearest(query[None], 50, keeping(mask))[0], brute_force(z, query, mask), 50, rtol=1e-4)
        near = engine.reaching(query, -4.0)
        assert len(near.rows) == (brute_force(z, query).closeness >= -4).sum()


@pytest.mark.parametrize("rows", [1, 2, 3, 10, 100])
def test_of_a_small_gallery_all_rows_come(kind: Kind, rows: int) -> None:
    z = Z[:rows]
    engine = engine_of(kind, z)
    mask = np.arange(rows) % 2 == 0
    for query, found in zip(QUERIES, engine.nearest(QUERIES, 1000), strict=True):
        assert_all(found, brute_force(z, query), rows, **TOLERANCE)
    for query, found in zip(QUERIES, engine.nearest(QUERIES, 1000, keeping(mask)), strict=True):
        assert_all(found, brute_force(z, query, mask), rows, **TOLERANCE)


@pytest.mark.parametrize("k", [ROWS - 1, ROWS, 10 * ROWS])
def test_many_neighbours_of_a_large_gallery_all_come(kind: Kind, k: int) -> None:
    (found,) = large(kind).nearest(QUERIES[:1], k)
    assert_all(found, brute_force(Z, QUERIES[0]), k, **TOLERANCE)


def test_an_empty_gallery_has_nothing(kind: Kind) -> None:
    engine = engine_of(kind, Z[:0])
    assert [found.rows.tolist() for found in engine.nearest(QUERIES[:2], 5)] == [[], []]
    assert len(engine.nearest(QUERIES[:1], 5, keeping(np.empty(0, np.bool_)))[0].closeness) == 0
    assert len(engine.reaching(QUERIES[0], -np.inf).rows) == 0
    assert engine.count() == 0
    assert engine.vectors(np.empty(0, np.intp)).shape == (0, 16)


def test_no_query_no_answer(kind: Kind) -> None:
    assert large(kind).nearest(QUERIES[:0], 5) == []


def test_equal_rows_come_in_the_order_of_the_table(kind: Kind) -> None:
    z = np.repeat(np.arange(8, dtype=np.float32), 5)[np.random.default_rng(0).permutation(40)][:, None].repeat(
        3, axis=1
    )
    engine = engine_of(kind, z)
    expected = brute_force(z, z[0])
    for k in (5, 40):
        np.testing.assert_array_equal(engine.nearest(z[:1], k)[0].rows, expected.rows[:k])
    np.testing.assert_array_equal(engine.reaching(z[0], -100.0).rows, expected.rows)


def test_a_gallery_of_one_vector_many_times(kind: Kind) -> None:
    z = np.ones((2000, 4), np.float32)
    engine = engine_of(kind, z)
    assert engine.nearest(z[:1], 2000)[0].rows.tolist() == [*range(2000)]
    assert len(engine.nearest(z[:1], 50)[0].rows) == 50
    assert len(engine.reaching(z[0], 0.0).rows) == 2000


def test_one_dimension_is_enough(kind: Kind) -> None:
    z = clustered(3000, 1)
    engine, mask = engine_of(kind, z), share_of(3000, 0.4)
    for query in clustered(5, 1, seed=1):
        assert recall(engine.nearest(query[None], 20)[0], brute_force(z, query), 20) >= kind.recall
        assert_all(engine.nearest(query[None], 20, keeping(mask))[0], brute_force(z, query, mask), 20, **TOLERANCE)


def test_the_same_vectors_give_the_same_answers(kind: Kind) -> None:
    other = kind.make(stream(Z, 999), columns(ROWS))
    for one, two in zip(large(kind).nearest(QUERIES, 50), other.nearest(QUERIES, 50), strict=True):
        np.testing.assert_array_equal(one.rows, two.rows)
        np.testing.assert_allclose(one.closeness, two.closeness, rtol=1e-6)
    np.testing.assert_array_equal(large(kind).assignment, other.assignment)


def test_closeness_is_the_same_in_all_engines(kind: Kind) -> None:
    mask = share_of(ROWS, 0.3)
    for query in QUERIES[:5]:
        for where in (None, keeping(mask)):
            one, two = (engine.reaching(query, -8.0, where) for engine in (large(kind), large(ENGINES["exact"])))
            np.testing.assert_array_equal(one.rows, two.rows)
            np.testing.assert_array_equal(one.closeness, two.closeness)


def test_vectors_come_back(kind: Kind) -> None:
    rows = np.array([5, 3, 3, ROWS - 1])
    found = large(kind).vectors(rows)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, Z[rows], atol=1e-6)


@pytest.mark.parametrize(
    ("queries", "k", "told"),
    [
        (np.full((1, 16), np.nan), 5, "queries contains NaN in row 0"),
        (np.full((1, 16), 1e300), 5, "queries contains inf in row 0"),
        (np.full((1, 16), 1e30), 5, "so large that its square overflows"),
        (np.ones((1, 3)), 5, r"\(n, 16\) vectors, got shape \(1, 3\)"),
        (np.ones(16), 5, r"got shape \(16,\)"),
        (QUERIES, 0, "k must be a whole number"),
    ],
)
def test_what_cannot_be_searched_for_is_refused(kind: Kind, queries: Any, k: int, told: str) -> None:
    with pytest.raises(InputError, match=told):
        large(kind).nearest(queries, k)


def test_what_cannot_be_reached_is_refused(kind: Kind) -> None:
    with pytest.raises(InputError, match="queries contains NaN"):
        large(kind).reaching(np.full(16, np.nan, np.float32), -1.0)
    with pytest.raises(InputError, match="closeness must be a number"):
        large(kind).reaching(QUERIES[0], np.nan)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_gallery_that_is_not_finite_is_refused(kind: Kind, bad: float) -> None:
    z = Z[:100].copy()
    z[7, 3] = bad
    with pytest.raises(InputError, match="NaN or inf"):
        engine_of(kind, z)


def test_a_gallery_too_large_to_square_is_refused(kind: Kind) -> None:
    z = Z[:100].copy()
    z[7, 3] = 1e30
    with pytest.raises(InputError, match="overflows"):
        engine_of(kind, z)


@pytest.mark.parametrize(
    ("rows", "dimensions", "told"),
    [(99, 16, "came after 0 of 99 x 16"), (101, 16, "100 vectors came for 101 rows"), (100, 15, "of 100 x 15")],
)
def test_a_table_that_changes_meanwhile_is_noticed(kind: Kind, rows: int, dimensions: int, told: str) -> None:
    with pytest.raises(InputError, match=told):
        kind.make(VectorStream(rows, dimensions, lambda: iter([Z[:100]])), columns(rows))


def test_large_batches_are_split() -> None:
    z = np.arange(200_000, dtype=np.float32)[:, None]
    parts = [*VectorStream(200_000, 1, lambda: iter([z[:150_000], z[:0], z[150_000:]])).numbered()]
    assert max(len(part) for _, part in parts) <= 65_536
    for place, part in parts:
        np.testing.assert_array_equal(part, z[place])


@pytest.mark.parametrize(
    ("kind", "many", "name"), [("auto", 200, "exact"), ("auto", 199, "ivf"), ("exact", 1, "exact"), ("ivf", 500, "ivf")]
)
def test_auto_is_exact_until_rows_are_many(kind: Any, many: int, name: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(engine_module, "EXACT_ROWS", many)
    engine = make_engine(kind, stream(FEW), columns(200))
    assert engine.name == name
    assert engine.nearest(FEW[:1], 1)[0].rows.tolist() == [0]
    assert len(engine.assignment) == (200 if name == "ivf" else 0)
    assert engine.lists_changed == (name == "ivf")


def test_lists_are_read_only_where_they_are_used() -> None:
    lists = make_engine("ivf", stream(FEW), columns(200)).assignment
    for given in (lists, lambda: lists):
        engine = make_engine("ivf", stream(FEW), columns(200), given)
        assert not engine.lists_changed
        np.testing.assert_array_equal(engine.assignment, lists)
    assert make_engine("ivf", stream(FEW), columns(200), lambda: None).lists_changed

    def refuse() -> None:
        raise AssertionError

    make_engine("exact", stream(FEW), columns(200), refuse)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(InputError, match="no engine 'hnsw'; known are auto, exact, ivf"):
        make_engine("hnsw", stream(FEW), columns(200))  # type: ignore[arg-type]


def test_faiss_is_not_imported_for_nothing() -> None:
    code = "import sys, lookdown.gallery.search.engines.engine; sys.exit('faiss' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_choice_is_a_name_or_a_server(monkeypatch: Any) -> None:
    monkeypatch.setenv("LOOKDOWN_MILVUS_URI", "http://there")
    server = MilvusServer(uri="http://here")
    assert [chosen_engine(name) for name in ("auto", "exact", "ivf")] == ["auto", "exact", "ivf"]
    assert chosen_engine(server) is server
    assert chosen_engine("milvus", "http://here") == server
    assert chosen_engine("milvus") == MilvusServer(uri="http://there")
    with pytest.raises(InputError, match="no engine 'hnsw'; known are auto, exact, ivf, milvus"):
        chosen_engine("hnsw")
    with pytest.raises(InputError, match="ivf searches in this process and has no address"):
        chosen_engine("ivf", "http://here")


def test_the_client_of_milvus_is_not_imported_for_nothing() -> None:
    code = "import sys, lookdown.gallery; sys.exit('pymilvus' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_mean_of_nothing_is_the_origin() -> None:
    np.testing.assert_array_equal(mean_of(np.zeros(3), 0), np.zeros(3))
    np.testing.assert_allclose(mean_of(FLAT.sum(axis=0, dtype=np.float64), 300), FLAT.mean(axis=0), rtol=1e-5)
    with pytest.raises(InputError, match="NaN or inf"):
        mean_of(np.array([1.0, np.nan]), 3)


def test_closeness_is_half_the_squared_distance_with_a_minus() -> None:
    rows = np.random.default_rng(0).permutation(300)
    found = nearest_first(rows, closeness_to(FLAT[7], FLAT[rows]))
    expected = brute_force(FLAT, FLAT[7])
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_allclose(found.closeness, expected.closeness, rtol=1e-12)
    assert found.closeness[0] == 0
    assert len(nothing().rows) == len(nothing().closeness) == 0


def test_points_are_less_the_mean_and_rounded() -> None:
    centre = mean_of(FLAT.sum(axis=0, dtype=np.float64), 300)
    np.testing.assert_array_equal(as_points(FLAT.astype(np.float64), centre), FLAT - centre)
    with pytest.raises(InputError, match=r"queries must be \(n, 4\) vectors, got shape \(300, 2\)"):
        as_points(FLAT[:, :2], centre)
