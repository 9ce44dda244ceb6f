"""Ward's tree and its cuts, against merges made one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from tests.adaptation.targets import Array, Labels, kinds, loop_covariances, on_sphere
from tests.adaptation.test_support import naive_silhouette

from lookdown.adaptation import AUTO, Settings, adapt, hierarchy
from lookdown.adaptation.hierarchy import LEVELS, find_hierarchy
from lookdown.adaptation.pseudo_labels import Covariances, pseudo_moments
from lookdown.metrics import GaussianLikelihoodRatio

LEAST = Settings(levels=LEVELS)


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
    points = X - X.mean(axis=0) if centred else X
    points = on_sphere(points) if normalize else points
    found = find_hierarchy(X, 2, (3, 4), normalize=normalize, centred=centred)
    finest = found.assign(X)[0]
    assert len(found.cuts) == 3
    for cut, count in zip(found.cuts, (2, 3, 4), strict=True):
        assert_same_clusters(cut[finest], merged(points, count))
    assert (found.count, found.told) == (2, "2 to 4 clusters")


def test_the_coarsest_cut_is_the_one_that_stands_apart_best() -> None:
    X, y = kinds(6, 15, gap=6.0, seed=1)
    found = find_hierarchy(X, "auto", normalize=False)
    labels = [merged(X, level) for level in (4, 6, 8)]
    best = int(np.argmax([naive_silhouette(X, each) for each in labels]))
    assert found.count == (4, 6, 8)[best] == 6
    assert_same_clusters(found.cuts[0][found.assign(X)[0]], y)
    assert [int(cut.max()) + 1 for cut in found.cuts] == [6, 8], "clusters have ten chips on average, at least"
    assert find_hierarchy(X[:25], "auto", normalize=False).told == "2 clusters"


def test_a_row_that_is_not_in_the_tree_goes_where_the_nearest_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hierarchy, "TREE_ROWS", 60)
    X, y = kinds(3, 200, seed=2)
    found = find_hierarchy(X, 3, (), normalize=False)
    assert len(found.rows.centres) == 60
    assert_same_clusters(found.assign(X)[0], y)
    for row in X[:20]:
        nearest = np.argmin([np.sum((row - other) ** 2) for other in found.rows.centres])
        assert found.assign(row[None])[0] == found.finest[nearest]


def test_a_row_in_the_centre_has_no_direction_and_does_no_harm() -> None:
    X, _ = kinds(4, 15, seed=5)
    whole = np.concatenate([X, X.mean(axis=0, keepdims=True)])
    labels = find_hierarchy(whole, 4, (), normalize=True, centred=True).assign(whole)[0]
    assert len(np.unique(labels)) == 4


@pytest.mark.parametrize("weighting", ["pairs", "classes"])
def test_covariances_are_the_mean_over_cuts_of_those_of_all_pairs(weighting: str) -> None:
    X, _ = kinds(4, 15, gap=1.2)
    found = find_hierarchy(X, 2, (3, 5), normalize=False)
    covariances = Covariances.of(pseudo_moments(X, found, LEAST, X), weighting, found.cuts)  # type: ignore[arg-type]
    each = [loop_covariances(X, merged(X, count), weighting) for count in (2, 3, 5)]
    np.testing.assert_allclose(covariances.same, np.mean([same for same, _ in each], axis=0), rtol=1e-9)
    np.testing.assert_allclose(covariances.different, np.mean([apart for _, apart in each], axis=0), rtol=1e-9)


def test_more_images_are_counted_in_every_cut() -> None:
    X, _ = kinds(5, 60, gap=2.0)
    old = GaussianLikelihoodRatio(shrinkage=0.1).fit(*kinds(8, 10, seed=7))
    begun = adapt(old, X[:200], method=AUTO)
    more = begun.update(X[200:])
    assert isinstance(more.metric, GaussianLikelihoodRatio)
    tree = find_hierarchy(X[:200], "auto", normalize=True, centred=True)
    finest = tree.assign(X)[0]
    each = [loop_covariances(on_sphere(X), cut[finest], "classes") for cut in tree.cuts]
    np.testing.assert_allclose(more.metric.same_covariance_, np.mean([same for same, _ in each], axis=0), rtol=1e-9)
    assert more.metric.shrinkage == "auto"
    assert more.reason.endswith("and 100 images more")
