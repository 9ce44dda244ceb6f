"""The number of clusters is rather too large than too small, and bounded by the rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from tests.adaptation.targets import Array, blob, kinds

from lookdown.adaptation import number_of_clusters
from lookdown.adaptation.number_of_clusters import choose_clusters


@pytest.mark.parametrize("count", [2, 5, 11])
@pytest.mark.parametrize("normalize", [False, True])
def test_kinds_that_stand_apart_are_all_given_a_cluster(count: int, normalize: bool) -> None:
    X, _ = kinds(count, 60, 12)
    assert count <= choose_clusters(X, normalize=normalize) <= max(12, 4 * count)


@pytest.mark.parametrize("rows", [10, 25, 60, 110, 250])
def test_a_cluster_has_ten_rows_to_itself(rows: int) -> None:
    for X in (blob(rows, 4), kinds(rows // 2, 2, 4)[0]):
        assert choose_clusters(X, normalize=False) <= max(2, rows // 10)


def test_with_rows_enough_there_are_at_least_twelve() -> None:
    X, _ = kinds(2, 60)
    assert choose_clusters(X, normalize=False) == 12
    assert choose_clusters(X[:70], normalize=False) == 7


def test_three_times_what_stands_apart_best() -> None:
    X, _ = kinds(8, 60, 12)
    assert choose_clusters(X, normalize=False) == 24


def test_copies_of_one_row_have_two_clusters() -> None:
    assert choose_clusters(np.ones((20, 3)), normalize=False) == 2


def test_of_a_large_set_some_rows_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = kinds(8, 100, 12)
    monkeypatch.setattr(number_of_clusters, "_ROWS", 200)
    seen = []

    def silhouette(rows: Array, clusters: int, **_: object) -> float:
        seen.append(len(rows))
        return float(clusters == 8)

    monkeypatch.setattr(number_of_clusters, "silhouette", silhouette)
    assert choose_clusters(X, normalize=False) == 24
    assert set(seen) == {200}


def test_silhouettes_are_taken_without_all_distances_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(number_of_clusters, "_LADDER", (2,))
    X = blob(4096, 4)
    tracemalloc.start()
    choose_clusters(X, normalize=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4096 * 4096 * 8 / 2
