"""The exact engine, where it could go wrong by its own means; the rest is in test_engine.py."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from tests.gallery.search.engines.vectors import assert_all, brute_force, clustered, columns, keeping, share_of, stream

from lookdown.gallery.search.engines.engine import Vectors
from lookdown.gallery.search.engines.exact import ExactEngine
from lookdown.metrics import ranking

Z, QUERIES = clustered(2000), clustered(20, seed=1)


def exact(z: Vectors) -> ExactEngine:
    return ExactEngine(stream(z), columns(len(z)))


@pytest.mark.parametrize("rows", [16, 100, 4096])
@pytest.mark.parametrize("share", [0.02, 0.6, 1])
def test_blocks_do_not_show(rows: int, share: float, monkeypatch: Any) -> None:
    for name in ("_FEWEST_ROWS", "_MOST_ROWS"):
        monkeypatch.setattr(ranking, name, rows)
    mask = share_of(len(Z), share)
    for queries in (QUERIES[:1], QUERIES):
        for query, found in zip(queries, exact(Z).nearest(queries, 50, keeping(mask)), strict=True):
            assert_all(found, brute_force(Z, query, mask), 50, rtol=1e-5)


def test_more_queries_than_are_compared_at_a_time(monkeypatch: Any) -> None:
    monkeypatch.setattr(ranking, "_BLOCK_QUERIES", 7)
    for query, found in zip(QUERIES, exact(Z).nearest(QUERIES, 5), strict=True):
        assert_all(found, brute_force(Z, query), 5, rtol=1e-5)


def test_nothing_is_lost_where_no_centre_helps() -> None:
    """Two clusters far apart: a product of vectors has few digits left for what members of one differ by."""
    z = Z + np.where(np.arange(len(Z)) % 2, 300, -300)[:, None].astype(np.float32)
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
