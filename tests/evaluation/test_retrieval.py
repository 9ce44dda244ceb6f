"""The whole way from embeddings to numbers, against a loop over queries, and on what a user may get wrong."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from lookdown import Cosine, Euclidean, GaussianLikelihoodRatio
from lookdown.errors import InputError
from lookdown.evaluation import Evaluation, evaluate, retrieval
from lookdown.lab.synthetic.gaussian_world import GaussianWorld

X, Y = GaussianWorld.random(6, gap=0.7).chips(12, 40, np.random.default_rng(0))
QUERY = np.arange(len(Y)) % 8 == 0
NAMES = np.array([f"class {label}" for label in Y])
BACKGROUND = (np.arange(len(Y)) % 5 == 1)[~QUERY]


def naive(
    scores: NDArray[Any], query_labels: Any, gallery_labels: Any, background: Any, k: int
) -> list[dict[str, float]]:
    """Sort, walk down the list, count; no two scores are equal."""
    rows = []
    for row, label in zip(scores, query_labels, strict=True):
        order = sorted(range(len(row)), key=lambda item: -row[item])
        flags = [gallery_labels[i] == label and not background[i] for i in order]
        relevant = sum(flags)
        found, gains = 0, 0.0
        for rank, flag in enumerate(flags, start=1):
            if flag:
                found += 1
                gains += found / rank
        rows.append(
            {
                "relevant": relevant,
                "average_precision": gains / relevant,
                "recall": sum(flags[:k]) / relevant,
                "precision": sum(flags[:k]) / k,
                "hit_rate": float(flags[0]),
            }
        )
    return rows


@pytest.mark.parametrize("block", [1, 5000, 1 << 21])
@pytest.mark.parametrize("k", [5, 50, 1000])
def test_scores_are_those_of_a_loop(k: int, block: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(retrieval, "_BLOCK_SCORES", block)
    metric = GaussianLikelihoodRatio(normalize=False).fit(X, Y)
    found = evaluate(metric, X[QUERY], NAMES[QUERY], X[~QUERY], NAMES[~QUERY], BACKGROUND, k=k)
    expected = naive(metric.score(X[QUERY], X[~QUERY]), NAMES[QUERY], NAMES[~QUERY], BACKGROUND, k)
    for name in expected[0]:
        np.testing.assert_allclose(getattr(found.queries, name), [row[name] for row in expected], rtol=1e-12)
    assert 0.1 < found.mean_average_precision < 0.9
    assert (found.k, found.gallery_size, found.background_count) == (k, (~QUERY).sum(), BACKGROUND.sum())
    assert found.queries.labels == tuple(NAMES[QUERY].tolist())
    assert found.left_out == 0


def test_mean_average_precision_is_scikit_learns() -> None:
    metric = Cosine().fit(X)
    scores = metric.score(X[QUERY], X[~QUERY])
    found = evaluate(scores, None, Y[QUERY], None, Y[~QUERY])
    expected = [average_precision_score(Y[~QUERY] == y, row) for y, row in zip(Y[QUERY], scores, strict=True)]
    np.testing.assert_allclose(found.queries.average_precision, expected, rtol=1e-12)
    assert evaluate(metric, X[QUERY], Y[QUERY], X[~QUERY], Y[~QUERY]).mean_average_precision == pytest.approx(
        np.mean(expected)
    )


def test_a_metric_that_scores_everything_the_same_gains_nothing_by_the_order_of_the_gallery() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [20, 180])
    flat = np.zeros((1, 200))
    lucky, unlucky = (evaluate(flat, None, [0], None, some) for some in (labels, labels[::-1]))
    assert lucky == unlucky
    shuffled = [
        evaluate(rng.permutation(200)[None], None, [0], None, labels).mean_average_precision for _ in range(3000)
    ]
    assert lucky.mean_average_precision == pytest.approx(np.mean(shuffled), rel=0.02)
    assert lucky.precision == pytest.approx(0.1)
    assert lucky.recall == pytest.approx(50 / 200)
    assert lucky.hit_rate == pytest.approx(0.1)


@pytest.mark.parametrize("metric", [Cosine(), Euclidean()], ids=str)
def test_embeddings_that_have_collapsed_score_like_chance(metric: Any) -> None:
    collapsed = np.tile(np.random.default_rng(0).normal(size=7), (1003, 1))
    labels = np.repeat([0, 1], [100, 903])
    first, last = (
        evaluate(metric.fit(collapsed), collapsed[:1], [0], collapsed, some) for some in (labels, 1 - labels)
    )
    chance = np.mean((1 + np.arange(1003) * 99 / 1002) / np.arange(1, 1004))  # relevant at any place, 99 others around
    assert first.mean_average_precision == pytest.approx(chance)
    assert first.precision == pytest.approx(100 / 1003)
    assert last.precision == pytest.approx(903 / 1003)


@pytest.mark.parametrize("metric", [Cosine(), GaussianLikelihoodRatio()], ids=str)
def test_the_order_of_gallery_and_queries_does_not_matter(metric: Any) -> None:
    metric.fit(X, Y)
    rng = np.random.default_rng(1)
    ask, keep = rng.permutation(QUERY.sum()), rng.permutation((~QUERY).sum())
    twice = np.r_[X[~QUERY], X[~QUERY]].round(1)  # copies, so that scores tie
    labels, marks = np.r_[Y[~QUERY], np.roll(Y[~QUERY], 1)], np.r_[BACKGROUND, BACKGROUND]
    keep = np.r_[keep, keep + len(keep)][rng.permutation(len(twice))]
    queries, asked = X[QUERY].round(1), Y[QUERY]
    scores = metric.score(queries, twice).round(3)
    found = evaluate(scores, None, asked, None, labels, marks)
    moved = evaluate(scores[ask][:, keep], None, asked[ask], None, labels[keep], marks[keep])
    np.testing.assert_allclose(moved.queries.values, found.queries.values[ask], rtol=1e-12)


def test_background_is_a_result_and_never_right_whatever_its_label() -> None:
    scores = np.array([[3.0, 2.0, 1.0]])
    found = evaluate(scores, None, ["ship"], None, ["ship", "ship", "ship"], np.array([True, False, False]))
    assert found.queries.relevant.tolist() == [2]
    assert found.mean_average_precision == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert found.hit_rate == 0
    assert found.background_count == 1


def test_unknown_labels_are_never_right_and_their_queries_are_counted() -> None:
    scores = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
    found = evaluate(scores, None, ["ship", None, "jet"], None, ["ship", None, "ship"])
    assert found.queries.relevant.tolist() == [2, 0, 0]
    assert (found.left_out, found.unlabelled) == (2, 1)
    assert found.mean_average_precision == pytest.approx((1 + 2 / 3) / 2)
    assert np.isnan(found.queries.values).sum() == 0
    assert np.isnan(found.queries.precision).tolist() == [False, True, True]


def test_precision_is_divided_by_k_even_in_a_small_gallery() -> None:
    found = evaluate(np.ones((1, 4)), None, [1], None, [1, 1, 1, 1])
    assert (found.precision, found.recall, found.mean_average_precision) == (4 / 50, 1, 1)


def test_a_chip_that_is_in_the_gallery_does_not_find_itself() -> None:
    metric = Euclidean().fit(X)
    names = np.array([f"chip {i}" for i in range(len(X))])
    found = evaluate(metric, X, Y, X, Y, query_ids=names, gallery_ids=names)
    expected = []
    for i in range(0, len(X), 37):
        others = np.arange(len(X)) != i
        alone = evaluate(metric.score(X[i : i + 1], X[others]), None, Y[i : i + 1], None, Y[others])
        expected.append(alone.mean_average_precision)
    np.testing.assert_allclose(found.queries.average_precision[::37], expected, rtol=1e-9)
    assert found.queries.relevant.tolist() == [39] * len(X)
    assert found.queries.ids == tuple(names.tolist())
    naive_use = evaluate(metric, X, Y, X, Y)
    assert naive_use.hit_rate == 1 > found.hit_rate
    twins = evaluate(
        np.array([[3.0, 2.0, 1.0]]), None, ["a"], None, ["a", "a", "a"], query_ids=[7], gallery_ids=[7, 7, 1]
    )
    assert twins.queries.relevant.tolist() == [1]
    pair = evaluate(np.eye(2)[:, :1], None, ["a", "a"], None, ["a"], query_ids=[1, 2], gallery_ids=[1])
    assert pair.queries.relevant.tolist() == [0, 1]  # nothing but itself, and something
    assert twins.hit_rate == 1


def test_memory_does_not_grow_with_the_number_of_queries(monkeypatch: Any) -> None:
    monkeypatch.setattr(retrieval, "_BLOCK_SCORES", 1 << 16)
    rng = np.random.default_rng(0)
    gallery, labels = rng.normal(size=(4000, 4)), rng.integers(10, size=4000)
    metric = Euclidean().fit(gallery)
    peaks = []
    for queries in (100, 1000):
        tracemalloc.start()
        evaluate(metric, gallery[:queries], labels[:queries], gallery, labels)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 1e6  # all scores would be 32 MB, those of a block are half of one
    assert peaks[1] < 5e6


def test_torch_and_lists_will_do() -> None:
    metric = Cosine().fit(X)
    plain = evaluate(metric, X[QUERY], Y[QUERY], X[~QUERY], Y[~QUERY], groups=Y[QUERY])
    scores = torch.tensor(metric.score(X[QUERY], X[~QUERY]))
    other = evaluate(scores, None, torch.tensor(Y[QUERY]), None, Y[~QUERY].tolist(), groups=Y[QUERY].tolist())
    np.testing.assert_allclose(other.queries.values, plain.queries.values)
    assert other.queries.groups == plain.queries.groups


def test_intervals_use_the_groups() -> None:
    metric = GaussianLikelihoodRatio().fit(X, Y)
    settings: tuple[Any, ...] = (metric, X[QUERY], Y[QUERY], X[~QUERY], Y[~QUERY])
    by_scene, alone = evaluate(*settings, groups=Y[QUERY]), evaluate(*settings)
    assert by_scene.mean_average_precision == alone.mean_average_precision
    widths = [found.interval().high - found.interval().low for found in (by_scene, alone)]
    assert widths[0] > 1.2 * widths[1]  # classes differ in how hard they are
    assert by_scene.queries.groups == tuple(Y[QUERY].tolist())
    assert alone.queries.groups is None


def good() -> dict[str, Any]:
    return {
        "metric_or_scores": Cosine().fit(X),
        "queries": X[:3],
        "query_labels": Y[:3],
        "gallery": X[3:],
        "gallery_labels": Y[3:],
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": X[:0], "query_labels": []}, "0 sample|0 queries"),
        ({"gallery": X[:0], "gallery_labels": []}, "0 sample|0 gallery rows"),
        (
            {"metric_or_scores": np.zeros((0, 4)), "query_labels": [], "gallery_labels": [1] * 4},
            "0 queries and 4 gallery",
        ),
        ({"metric_or_scores": np.zeros((3, 0)), "gallery_labels": []}, "3 queries and 0 gallery"),
        ({"metric_or_scores": np.zeros((2, 477))}, "query_labels has 3 labels for 2 rows"),
        ({"metric_or_scores": np.zeros((3, 9))}, "gallery_labels has 477 labels for 9 rows"),
        ({"metric_or_scores": np.full((3, 477), np.nan)}, "score of query 0 and gallery row 0 is NaN"),
        ({"query_labels": None}, "query_labels is missing"),
        ({"query_labels": ["0", "0", "0"]}, "query_labels are strings but gallery_labels are numbers"),
        ({"query_labels": [99, None, 98]}, "none of the 3 queries has a relevant item"),
        ({"background": np.ones(477, dtype=bool)}, "none of the 3 queries has a relevant item"),
        ({"background": np.ones(3, dtype=bool)}, "background must be 477 booleans"),
        ({"groups": [1, 2]}, "groups has 2 labels for 3 rows"),
        ({"groups": ["a", None, "b"]}, "groups has labels of type NoneType, str"),
        ({"query_ids": [1, 2, 3]}, "give both or neither"),
        ({"query_ids": [1, 2], "gallery_ids": range(477)}, "query_ids has 2 labels for 3 rows"),
        (
            {"query_ids": ["1", "2", "3"], "gallery_ids": range(477)},
            "query_ids are strings but gallery_ids are numbers",
        ),
        ({"k": 0}, "k must be a whole number"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(change: dict[str, Any], message: str) -> None:
    assert isinstance(evaluate(**good()), Evaluation)
    with pytest.raises(InputError, match=message):
        evaluate(**(good() | change))
