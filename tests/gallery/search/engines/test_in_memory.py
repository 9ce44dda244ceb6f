"""What is proposed is measured, ordered and cut; engines only propose."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from tests.gallery.search.engines.vectors import assert_all, brute_force, clustered, columns, keeping, share_of, stream

from lookdown.gallery.search.engines import in_memory
from lookdown.gallery.search.engines.engine import Vectors
from lookdown.gallery.search.engines.in_memory import ExactEngine, InMemoryEngine, Mask
from lookdown.gallery.store.snapshot import Rows
from lookdown.metrics import pairwise

Z = clustered(300, 4)
MANY, QUERIES = clustered(2000), clustered(20, seed=1)


class Careless(InMemoryEngine):
    """Proposes the right rows in any order, and for `reaching` all rows."""

    def __init__(self, z: Vectors) -> None:
        super().__init__(len(z), columns(len(z)), np.zeros(z.shape[1], np.float32))
        self.z, self.asked = z, [0]

    def _propose(self, points: Vectors, k: int, mask: Mask | None) -> Rows:
        self.asked.append(k)
        return np.array([np.sort(brute_force(self.z, point, mask).rows[:k]) for point in points])

    def _suspects(self, point: Vectors, closeness: float) -> Rows:
        return np.random.default_rng(0).permutation(len(self.z))

    def _fetch(self, rows: Rows) -> Vectors:
        return self.z[rows]


@pytest.mark.parametrize("k", [1, 20, 290, 300, 400])
def test_candidates_are_put_in_order_and_cut(k: int) -> None:
    engine = Careless(Z)
    assert_all(engine.nearest(Z[:1], k)[0], brute_force(Z, Z[0]), k, atol=1e-12)
    assert engine.asked[-1] == min(k + 8, 300)


def test_a_filter_holds_whatever_is_suspected() -> None:
    mask = share_of(300, 0.5)
    found = Careless(Z).reaching(Z[0], -3.0, keeping(mask))
    expected = brute_force(Z, Z[0], mask)
    assert_all(found, expected, int((expected.closeness >= -3).sum()), atol=1e-12)


def test_a_filter_that_keeps_all_rows_is_none() -> None:
    engine = Careless(Z)
    engine.nearest(Z[:100], 5, keeping(np.ones(300, np.bool_)))
    assert engine.asked[-1] == 13  # proposed, though for so many queries kept rows would be fetched


def test_long_answers_are_measured_in_slices(monkeypatch: Any) -> None:
    whole = Careless(Z).reaching(Z[0], -np.inf)
    monkeypatch.setattr(in_memory, "_BATCH_NUMBERS", 50)
    sliced = Careless(Z).reaching(Z[0], -np.inf)
    np.testing.assert_array_equal(sliced.rows, whole.rows)
    np.testing.assert_array_equal(sliced.closeness, whole.closeness)


def exact(z: Vectors) -> ExactEngine:
    return ExactEngine(stream(z), columns(len(z)))


@pytest.mark.parametrize("rows", [16, 100, 4096])
@pytest.mark.parametrize("share", [0.02, 0.6, 1])
def test_blocks_do_not_show(rows: int, share: float, monkeypatch: Any) -> None:
    for name in ("_FEWEST_ROWS", "_MOST_ROWS"):
        monkeypatch.setattr(pairwise, name, rows)
    mask = share_of(len(MANY), share)
    for queries in (QUERIES[:1], QUERIES):
        for query, found in zip(queries, exact(MANY).nearest(queries, 50, keeping(mask)), strict=True):
            assert_all(found, brute_force(MANY, query, mask), 50, rtol=1e-5)


def test_more_queries_than_are_compared_at_a_time(monkeypatch: Any) -> None:
    monkeypatch.setattr(pairwise, "_BLOCK_QUERIES", 7)
    for query, found in zip(QUERIES, exact(MANY).nearest(QUERIES, 5), strict=True):
        assert_all(found, brute_force(MANY, query), 5, rtol=1e-5)


def test_nothing_is_lost_where_no_centre_helps() -> None:
    """Two clusters far apart: a product of vectors has few digits left for what members of one differ by."""
    z = MANY + np.where(np.arange(len(MANY)) % 2, 300, -300)[:, None].astype(np.float32)
    engine = exact(z)
    for query in z[:20]:
        expected = brute_force(z, query)
        for least in expected.closeness[[10, 200, 990]] * 1.001:
            assert len(engine.reaching(query, least).rows) == (expected.closeness >= least).sum()


def test_the_vectors_are_held_once() -> None:
    z, table = clustered(30_000, 64), columns(30_000)
    tracemalloc.start()
    engine = ExactEngine(stream(z), table)
    size, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert engine.count() == 30_000
    assert size < 1.1 * z.nbytes
    assert peak < 1.3 * z.nbytes
