"""Clusters found by steadier embeddings than those that are compared."""

from __future__ import annotations

import numpy as np
import pytest
from tests.adaptation.targets import Array, Labels, k_means, kinds, loop_covariances, mean_average_precision, on_sphere

from lookdown.adaptation import CPLFPA, AdaptationSettings, adapt
from lookdown.errors import InputError
from lookdown.metrics import GaussianLikelihoodRatio, MixtureLikelihoodRatio


def source() -> GaussianLikelihoodRatio:
    X, y = kinds(8, 10, 6, seed=7)
    return GaussianLikelihoodRatio(shrinkage=0.1).fit(X, y)


def turned(seed: int = 0) -> tuple[Array, Array, Labels]:
    """Return four views of chips whose heading shows in two strong directions, (views, chips, d), and their kinds."""
    X, y = kinds(6, 40, 6, gap=1.5, seed=seed)
    rng = np.random.default_rng(seed)
    heading = rng.uniform(0, 2 * np.pi, len(X))
    views = np.repeat(X[None], 4, axis=0)
    for turn in range(4):
        views[turn, :, 0] += 4 * np.cos(heading + turn * np.pi / 2)
        views[turn, :, 1] += 4 * np.sin(heading + turn * np.pi / 2)
    return views[0], views.mean(axis=0), y


def test_pairs_of_one_array_are_taken_under_the_clusters_of_the_other() -> None:
    X, by, _ = turned()
    made = adapt(source(), X, clusters=6, method=CPLFPA, cluster_by=by, seed=3)
    labels = k_means(on_sphere(by), 6, seed=3).labels_
    same, different = loop_covariances(on_sphere(X), labels)
    assert isinstance(made.metric, GaussianLikelihoodRatio)
    np.testing.assert_allclose(made.metric.same_covariance_, same, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(made.metric.different_covariance_, different, rtol=1e-9, atol=1e-12)


def test_a_heading_that_hides_the_kinds_is_seen_through() -> None:
    X, by, y = turned()
    plain, steady = (adapt(source(), X, clusters=12, method="auto", cluster_by=some).metric for some in (None, by))
    assert mean_average_precision(steady, X, y) > mean_average_precision(plain, X, y) + 0.1


def test_the_number_of_clusters_is_that_of_the_steady_ones() -> None:
    X, by, _ = turned()
    assert adapt(source(), X, cluster_by=by).clusters == adapt(source(), by).clusters
    assert adapt(source(), X, cluster_by=by).separation == adapt(source(), by).separation


def test_more_images_go_to_the_clusters_that_their_steady_embeddings_lie_in() -> None:
    X, by, _ = turned()
    half = len(X) // 2
    begun = adapt(source(), X[:half], clusters=6, method=CPLFPA, cluster_by=by[:half])
    by_steady = begun.update(X[half:], cluster_by=by[half:])
    labels = k_means(on_sphere(by[:half]), 6, seed=0).predict(on_sphere(by))
    same, _ = loop_covariances(on_sphere(X), labels)
    assert isinstance(by_steady.metric, GaussianLikelihoodRatio)
    np.testing.assert_allclose(by_steady.metric.same_covariance_, same, rtol=1e-9, atol=1e-12)


def test_soft_clusters_and_mixtures_take_them_too() -> None:
    X, by, _ = turned()
    soft = AdaptationSettings(softness=1.0)
    with_them, without = (adapt(source(), X, clusters=6, method=soft, cluster_by=some) for some in (by, None))
    assert not np.allclose(with_them.metric.score(X[:5], X), without.metric.score(X[:5], X))
    old = MixtureLikelihoodRatio(1, 2, pairs=300, seed=5).fit(*kinds(8, 10, 6, seed=7))
    made = adapt(old, X, clusters=6, method="cplfpa", cluster_by=by, seed=3).metric
    labels = k_means(on_sphere(by), 6, seed=3).labels_
    expected = MixtureLikelihoodRatio(1, 2, pairs=300, seed=5).fit(X, labels)
    np.testing.assert_allclose(made.score(X[:5], X), expected.score(X[:5], X))


def test_what_does_not_fit_is_refused() -> None:
    X, by, _ = turned()
    with pytest.raises(InputError, match="cluster_by has 239 rows and X has 240"):
        adapt(source(), X, cluster_by=by[1:])
    with pytest.raises(InputError, match="6"):
        adapt(source(), X, cluster_by=by[:, :5])
    by[7] = 0
    with pytest.raises(InputError, match="7"):
        adapt(source(), X, cluster_by=by)
