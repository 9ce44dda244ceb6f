"""Chunked search against sorting all scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from lookdown import Cosine, Euclidean, GaussianLikelihoodRatio
from lookdown.errors import InputError, NotFittedError
from lookdown.lab.synthetic.gaussian_world import GaussianWorld
from lookdown.metrics import Metric, pairwise, ranking, top_k

X, Y = GaussianWorld.random(6).chips(150, 4, np.random.default_rng(0))
METRICS = [GaussianLikelihoodRatio(), GaussianLikelihoodRatio(indefinite="keep"), Cosine(), Euclidean()]


@pytest.mark.parametrize("metric", METRICS, ids=str)
@pytest.mark.parametrize("k", [1, 7, 100, 1000])
@pytest.mark.parametrize("rows", [16, 128, 4096])
def test_the_best_are_those_of_a_full_sort_whatever_the_blocks(
    metric: Metric, k: int, rows: int, monkeypatch: Any
) -> None:
    for name in ("_BLOCK_ROWS", "_FEWEST_ROWS", "_MOST_ROWS"):
        monkeypatch.setattr(ranking if name == "_BLOCK_ROWS" else pairwise, name, rows)
    monkeypatch.setattr(pairwise, "_BLOCK_QUERIES", 13)
    metric.fit(X, Y)
    found = top_k(metric, X[:40], X[40:], k)
    scores = metric.score(X[:40], X[40:])
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    assert found.indices.shape == (40, min(k, 560))
    np.testing.assert_array_equal(found.indices, expected)
    np.testing.assert_allclose(found.scores, np.take_along_axis(scores, expected, axis=1), atol=1e-9)


def test_a_gallery_sorted_from_worst_to_best_is_no_trap(monkeypatch: Any) -> None:
    monkeypatch.setattr(pairwise, "_MOST_ROWS", 32)
    gallery = np.linspace(100, 0, 1000)[:, None]
    found = top_k(Euclidean().fit(gallery), np.zeros((2, 1)), gallery, 5)
    np.testing.assert_array_equal(found.indices, [[999, 998, 997, 996, 995]] * 2)


def test_equal_scores_come_in_the_order_of_the_gallery() -> None:
    gallery = np.r_[np.ones((3, 2)), np.zeros((2, 2))]
    found = top_k(Euclidean().fit(gallery), np.zeros((1, 2)), gallery, 5)
    np.testing.assert_array_equal(found.indices, [[3, 4, 0, 1, 2]])


def test_an_offset_does_not_cost_recall_in_single_precision() -> None:
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(5000, 16)).astype(np.float32) + 1000
    found = top_k(Euclidean().fit(gallery), gallery[:20], gallery, 10)
    exact = gallery.astype(np.float64)
    expected = np.square(exact[:20, None] - exact).sum(axis=2).argsort(axis=1)[:, :10]
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.indices, expected, strict=True)])
    assert recall > 0.99


@pytest.mark.parametrize("k", [0, -1, 2.5, None])
def test_k_is_a_whole_number(k: Any) -> None:
    with pytest.raises(InputError, match="k must be a whole number of at least 1"):
        top_k(Euclidean().fit(X), X, X, k)


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_what_cannot_be_searched_is_named(metric: Metric) -> None:
    if isinstance(metric, Cosine | Euclidean):  # which learn nothing
        np.testing.assert_array_equal(
            top_k(clone(metric), X, X, 3).indices, top_k(clone(metric).fit(X), X, X, 3).indices
        )
    else:
        with pytest.raises(NotFittedError, match="call fit"):
            top_k(clone(metric), X, X, 3)
    metric.fit(X, Y)
    with pytest.raises(InputError, match="gallery contains NaN in row 1"):
        top_k(metric, X, np.where(np.arange(600)[:, None] == 1, np.nan, X), 3)


def test_a_long_ranking_is_scored_in_slices(monkeypatch: Any) -> None:
    metric = GaussianLikelihoodRatio().fit(X, Y)
    whole = top_k(metric, X[:40], X[40:], 560)
    monkeypatch.setattr(ranking, "_BLOCK_NUMBERS", 500)
    sliced = top_k(metric, X[:40], X[40:], 560)
    np.testing.assert_array_equal(sliced.indices, whole.indices)
    np.testing.assert_allclose(sliced.scores, whole.scores, rtol=1e-12)
