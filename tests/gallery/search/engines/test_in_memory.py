"""What is proposed is measured, ordered and cut; engines only propose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.gallery.search.engines.vectors import assert_all, brute_force, clustered, columns, keeping, share_of

from lookdown.gallery.search.engines import in_memory
from lookdown.gallery.search.engines.engine import Vectors
from lookdown.gallery.search.engines.in_memory import InMemoryEngine, Mask
from lookdown.gallery.store.snapshot import Rows

Z = clustered(300, 4)


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
