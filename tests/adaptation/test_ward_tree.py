"""Ward's tree and its cuts, against merges made one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from tests.adaptation.targets import Array, Labels, kinds, loop_covariances, on_sphere
from tests.adaptation.test_separation import naive_silhouette

from lookdown.adaptation import AUTO_OF_DIFFERENCES, AdaptationSettings, adapt, adaptation, ward_tree
from lookdown.adaptation.k_means import mapped
from lookdown.adaptation.pseudo_labels import Covariances, pseudo_moments
from lookdown.adaptation.ward_tree import LEVELS, find_tree
from lookdown.errors import InputError
from lookdown.metrics import Cosine, GaussianLikelihoodRatio, MixtureLikelihoodRatio

TREE = AdaptationSettings(levels=LEVELS)


def merged(points: Array, count: int) -> Labels:
    """Merge the two clusters whose union adds least to the squares about the means, until so many are left."""
    clusters = [[row] for row in range(len(points))]

    def cost(one: Sequence[int], other: Sequence[int]) -> float:
        gap = points[list(one)].mean(axis=0) - points[list(other)].mean(axis=0)
        return float(len(one) * len(other) / (len(one) + len(other)) * gap @ gap)

    while len(clusters) > count:
        i, j = min(combinations(range(len(clusters)), 2), key=lambda pair: cost(clusters[pair[0]], clusters[pair[1]]))
        clusters[i] += clusters.pop(j)
    labels = np.empty(len(points), np.int64)
    for name, rows in enumerate(clusters):
        labels[rows] = name
    return labels


def assert_same_clusters(found: Labels, wanted: Labels) -> None:
    np.testing.assert_array_equal(found[:, None] == found, wanted[:, None] == wanted)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_every_cut_is_what_merging_one_by_one_leaves(normalize: bool, centred: bool) -> None:
    X, _ = kinds(4, 12, gap=1.5, seed=3)
    X = X + 4
    points = on_sphere(X) if normalize else X
    if centred and normalize:
        points = on_sphere(points - points.mean(axis=0))
    found = find_tree(X, 2, (3, 4), normalize=normalize, centred=centred)
    finest = found.assign(X)[0]
    assert len(found.cuts) == 3
    for cut, count in zip(found.cuts, (2, 3, 4), strict=True):
        assert_same_clusters(cut[finest], merged(points, count))
    assert (found.count, found.description) == (2, "2 to 4 clusters")


def test_the_coarsest_cut_is_the_one_that_stands_apart_best() -> None:
    X, y = kinds(6, 15, gap=6.0, seed=1)
    found = find_tree(X, "auto", normalize=False)
    labels = [merged(X, level) for level in (4, 6, 8)]
    best = int(np.argmax([naive_silhouette(X, each) for each in labels]))
    assert found.count == (4, 6, 8)[best] == 6
    assert_same_clusters(found.cuts[0][found.assign(X)[0]], y)
    assert [int(cut.max()) + 1 for cut in found.cuts] == [6, 8], "clusters have ten chips on average, at least"
    with pytest.raises(InputError, match="39 images are too few for 4 clusters; give 40 or more"):
        find_tree(X[:39], "auto", normalize=False)


def test_copies_of_images_do_not_pass_for_clusters() -> None:
    X, _ = kinds(6, 20, gap=1.0, seed=1)
    once, thrice = (find_tree(rows, "auto", normalize=False).count for rows in (X, np.repeat(X, 3, axis=0)))
    assert thrice == once


@pytest.mark.parametrize("centred", [False, True])
def test_the_length_of_rows_that_are_compared_by_direction_is_of_no_matter(centred: bool) -> None:
    X, _ = kinds(5, 30, gap=1.0)
    lengths = np.exp(np.random.default_rng(0).normal(size=(len(X), 1)))
    plain, longer = (find_tree(rows, 5, (), normalize=True, centred=centred) for rows in (X, lengths * X))
    assert_same_clusters(longer.finest, plain.finest)


def test_a_row_that_is_not_in_the_tree_goes_where_the_nearest_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ward_tree, "TREE_ROWS", 60)
    X, y = kinds(3, 200, seed=2)
    found = find_tree(X, 3, (), normalize=False)
    assert len(found.rows.centres) == 60
    assert_same_clusters(found.assign(X)[0], y)
    for row in X[:20]:
        nearest = np.argmin([np.sum((row - other) ** 2) for other in found.rows.centres])
        assert found.assign(row[None])[0] == found.finest[nearest]


def test_a_row_in_the_centre_has_no_direction_and_does_no_harm() -> None:
    rows = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0]])
    seen = mapped(rows, True, None, rows[0])
    assert np.array_equal(seen[0], [0, 0, 0])
    np.testing.assert_allclose(seen[1:], on_sphere(rows[1:] - rows[0]))


@pytest.mark.parametrize("weighting", ["pairs", "classes"])
def test_covariances_are_the_mean_over_cuts_of_those_of_all_pairs(weighting: str) -> None:
    X, _ = kinds(4, 15, gap=1.2)
    found = find_tree(X, 2, (3, 5), normalize=False)
    covariances = Covariances.of(pseudo_moments(X, found, TREE, X), weighting, found.cuts)  # type: ignore[arg-type]
    each = [loop_covariances(X, merged(X, count), weighting) for count in (2, 3, 5)]
    np.testing.assert_allclose(covariances.same, np.mean([same for same, _ in each], axis=0), rtol=1e-9)
    np.testing.assert_allclose(covariances.different, np.mean([apart for _, apart in each], axis=0), rtol=1e-9)


def test_more_images_are_counted_in_every_cut() -> None:
    X, _ = kinds(5, 60, gap=2.0)
    old = GaussianLikelihoodRatio(shrinkage=0.1).fit(*kinds(8, 10, seed=7))
    begun = adapt(old, X[:200], method=AUTO_OF_DIFFERENCES)
    more = begun.update(X[200:])
    assert isinstance(more.metric, GaussianLikelihoodRatio)
    tree = find_tree(X[:200], "auto", normalize=True, centred=True)
    finest = tree.assign(X)[0]
    each = [loop_covariances(on_sphere(X), cut[finest], "classes") for cut in tree.cuts]
    np.testing.assert_allclose(more.metric.same_covariance_, np.mean([same for same, _ in each], axis=0), rtol=1e-9)
    assert more.metric.shrinkage == "auto"
    assert more.reason.endswith("and 100 images more")


def test_pairs_of_one_array_are_taken_under_the_tree_of_the_other() -> None:
    X, _ = kinds(5, 30, gap=1.5)
    by = X + np.random.default_rng(1).normal(size=X.shape)
    made = adapt(Cosine().fit(X), X, clusters=5, method=AUTO_OF_DIFFERENCES, cluster_by=by).metric
    tree = find_tree(by, 5, normalize=True, centred=True)
    each = [loop_covariances(on_sphere(X), cut[tree.finest], "classes") for cut in tree.cuts]
    assert isinstance(made, GaussianLikelihoodRatio)
    wanted = np.mean([apart for _, apart in each], axis=0)
    np.testing.assert_allclose(made.different_covariance_, wanted, rtol=1e-9, atol=1e-12)


def test_a_later_tree_is_of_the_space_of_the_metric_so_far() -> None:
    X, _ = kinds(5, 30, gap=1.2)
    old = GaussianLikelihoodRatio(shrinkage=0.2).fit(*kinds(8, 10, seed=7))
    first = adapt(old, X, clusters=5, method=AUTO_OF_DIFFERENCES).metric
    assert isinstance(first, GaussianLikelihoodRatio)
    tree = find_tree(first.transform(X), 5, normalize=False)
    each = [loop_covariances(on_sphere(X), cut[tree.finest], "classes") for cut in tree.cuts]
    again = adapt(old, X, clusters=5, method=replace(AUTO_OF_DIFFERENCES, rounds=2)).metric
    assert isinstance(again, GaussianLikelihoodRatio)
    wanted = np.mean([same for same, _ in each], axis=0)
    np.testing.assert_allclose(again.same_covariance_, wanted, rtol=1e-8, atol=1e-12)


def test_true_labels_count_as_the_source_has_it_beside_clusters_that_count_alike() -> None:
    X, y = kinds(5, 30, gap=1.5)
    labels = np.where(np.arange(150) < 60, y, -1)
    old = GaussianLikelihoodRatio(shrinkage=0.2).fit(*kinds(8, 10, seed=7))
    pseudo = adapt(old, X, clusters=5, method=AUTO_OF_DIFFERENCES).metric
    found = adapt(old, X, clusters=5, method=AUTO_OF_DIFFERENCES, labels=labels).metric
    true = loop_covariances(on_sphere(X[:60]), y[:60], "pairs")[0]
    share = 12 / (12 + 60 - 5)
    assert isinstance(pseudo, GaussianLikelihoodRatio)
    assert isinstance(found, GaussianLikelihoodRatio)
    wanted = (1 - share) * true + share * pseudo.same_covariance_
    np.testing.assert_allclose(found.same_covariance_, wanted, rtol=1e-9, atol=1e-12)


def test_a_mixture_is_adapted_by_k_means_clustered_twice() -> None:
    X, _ = kinds(6, 40)
    old = MixtureLikelihoodRatio(1, 2, pairs=300, seed=5).fit(*kinds(8, 10, seed=7))
    one = adapt(old, X, clusters=6).metric
    other = adapt(old, X, clusters=6, method=AdaptationSettings(rounds=2)).metric
    np.testing.assert_array_equal(one.score(X[:5], X), other.score(X[:5], X))


def test_no_more_clusters_than_the_tree_has_rows_to_tell_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = kinds(3, 50)
    monkeypatch.setattr(ward_tree, "TREE_ROWS", 60)
    monkeypatch.setattr(adaptation, "TREE_ROWS", 60)
    assert adapt(Cosine().fit(X), X, clusters=59).clusters == 59
    with pytest.raises(InputError, match="from 2 to 59 for 60 images, got 60"):
        adapt(Cosine().fit(X), X, clusters=60)
