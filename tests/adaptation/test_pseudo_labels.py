"""Covariances under pseudo-labels against loops: all rows, the nearest ones, and rows in several clusters."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from tests.adaptation.targets import kinds, loop_covariances, on_sphere

from lookdown.adaptation import CPLFPA, AdaptationSettings, pseudo_labels
from lookdown.adaptation.k_means import Clusters, find_clusters
from lookdown.adaptation.pseudo_labels import Covariances, SoftMoments, nearest_rows, pseudo_moments, soft_covariances
from lookdown.errors import InputError
from lookdown.metrics import PairMoments
from lookdown.metrics.pair_moments import Weighting


@pytest.mark.parametrize("weighting", ["pairs", "classes"])
def test_covariances_are_those_of_all_pairs(weighting: Weighting) -> None:
    X, y = kinds(4, 8)
    found = Covariances.of(PairMoments.of(X[:30], y[:30]), weighting)
    same, different = loop_covariances(X[:30], y[:30], weighting)
    np.testing.assert_allclose(found.same, same, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.different, different, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.mean, X[:30].mean(axis=0))
    assert found.free == (30 - 4, 30 - 1)


def test_a_blend_is_a_weighted_mean() -> None:
    X, y = kinds(4, 8)
    own = Covariances.of(PairMoments.of(X, y), "pairs")
    found = own.blended(2 * np.eye(6), 5 * np.eye(6), 0.3)
    np.testing.assert_allclose(found.same, 0.7 * own.same + 0.6 * np.eye(6))
    np.testing.assert_allclose(found.different, 0.7 * own.different + 1.5 * np.eye(6))
    assert found.free == own.free
    assert found.mean is own.mean


@pytest.mark.parametrize("block", [7, 1000])
def test_moments_are_those_of_rows_labelled_by_the_nearest_centre(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pseudo_labels, "_BLOCK_ROWS", block)
    X, _ = kinds(5, 12, gap=1.5)
    clusters = find_clusters(X, 5, normalize=True)
    points = on_sphere(X)
    labels = np.array([np.argmin([sum((row - centre) ** 2) for centre in clusters.centres]) for row in points])
    found = pseudo_moments(X, clusters, CPLFPA, X).covariances()
    np.testing.assert_allclose(found, loop_covariances(points, labels), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.99, 1])
def test_the_nearest_rows_of_each_cluster_are_marked(share: float) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(5, size=80) * 2  # some numbers are not taken
    labels[labels == 8] = 6
    labels[3] = 8  # a cluster of one
    distances = np.round(rng.random(80), 1)  # with ties
    expected = np.zeros(80, bool)
    for cluster in set(labels.tolist()):
        members = [row for row in range(80) if labels[row] == cluster]
        members.sort(key=lambda row: (distances[row], row))
        expected[members[: max(2, math.ceil(share * len(members)))]] = True
    np.testing.assert_array_equal(nearest_rows(labels, distances, share), expected)


@pytest.mark.parametrize("block", [7, 1000])
def test_only_the_nearest_rows_count(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pseudo_labels, "_BLOCK_ROWS", block)
    X, _ = kinds(5, 12, gap=1.5)
    clusters = find_clusters(X, 5, normalize=False)
    labels, distances = clusters.assign(X)
    rows = nearest_rows(labels, distances, 0.4)
    assert 10 <= rows.sum() < 40
    found = pseudo_moments(X, clusters, AdaptationSettings(nearest=0.4), X)
    assert found.samples == rows.sum()
    np.testing.assert_allclose(found.covariances(), loop_covariances(X[rows], labels[rows]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("normalize", [False, True])
def test_soft_shares_fall_with_the_squared_distance(normalize: bool) -> None:
    X, _ = kinds(4, 10, gap=1.5)
    clusters = find_clusters(X, 4, normalize=normalize)
    points = on_sphere(X) if normalize else X
    apart = np.array([[sum((row - centre) ** 2) for centre in clusters.centres] for row in points])
    temperature = 0.7 * np.mean([min(row) for row in apart])
    shares = np.array([[math.exp(-value / temperature) for value in row] for row in apart])
    shares /= shares.sum(axis=1, keepdims=True)
    found = soft_covariances(X, clusters, AdaptationSettings(softness=0.7), X)
    same, different = SoftMoments(points, shares).covariances()
    np.testing.assert_allclose(found.same, same, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.different, different, rtol=1e-9, atol=1e-12)
    assert found.free == (40 - 4, 40 - 1)


def test_hardly_soft_is_hard() -> None:
    X, _ = kinds(4, 10)
    clusters = find_clusters(X, 4, normalize=False)
    soft = soft_covariances(X, clusters, AdaptationSettings(softness=1e-3), X)
    hard = Covariances.of(pseudo_moments(X, clusters, CPLFPA, X), "pairs")
    np.testing.assert_allclose(soft.same, hard.same, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(soft.different, hard.different, rtol=1e-9, atol=1e-9)


def test_a_cluster_without_a_share_is_left_out() -> None:
    X, _ = kinds(2, 10)
    far = Clusters(np.vstack([X[:2], np.full((1, 6), 1e4)]), normalize=False)
    near = Clusters(X[:2], normalize=False)
    found, expected = (soft_covariances(X, clusters, AdaptationSettings(softness=1), X) for clusters in (far, near))
    np.testing.assert_allclose(found.same, expected.same, rtol=1e-9)
    assert found.free == expected.free == (18, 19)


def test_rows_in_the_centres_cannot_be_shared() -> None:
    X = np.eye(4).repeat(5, axis=0)
    with pytest.raises(InputError, match="softness has no scale; use softness=0"):
        soft_covariances(X, Clusters(X[::5], normalize=False), AdaptationSettings(softness=1), X)


def test_a_pair_is_the_same_as_far_as_both_share_a_cluster() -> None:
    X, _ = kinds(4, 8)
    X += 100  # far from the origin nothing is lost
    shares = np.random.default_rng(1).dirichlet([0.5, 1, 2], size=len(X))
    sums, weights = np.zeros((2, 6, 6)), np.zeros(2)
    for i, j in combinations(range(len(X)), 2):
        same = sum(shares[i, k] * shares[j, k] for k in range(3))
        for hypothesis, weight in enumerate((same, 1 - same)):
            sums[hypothesis] += weight * np.outer(X[i] - X[j], X[i] - X[j])
            weights[hypothesis] += weight
    moments = SoftMoments(X, shares)
    np.testing.assert_allclose(moments.covariances(), sums / weights[:, None, None], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moments.mean, X.mean(axis=0))


def test_shares_of_zero_and_one_are_labels() -> None:
    X, y = kinds(4, 8)
    found = SoftMoments(X.astype(np.float32), np.eye(4)[y]).covariances()
    np.testing.assert_allclose(
        found, PairMoments.of(X.astype(np.float32), y).covariances("pairs"), rtol=1e-9, atol=1e-12
    )


def test_clusters_of_one_chip_each_make_no_same_pair() -> None:
    X, _ = kinds(1, 4)
    with pytest.raises(InputError, match="no two chips share a cluster; use fewer clusters"):
        SoftMoments(X, np.eye(4)).covariances()
