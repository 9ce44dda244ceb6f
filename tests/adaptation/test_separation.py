"""Clusters stand apart where there are kinds, and not where there is one cloud."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.adaptation.targets import Array, blob, k_means, kinds

from lookdown.adaptation import separation as module
from lookdown.adaptation.k_means import find_clusters
from lookdown.adaptation.separation import ENOUGH, choose_clusters, separation, separation_of, silhouette


@pytest.mark.parametrize("normalize", [False, True])
def test_kinds_stand_apart_and_one_cloud_does_not(normalize: bool) -> None:
    X, _ = kinds(6, 50, 16)
    assert separation(X, normalize=normalize) > 2 * ENOUGH
    many, _ = kinds(100, 20, 32)
    assert separation(many, normalize=normalize) > ENOUGH, "a hundred kinds are kinds, too"
    assert separation(blob(), normalize=normalize) < ENOUGH / 2
    oblong = np.random.default_rng(0).normal(size=(500, 16)) * np.r_[3.0, np.ones(15)] + 20
    assert separation(oblong, normalize=normalize) < ENOUGH, "an oblong cloud is one cloud"


def naive_silhouette(X: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Mean of (b - a) / max(a, b): a is the mean distance within the own cluster, b to the next one."""
    values = []
    for row, own in zip(X, labels, strict=True):
        apart = np.linalg.norm(X - row, axis=1)
        size = (labels == own).sum()
        if size == 1:
            values.append(0.0)
            continue
        a = apart[labels == own].sum() / (size - 1)
        b = min(apart[labels == other].mean() for other in np.unique(labels) if other != own)
        values.append((b - a) / max(a, b))
    return float(np.mean(values))


def test_it_is_the_mean_silhouette_of_k_means() -> None:
    X, _ = kinds(6, 30, gap=1.0)
    found = silhouette(X, 7, normalize=False, seed=4, starts=10)
    assert found == pytest.approx(naive_silhouette(X, k_means(X, 7, seed=4).labels_))
    assert 0 < found < 1


def test_clusters_that_were_found_are_judged_as_they_are() -> None:
    X, _ = kinds(6, 30, gap=1.0)
    found = find_clusters(X, 7, normalize=False, seed=4)
    assert separation_of(found, X) == pytest.approx(naive_silhouette(X, found.assign(X)[0]))


def test_a_handful_of_rows_has_no_clusters() -> None:
    X, _ = kinds(3, 16)
    assert separation(X[:40], normalize=False) == 0
    assert silhouette(np.ones((20, 3)), 4, normalize=False, seed=0, starts=1) == -1


def test_the_same_seed_gives_the_same_separation() -> None:
    X = blob(3000, 6)
    assert separation(X, normalize=True, seed=1) == separation(X, normalize=True, seed=1)
    assert separation(X, normalize=True, seed=1) != separation(X, normalize=True, seed=2)


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
    monkeypatch.setattr(module, "_CHOICE_ROWS", 200)
    seen = []

    def silhouette(rows: Array, clusters: int, **_: object) -> float:
        seen.append(len(rows))
        return float(clusters == 8)

    monkeypatch.setattr(module, "silhouette", silhouette)
    assert choose_clusters(X, normalize=False) == 24
    assert set(seen) == {200}


def test_silhouettes_are_taken_without_all_distances_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHOICES", (2,))
    X = blob(4096, 4)
    tracemalloc.start()
    choose_clusters(X, normalize=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4096 * 4096 * 8 / 2
