"""K-means against scikit-learn and a loop, far from the origin, from a sample, in blocks."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from tests.adaptation.targets import k_means, kinds, on_sphere
from tests.adaptation.test_separation import naive_silhouette

from lookdown.adaptation import CPLFPA
from lookdown.adaptation.k_means import STARTS, Clusters, all_alike, find_clusters, mean_silhouette
from lookdown.adaptation.pseudo_labels import pseudo_moments
from lookdown.metrics import PairMoments


@pytest.mark.parametrize("normalize", [False, True])
def test_clusters_are_those_of_scikit_learn(normalize: bool) -> None:
    X, _ = kinds(gap=1.5)
    expected = k_means(on_sphere(X) if normalize else X, 5, seed=3)
    assert expected.n_init == STARTS
    found = find_clusters(X, 5, normalize=normalize, seed=3)
    np.testing.assert_allclose(found.centres, expected.cluster_centers_, atol=1e-12)
    np.testing.assert_array_equal(found.assign(X)[0], expected.labels_)


@pytest.mark.parametrize("mapped", [False, True])
def test_each_row_goes_to_the_nearest_centre(mapped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lookdown.adaptation.k_means._BLOCK_ROWS", 7)  # 7 does not divide the rows
    X, _ = kinds()
    space = np.random.default_rng(1).normal(size=(6, 3)) if mapped else None
    found = find_clusters(X, 8, normalize=True, map=space)
    points = on_sphere(X) if space is None else on_sphere(X) @ space
    labels, distances = found.assign(X)
    np.testing.assert_allclose(found.mapped(X), points)
    for row, label, distance in zip(points, labels, distances, strict=True):
        apart = [sum((row - centre) ** 2) for centre in found.centres]
        assert label == np.argmin(apart)
        assert distance == pytest.approx(min(apart), abs=1e-12)


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 1e4), (np.float64, 1e9)])
def test_rows_far_from_the_origin_keep_their_clusters(dtype: Any, offset: float) -> None:
    X, _ = kinds()
    moved = (X + offset).astype(dtype)
    exact = moved.astype(np.float64) - offset
    found = find_clusters(moved, 5, normalize=False)
    np.testing.assert_array_equal(found.assign(moved)[0], k_means(moved, 5).labels_)
    nearest = np.square(exact[:, None] - (found.centres - offset)).sum(axis=2).min(axis=1)
    np.testing.assert_allclose(found.assign(moved)[1], nearest, rtol=1e-2, atol=0.1)


def test_the_data_are_not_changed() -> None:
    X, _ = kinds()
    before = X.copy()
    for normalize in (False, True):
        find_clusters(X, 5, normalize=normalize)
        np.testing.assert_array_equal(X, before)


def test_the_same_seed_gives_the_same_bits() -> None:
    X = np.random.default_rng(0).normal(size=(300, 6))
    first, again, other = (find_clusters(X, 9, normalize=True, seed=seed).centres for seed in (4, 4, 5))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_fewer_distinct_rows_than_clusters_leave_no_cluster_empty() -> None:
    X = np.random.default_rng(0).normal(size=(3, 6)).repeat(20, axis=0)
    found = find_clusters(X, 7, normalize=False)
    assert len(found.centres) == len(np.unique(found.assign(X)[0])) == 3


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_alike_up_to_rounding(normalize: bool, dtype: Any) -> None:
    row = np.random.default_rng(0).normal(size=6)
    copies = np.tile(row, (9000, 1)).astype(dtype)
    scaled = np.outer(np.linspace(0.1, 30, 9000), row).astype(dtype)
    assert all_alike(copies, normalize=normalize)
    assert all_alike(scaled, normalize=normalize) == normalize
    copies[-1, 2] *= 1.001
    assert not all_alike(copies, normalize=normalize)


def test_of_a_large_set_a_sample_is_clustered_and_every_row_assigned(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = kinds(4, 500)
    monkeypatch.setattr("lookdown.adaptation.k_means.SAMPLE_ROWS", 300)
    monkeypatch.setattr("lookdown.adaptation.k_means._BLOCK_ROWS", 128)
    seen = []

    class Spy(KMeans):  # type: ignore[misc]
        def fit(self, points: NDArray[Any]) -> Any:
            seen.append(points.copy())
            return super().fit(points)

    monkeypatch.setattr("sklearn.cluster.KMeans", Spy)
    found = find_clusters(X, 4, normalize=True, seed=2)
    assert seen[0].shape == (300, 6)
    rows = {row.tobytes() for row in np.round(on_sphere(X), 9)}
    drawn = {row.tobytes() for row in np.round(seen[0], 9)}
    assert len(drawn) == 300  # none twice
    assert drawn <= rows
    labels = found.assign(X)[0]
    assert len(labels) == 2000
    assert len({*zip(labels.tolist(), y.tolist(), strict=True)}) == 4  # each cluster is a kind


def test_a_memmap_is_assigned_in_blocks_and_has_the_moments_of_the_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookdown.adaptation.k_means.SAMPLE_ROWS", 2000)
    X = kinds(4, 25_000)[0].astype(np.float32)
    X.tofile(tmp_path / "X")
    stored = np.memmap(tmp_path / "X", np.float32, "r", shape=X.shape)
    sizes = []
    apart = Clusters.squared_distances

    def spy(self: Clusters, rows: NDArray[Any]) -> Any:
        sizes.append(len(rows))
        return apart(self, rows)

    monkeypatch.setattr(Clusters, "squared_distances", spy)
    found = find_clusters(stored, 4, normalize=True)
    moments = pseudo_moments(stored, found, CPLFPA, stored)
    assert sum(sizes) == 100_000
    assert max(sizes) == 8192
    points = on_sphere(X.astype(np.float64))
    nearest = np.square(points[:, None] - found.centres).sum(axis=2).argmin(axis=1)
    expected = PairMoments.of(X, nearest, normalize=True)
    np.testing.assert_array_equal(moments.counts, expected.counts)
    np.testing.assert_allclose(moments.means, expected.means, atol=1e-12)
    np.testing.assert_allclose(moments.scatters, expected.scatters, rtol=1e-9, atol=1e-9)


def test_memory_stays_below_that_of_a_large_set() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 64)).astype(np.float32)
    X += 5 * rng.normal(size=(6, 64)).astype(np.float32)[rng.integers(6, size=len(X))]
    tracemalloc.start()
    pseudo_moments(X, find_clusters(X, 6, normalize=True), CPLFPA, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.8 * X.nbytes


def test_the_silhouette_is_the_mean_over_rows() -> None:
    X, y = kinds(4, 20, gap=1.0)
    assert mean_silhouette(X, y) == pytest.approx(naive_silhouette(X, y))


def test_one_cluster_or_one_a_row_cannot_be_compared() -> None:
    X, _ = kinds(4, 5)
    assert mean_silhouette(X, np.zeros(20, np.int64)) == -1
    assert mean_silhouette(X, np.arange(20)) == -1
