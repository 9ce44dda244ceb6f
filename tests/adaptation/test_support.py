"""Clusters stand apart where there are kinds, and not where there is one cloud."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.adaptation.targets import blob, k_means, kinds

from lookdown.adaptation.clustering import find_clusters
from lookdown.adaptation.support import ENOUGH, separation, separation_of, silhouette


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
