"""Shards adapt a metric as one array does, and no more rows are fetched than a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.adaptation.targets import blob, kinds

from lookdown.adaptation import AdaptationSettings, Shards, adapt, k_means, separation, ward_tree
from lookdown.adaptation.adaptation import Adaptation
from lookdown.adaptation.shards import over_shards
from lookdown.errors import InputError
from lookdown.metrics import Cosine, GaussianLikelihoodRatio, Metric, MixtureLikelihoodRatio
from lookdown.metrics.inputs import Embeddings

T = TypeVar("T")


class Split(Shards):
    """An array, cut at some rows."""

    def __init__(self, X: Embeddings, *cuts: int) -> None:
        self.parts = np.split(X, cuts)
        self.shape, self.dtype = (X.shape[0], X.shape[1]), X.dtype
        self.fetched = 0

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> Embeddings:
        found = np.concatenate(self.parts)[rows]
        self.fetched = max(self.fetched, len(found))
        return found

    def map(self, work: Callable[[Embeddings, int], T]) -> Iterator[T]:
        begin = 0
        for part in self.parts:
            yield work(part, begin)
            begin += len(part)


def source(kind: type[Metric] = GaussianLikelihoodRatio, **options: Any) -> Metric:
    X, y = kinds(8, 30, seed=5)
    return kind(**options).fit(X, y)


def assert_same(found: Adaptation, whole: Adaptation) -> None:
    assert (found.clusters, found.helped, found.reason) == (whole.clusters, whole.helped, whole.reason)
    x = np.random.default_rng(1).normal(size=(9, whole.metric.n_features_in_))
    np.testing.assert_allclose(found.metric.score(x, x), whole.metric.score(x, x), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(
    "method", ["auto", "cplfpa", AdaptationSettings(nearest=0.6), AdaptationSettings(softness=0.5)], ids=str
)
@pytest.mark.parametrize("labelled", [False, True])
def test_shards_adapt_as_one_array_does(method: Any, normalize: bool, labelled: bool) -> None:
    X, y = kinds(6, 60, seed=3)
    labels = [kind if place % 9 == 0 else None for place, kind in enumerate(y.tolist())] if labelled else None
    metric = source(normalize=normalize)
    whole = adapt(metric, X, method=method, labels=labels)
    for cuts in ((), (1, 100, 101, 250), (180,)):
        assert_same(adapt(metric, Split(X, *cuts), method=method, labels=labels), whole)


@pytest.mark.parametrize("method", ["auto", "cplfpa"])
def test_no_more_than_a_sample_is_fetched(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k_means, "SAMPLE_ROWS", 120)
    monkeypatch.setattr(ward_tree, "TREE_ROWS", 120)
    monkeypatch.setattr(separation, "_CHOICE_ROWS", 120)
    for name in ("_ROWS", "_ROWS_OF_CLUSTERS"):
        monkeypatch.setattr(separation, name, 120)
    X, _ = kinds(6, 60, seed=3)
    shards = Split(X, 100, 200)
    assert_same(adapt(source(), shards, method=method), adapt(source(), X, method=method))
    assert shards.fetched == 120


def test_other_metrics_and_more_images() -> None:
    X, _ = kinds(6, 60, seed=3)
    for metric in (source(Cosine), source(MixtureLikelihoodRatio, different=2)):
        assert_same(adapt(metric, Split(X, 90), clusters=6), adapt(metric, X, clusters=6))
    metric, (more, _) = source(), kinds(6, 20, seed=4)
    found = adapt(metric, Split(X, 90), clusters=6).update(Split(more, 7))
    assert_same(found, adapt(metric, X, clusters=6).update(more))


def test_a_cloud_and_copies_of_one_image_keep_the_source_as_before() -> None:
    old = Cosine().fit(np.ones((1, 16)))
    for X in (blob(300, 16), np.ones((200, 16))):
        whole = adapt(old, X)
        assert not whole.helped
        assert_same(adapt(old, Split(X, 60, 120)), whole)
    almost = np.ones((200, 6))
    almost[-1, 0] = 2
    assert "too few" not in adapt(source(), Split(almost, 100), clusters=2).reason


def test_what_cannot_be_used_is_refused_by_its_row() -> None:
    X, _ = kinds()
    bad = X.copy()
    bad[120] = 0
    with pytest.raises(InputError, match=r"in the part from row 100 on, X has a zero vector in row 20"):
        adapt(source(), Split(bad, 100))
    bad[120] = np.nan
    with pytest.raises(InputError, match=r"in the part from row 100 on, X contains NaN in row 20"):
        adapt(source(), Split(bad, 100))
    with pytest.raises(InputError, match="6 features as input"):
        adapt(source(), Split(np.ones((90, 5)), 50))
    with pytest.raises(InputError, match="omit `cluster_by`"):
        adapt(source(), Split(X, 50), cluster_by=X)


def test_an_array_is_one_shard() -> None:
    assert [*over_shards(np.ones((5, 2)), lambda rows, begin: (len(rows), begin))] == [(5, 0)]
