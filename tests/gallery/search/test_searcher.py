"""One search: several examples, counter-examples, merging, expansion, re-ranking, rates, each against its formula."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, logit
from tests.gallery.galleries import kinds, vector_gallery

from lookdown import Cosine, Gallery, GaussianLikelihoodRatio, Where
from lookdown.errors import NotCalibratedError
from lookdown.gallery.search.query import expansion_weights
from lookdown.gallery.search.reranking import rerank
from lookdown.gallery.search.searcher import Rates, scaled


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Gallery, NDArray[np.float32], list[dict[str, Any]]]:
    gallery, X, rows = vector_gallery(tmp_path_factory.mktemp("searching") / "g", 400)
    gallery.calibrate()
    return gallery, X, rows


def ratio(gallery: Gallery) -> GaussianLikelihoodRatio:
    metric = gallery._registry.load(gallery.metric)
    assert isinstance(metric, GaussianLikelihoodRatio)
    return metric


def ids(rows: list[dict[str, Any]], scores: NDArray[np.float64], k: int) -> list[str]:
    return [rows[row]["id"] for row in np.argsort(-scores, kind="stable")[:k]]


def test_several_examples_score_by_their_mean(made: Any) -> None:
    gallery, X, rows = made
    examples = [*kinds(40, seed=0)[0][[3, 13, 23]]]
    scores = ratio(gallery).score(np.array(examples), X).mean(axis=0)
    found = gallery.search(examples, k=30)
    assert [hit.id for hit in found.hits] == ids(rows, scores, 30)
    np.testing.assert_allclose([hit.score for hit in found.hits], np.sort(scores)[::-1][:30], atol=1e-3)
    assert found.query == "3 examples"
    assert not any(hit.false_alarm_rate is None or hit.false_alarm_rate.supported for hit in found.hits)
    assert "one example" in found.notes[0]


def test_counter_examples_take_away_what_they_explain_better(made: Any) -> None:
    gallery, X, rows = made
    metric = ratio(gallery)
    query, unlike = X[4], X[[14, 26]]  # one of its own kind, one of another
    scores = metric.score(query[None], X)[0] - np.logaddexp(0, metric.score(unlike, X).max(axis=0))
    for k in (1, 10, 150, 400):
        found = gallery.search(query, k=k, counter_examples=[*unlike])
        assert [hit.id for hit in found.hits] == ids(rows, scores, k), k
    np.testing.assert_allclose([hit.score for hit in found.hits], np.sort(scores)[::-1], atol=1e-3)
    accepted = gallery.search(query, false_alarm_rate=0.1, counter_examples=[*unlike])
    assert accepted.threshold is not None
    assert len(accepted) == (scores >= accepted.threshold).sum()
    plain = gallery.search(query, false_alarm_rate=0.1)
    assert {hit.id for hit in accepted.hits} <= {hit.id for hit in plain.hits}
    assert all(hit.score <= plain_hit for hit, plain_hit in zip(
        accepted.hits, sorted((hit.score for hit in plain.hits), reverse=True), strict=False
    ))  # fmt: skip


def test_examples_that_are_chips_are_not_found_again(made: Any) -> None:
    gallery, X, rows = made
    found = gallery.search([rows[0]["id"], rows[10]["id"]], k=400, counter_examples=rows[1]["id"])
    assert {hit.id for hit in found.hits} == {row["id"] for row in rows} - {rows[place]["id"] for place in (0, 10, 1)}
    assert found.rows_searched == 397
    assert gallery.search(rows[0]["id"], where=Where(label=rows[0]["label"])).rows_searched == (
        sum(row["label"] == rows[0]["label"] for row in rows) - 1
    )
    assert gallery.search(X[0], k=1).hits[0].id == rows[0]["id"]


def test_expected_false_hits_are_rate_times_rows(made: Any) -> None:
    gallery, X, _ = made
    found = gallery.search(X[2], k=25)
    assert found.expected_false_hits is not None
    last = ratio(gallery).false_alarm_rate(found.hits[-1].score)
    assert float(found.expected_false_hits) == pytest.approx(400 * float(last))
    assert found.expected_false_hits.low == pytest.approx(400 * last.low)
    rates = [hit.false_alarm_rate for hit in found.hits]
    assert all(first <= second for first, second in itertools.pairwise(rates) if first is not None)


def test_posteriors_follow_from_the_prior_that_is_stated(made: Any) -> None:
    gallery, X, _ = made
    for prior in (0.001, 0.3):
        found = gallery.search(X[2], k=25, prior=prior)
        assert found.prior == prior
        wanted = ratio(gallery).posterior([hit.score for hit in found.hits], prior)
        np.testing.assert_allclose([hit.posterior or 0 for hit in found.hits], wanted, rtol=1e-4)


def test_the_best_hits_join_the_query(made: Any) -> None:
    gallery, X, rows = made
    metric = ratio(gallery)
    query = kinds(40, seed=3)[0][7]
    plain = metric.score(query[None], X)[0]
    best = np.argsort(-plain)[:6]
    weights = expansion_weights(plain[best], float(metric.offset_))
    scores = weights @ metric.score(np.vstack([query, X[best]]), X) / weights.sum()
    found = gallery.search(query, k=40, expand=6)
    if weights[1:].any():
        assert [hit.id for hit in found.hits] == ids(rows, scores, 40)
    assert weights[1:].any() == ("No hit was close enough to join the query." not in found.notes)


def test_where_nothing_is_close_nothing_joins_and_it_is_said(made: Any) -> None:
    gallery, X, _ = made
    far = -X[:1].mean(axis=0) * np.array([1, -1, 1, -1, 1, -1, 1, -1], np.float32)
    query = far - 10 * X.mean(axis=0)
    if (ratio(gallery).score(query[None], X) > 0).any():
        pytest.skip("the made-up query is close to something after all")
    plain, expanded = gallery.search(query, k=9), gallery.search(query, k=9, expand=5)
    assert expanded.hits == plain.hits
    assert expanded.notes[-1] == "No hit was close enough to join the query."


def test_re_ranking_changes_the_order_and_no_score(made: Any) -> None:
    gallery, X, rows = made
    metric = ratio(gallery)
    query = X[8]
    scores = metric.score(query[None], X)[0]
    shortlist = np.argsort(-scores, kind="stable")[:400]  # the least is twice as many as are wanted, and 100
    found = gallery.search(query, k=100, rerank=True)
    # Of the vectors as the engine has them: their rounding may part the query from its own chip.
    point = metric.transform(query[None])[0].astype(np.float32)
    order = rerank(point, gallery._searchers.searcher().engine.vectors(shortlist))
    assert [hit.id for hit in found.hits] == [rows[shortlist[place]]["id"] for place in order[:100]]
    by_id = dict(zip((row["id"] for row in rows), scores, strict=True))
    np.testing.assert_allclose(
        [hit.score for hit in found.hits], [by_id[hit.id] for hit in found.hits], atol=1e-3, rtol=1e-3
    )


def windows_gallery(path: Path) -> tuple[Gallery, NDArray[np.float32]]:
    """Return windows at half stride over two scenes, an object under every fourth in both directions."""
    rng = np.random.default_rng(0)
    rows, vectors = [], []
    for scene in ("a.tif", "b.tif"):
        for x in range(0, 640, 32):
            for y in range(0, 640, 32):
                near = max(abs((x + 64) % 128 - 64), abs((y + 64) % 128 - 64))  # to the nearest object
                ring = f"{x} {y}, {x + 64} {y}, {x + 64} {y + 64}, {x} {y + 64}, {x} {y}"
                rows.append({"id": f"{scene}:{x},{y}", "scene": scene, "polygon": f"POLYGON (({ring}))"})
                vectors.append(np.r_[1.0, near / 40 + 0.001 * rng.random(), 0.3 * rng.random()])
    X = np.array(vectors, np.float32)
    gallery = Gallery.create(path, dimension=3)
    gallery.add_embeddings(rows, X)
    return gallery, X


def test_windows_of_one_object_are_one_hit(tmp_path: Path) -> None:
    gallery, _ = windows_gallery(tmp_path / "g")
    query = np.array([1.0, 0, 0.15])
    found = gallery.search(query, k=40)
    assert len(found) == 40
    places = [tuple(map(int, hit.id.split(":")[1].split(","))) for hit in found.hits]
    boxes = [(hit.scene, x, y) for hit, (x, y) in zip(found.hits, places, strict=True)]
    for number, (scene, x, y) in enumerate(boxes):
        for other, u, v in boxes[:number]:
            shared = max(0, 64 - abs(x - u)) * max(0, 64 - abs(y - v))
            assert scene != other or shared <= 0.2 * 64 * 64
    assert sum(hit.merged for hit in found.hits) > 10
    every = gallery.search(query, k=40, overlap=1)
    assert len(every) == 40
    assert {hit.merged for hit in every.hits} == {0}
    assert every.hits[0].id == found.hits[0].id


def test_merging_goes_on_until_there_are_k(tmp_path: Path) -> None:
    gallery, X = windows_gallery(tmp_path / "g")
    all_hits = gallery.search(X[0], k=800)
    for k in (1, 7, 50, 90):
        assert [hit.id for hit in gallery.search(X[0], k=k).hits] == [hit.id for hit in all_hits.hits[:k]]


def test_a_metric_without_rates_says_so(made: Any) -> None:
    gallery, X, _ = made
    found = gallery.search(X[0], metric=Cosine().fit(X))
    assert found.expected_false_hits is None
    assert {(hit.posterior, hit.false_alarm_rate) for hit in found.hits} == {(None, None)}
    with pytest.raises(NotCalibratedError, match=r"Cosine knows no false-alarm rates; .* `lookdown gallery calibrate"):
        gallery.search(X[0], false_alarm_rate=0.1, metric=Cosine().fit(X))


@pytest.fixture(scope="module")
def fitted() -> GaussianLikelihoodRatio:
    return GaussianLikelihoodRatio().fit(*kinds(400))


@pytest.fixture(scope="module")
def calibrated(fitted: GaussianLikelihoodRatio) -> GaussianLikelihoodRatio:
    X, y = kinds(300)
    return GaussianLikelihoodRatio().fit(*kinds(400)).calibrate(X, y, groups=np.arange(300) % 30)


def test_a_calibrated_metric_answers_from_what_it_has_seen(calibrated: GaussianLikelihoodRatio) -> None:
    rates = Rates(calibrated, several=False)
    scores = np.linspace(-8, 4, 9)
    found = rates.false_alarm_rates(scores)
    assert [float(rate or 0) for rate in found] == [float(calibrated.false_alarm_rate(score)) for score in scores]
    assert found[0] is not None
    assert found[0].method == "empirical"
    assert rates.notes() == ()
    assert rates.threshold(0.05) == calibrated.threshold(0.05)


def test_many_scores_are_interpolated_closely(calibrated: GaussianLikelihoodRatio) -> None:
    scores = np.random.default_rng(0).uniform(-10, 5, 1_000)
    found = Rates(calibrated, several=False).false_alarm_rates(scores)
    exact = [calibrated.false_alarm_rate(score) for score in scores]
    np.testing.assert_allclose([float(rate or 0) for rate in found], [float(rate) for rate in exact], atol=3e-3)
    assert all(rate is not None and rate.low <= rate <= rate.high for rate in found)


def test_a_model_answers_without_a_warning_and_says_so(fitted: GaussianLikelihoodRatio) -> None:
    rates = Rates(fitted, several=False)
    found = rates.false_alarm_rate(1.0)
    assert found is not None
    assert (found.method, found.supported) == ("analytic", False)
    assert rates.posteriors(np.array([1.0]), 0.01)[0] == pytest.approx(expit(1.0 + logit(0.01)))


def test_a_metric_that_only_ranks_says_nothing_of_rates() -> None:
    rates = Rates(Cosine().fit(np.ones((1, 4))), several=False)
    assert rates.false_alarm_rates(np.arange(3.0)) == [None] * 3
    assert rates.false_alarm_rates(np.arange(999.0)) == [None] * 999
    assert rates.posteriors(np.arange(3.0), 0.1) == [None] * 3
    assert Rates(rates.metric, several=True).notes() == ()
    with pytest.raises(NotCalibratedError, match="needs calibration"):
        rates.threshold(0.1)


def test_rates_of_several_examples_are_not_supported(calibrated: GaussianLikelihoodRatio) -> None:
    one, several = Rates(calibrated, several=False), Rates(calibrated, several=True)
    alone, mean = one.false_alarm_rate(-3.0), several.false_alarm_rate(-3.0)
    assert alone is not None
    assert mean is not None
    assert float(alone) == float(mean)
    assert alone.supported
    assert not mean.supported
    assert not several.threshold(0.1).supported
    assert "one example" in several.notes()[0]


def test_expected_hits_are_rate_times_rows(calibrated: GaussianLikelihoodRatio) -> None:
    rate = calibrated.false_alarm_rate(-3.0)
    hits = scaled(rate, 500)
    assert float(hits) == pytest.approx(500 * float(rate))
    assert (hits.low, hits.high) == (500 * rate.low, 500 * rate.high)
    assert (hits.method, hits.supported) == (rate.method, rate.supported)


def test_a_rate_of_zero_is_a_rate(calibrated: GaussianLikelihoodRatio) -> None:
    found = Rates(calibrated, several=False).false_alarm_rates(np.array([1e6, -3.0]))
    assert [float(rate) if rate is not None else None for rate in found] == [
        0.0,
        float(calibrated.false_alarm_rate(-3.0)),
    ]
