"""Search by the ratio of kinds: through any engine the hits are those of the formula over every row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.gallery.galleries import kinds, rows_of

from lookdown import Gallery, GaussianLikelihoodRatio, KindLikelihoodRatio, PairMoments, Where
from lookdown.errors import InputError, UnsupportedOperationError
from lookdown.gallery.search.engines.engine import EngineName
from lookdown.gallery.search.space import L2Space, search_space
from lookdown.metrics import Metric

Array = NDArray[np.float64]
X, Y = kinds(600, 12, classes=20, seed=3)
TRAINING, KINDS = kinds(500, 12, classes=20, seed=3)
KNOWN = KINDS < 10


def labelled(**parameters: Any) -> KindLikelihoodRatio:
    return KindLikelihoodRatio(**parameters).fit(TRAINING[KNOWN], KINDS[KNOWN])


def pseudo() -> KindLikelihoodRatio:
    cuts = KINDS, KINDS // 2, KINDS // 5
    moments = [PairMoments.of(TRAINING, cut, normalize=True) for cut in cuts]
    return KindLikelihoodRatio(novelty=0).fit_moments(*moments)


def both() -> KindLikelihoodRatio:
    moments = PairMoments.of(TRAINING[KNOWN], KINDS[KNOWN], normalize=True)
    return KindLikelihoodRatio(novelty=0.3, temperature=4.0).fit_moments(moments, fallback=pseudo())


METRICS = {
    "known kinds": labelled(novelty=0),
    "known kinds and differences": labelled(),
    "little novelty": labelled(novelty=0.001),
    "pseudo-kinds": pseudo(),
    "known kinds and pseudo-kinds": both(),
    "as frequent as in training, surer": labelled(weighting="pairs", temperature=2.0),
}


def gallery_of(path: Path, metric: Metric, engine: EngineName = "exact") -> tuple[Gallery, list[dict[str, Any]]]:
    gallery = Gallery.create(path, metric=metric, dimension=12, engine=engine)
    rows = rows_of(Y % 10)
    gallery.add_embeddings(rows, X)
    return gallery, rows


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())
def test_hits_are_those_of_the_formula_over_every_row(metric: KindLikelihoodRatio, tmp_path: Path) -> None:
    gallery, rows = gallery_of(tmp_path / "g", metric)
    for query in (TRAINING[3], TRAINING[15], -TRAINING[4]):  # of a known kind, of an unknown one, of none at all
        scores = np.asarray(metric.score([query], X))[0]
        hits = gallery.search(query, k=40).hits
        np.testing.assert_allclose([hit.score for hit in hits], np.sort(scores)[::-1][:40], atol=1e-5)
        of_id = {row["id"]: score for row, score in zip(rows, scores, strict=True)}
        np.testing.assert_allclose([of_id[hit.id] for hit in hits], [hit.score for hit in hits], atol=1e-5)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())
def test_several_examples_filters_and_counter_examples_follow_the_formula(metric: Any, tmp_path: Path) -> None:
    gallery, rows = gallery_of(tmp_path / "g", metric)
    examples, counter = TRAINING[[2, 22, 42]], TRAINING[[7]]
    scores = np.asarray(metric.score_query(examples, np.ones(3), X))
    hits = gallery.search(list(examples), k=25).hits
    np.testing.assert_allclose([hit.score for hit in hits], np.sort(scores)[::-1][:25], atol=1e-5)
    scores = scores - np.logaddexp(0, metric.score(counter, X)[0])
    kept = np.array([row["sensor"] == "S2A" for row in rows])
    hits = gallery.search(list(examples), k=25, counter_examples=list(counter), where=Where(sensor="S2A")).hits
    np.testing.assert_allclose([hit.score for hit in hits], np.sort(scores[kept])[::-1][:25], atol=1e-5)
    assert {hit.sensor for hit in hits} == {"S2A"}


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())
def test_a_rate_accepts_every_row_that_reaches_its_threshold(metric: KindLikelihoodRatio, tmp_path: Path) -> None:
    gallery, _ = gallery_of(tmp_path / "g", metric)
    gallery.calibrate()
    measured = gallery.read_metric(gallery.metric)
    for query in TRAINING[[3, 15]]:
        for rate in (0.3, 0.05):
            results = gallery.search(query, false_alarm_rate=rate)
            assert results.threshold is not None
            expected = np.asarray(measured.score([query], X))[0] >= float(results.threshold)
            assert len(results.hits) == results.accepted == expected.sum()
            assert all(hit.posterior is not None for hit in results.hits)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())
def test_vectors_have_one_length_and_probes_bound_the_score(metric: KindLikelihoodRatio) -> None:
    space = search_space(metric)
    vectors = space.vectors(X).astype(np.float64)
    np.testing.assert_allclose(np.square(vectors).sum(axis=1), np.square(vectors[0]).sum(), rtol=1e-5)
    for query in TRAINING[:12]:
        probes = space.probes(query[None], np.ones(1))
        parts = [probe.score(-np.square(vectors - probe.point).sum(axis=1) / 2) for probe in probes]
        bound = np.logaddexp.reduce(parts, axis=0)
        scores = np.asarray(metric.score([query], X))[0]
        assert (bound >= scores - 1e-6).all()
        likely = scores > 0
        np.testing.assert_allclose(bound[likely], scores[likely], atol=0.02)
        for probe in probes:
            np.testing.assert_allclose(probe.score(np.array([probe.closeness(0.7)])), 0.7, atol=1e-9)


def test_the_approximate_engine_finds_nearly_all_of_what_the_exact_one_finds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(60, 12))
    many = (centres[rng.integers(60, size=30_000)] + 0.4 * rng.normal(size=(30_000, 12))).astype(np.float32)
    codes = rng.integers(40, size=2000)
    metric = KindLikelihoodRatio().fit(centres[codes] + 0.4 * rng.normal(size=(2000, 12)), codes)
    found = {}
    for engine in ("exact", "ivf"):
        gallery = Gallery.create(tmp_path / engine, metric=metric, dimension=12, engine=engine)
        gallery.add_embeddings([{"id": str(row)} for row in range(len(many))], many)
        found[engine] = [{hit.id for hit in gallery.search(query, k=50).hits} for query in centres]
    recall = [len(a & b) / 50 for a, b in zip(found["exact"], found["ivf"], strict=True)]
    assert np.mean(recall) > 0.9


NAMES = np.array([f"kind {number:02}" for number in range(10)])


def named(**parameters: Any) -> KindLikelihoodRatio:
    return KindLikelihoodRatio(**parameters).fit(TRAINING[KNOWN], NAMES[KINDS[KNOWN]])


def test_a_hit_says_which_kind_it_is_taken_for_and_how_surely(tmp_path: Path) -> None:
    metric = named(novelty=0.3, temperature=2.0)
    gallery, rows = gallery_of(tmp_path / "g", metric)
    hits = gallery.search(TRAINING[3], k=600, overlap=1).hits
    row_of = {row["id"]: number for number, row in enumerate(rows)}
    shares = metric.predict_proba(X)
    for hit in hits:
        share = shares[row_of[hit.id]]
        none = 1 - share.sum()
        assert hit.kind == (None if none > share.max() else NAMES[share.argmax()])
        assert hit.kind_probability == pytest.approx(max(none, share.max()), abs=1e-6)
    assert {hit.kind for hit in hits} == {None, *NAMES}
    right = [hit.kind == (NAMES[Y[row_of[hit.id]]] if Y[row_of[hit.id]] < 10 else None) for hit in hits]
    assert np.mean(right) > 0.8


def with_pseudo_kinds() -> KindLikelihoodRatio:
    moments = PairMoments.of(TRAINING[KNOWN], NAMES[KINDS[KNOWN]], normalize=True)
    return KindLikelihoodRatio(novelty=0.3, temperature=4.0).fit_moments(moments, fallback=pseudo())


OF_NAMES = {"closed": named(novelty=0), "differences": named(), "pseudo-kinds": with_pseudo_kinds()}


@pytest.mark.parametrize("metric", OF_NAMES.values(), ids=OF_NAMES.keys())
@pytest.mark.parametrize("engine", ["exact", "ivf"])
def test_a_kind_is_searched_for_by_its_probability(
    metric: KindLikelihoodRatio, engine: EngineName, tmp_path: Path
) -> None:
    gallery, rows = gallery_of(tmp_path / "g", metric, engine)
    scores = np.log(metric.predict_proba(X)[:, 4] / metric._models[0].priors[4])
    results = gallery.search(kind="kind 04", k=30, overlap=1)
    assert (results.query, results.rows_searched) == ("kind kind 04", 600)
    np.testing.assert_allclose([hit.score for hit in results.hits], np.sort(scores)[::-1][:30], atol=1e-5)
    assert {hit.kind for hit in results.hits[:20]} == {"kind 04"}
    counter = TRAINING[[5]]
    scores = scores - np.logaddexp(0, metric.score(counter, X)[0])
    kept = np.array([row["sensor"] == "S2A" for row in rows])
    unlike = gallery.search(kind="kind 04", k=10, counter_examples=list(counter), where=Where(sensor="S2A"), overlap=1)
    np.testing.assert_allclose([hit.score for hit in unlike.hits], np.sort(scores[kept])[::-1][:10], atol=1e-5)


@pytest.mark.parametrize("metric", OF_NAMES.values(), ids=OF_NAMES.keys())
def test_a_rate_accepts_every_chip_of_a_kind_that_reaches_its_threshold(
    metric: KindLikelihoodRatio, tmp_path: Path
) -> None:
    gallery, _ = gallery_of(tmp_path / "g", metric)
    gallery.calibrate()
    results = gallery.search(kind="kind 04", false_alarm_rate=0.05)
    assert results.threshold is not None
    assert results.notes == ()
    scores = np.asarray(metric.score_kind("kind 04", X))
    assert len(results.hits) == results.accepted == (scores >= float(results.threshold)).sum() > 0
    assert all(hit.posterior is not None for hit in results.hits)
    best = gallery.search(kind="kind 04", k=20, rerank=True).hits
    assert {hit.id for hit in best} <= {hit.id for hit in gallery.search(kind="kind 04", k=100).hits}


def test_a_kind_that_cannot_be_searched_for_is_refused_with_what_to_do(tmp_path: Path) -> None:
    gallery, _ = gallery_of(tmp_path / "g", named())
    with pytest.raises(InputError, match=r"knows no kind 'kind4'; did you mean kind 04\?"):
        gallery.search(kind="kind4")
    for metric in ("cosine", GaussianLikelihoodRatio().fit(TRAINING, KINDS), pseudo()):
        with pytest.raises(UnsupportedOperationError, match="knows no kinds by name; give an example instead"):
            gallery.search(kind="kind 04", metric=metric)


def test_where_the_metric_names_no_kinds_a_hit_has_none(tmp_path: Path) -> None:
    for name, metric in (("pseudo", pseudo()), ("differences", GaussianLikelihoodRatio().fit(TRAINING, KINDS))):
        gallery, _ = gallery_of(tmp_path / name, metric)
        hits = gallery.search(TRAINING[3], k=5).hits
        assert {(hit.kind, hit.kind_probability) for hit in hits} == {(None, None)}
    gallery, _ = gallery_of(tmp_path / "numbers", labelled(novelty=0))
    assert {hit.kind for hit in gallery.search(TRAINING[3], k=5).hits} == {"3"}


def test_what_has_no_space_is_refused_with_what_to_do() -> None:
    metric = KindLikelihoodRatio(normalize=False).fit(TRAINING, KINDS)
    with pytest.raises(UnsupportedOperationError, match="fit it with normalize=True or novelty=0"):
        search_space(metric)
    assert isinstance(search_space(GaussianLikelihoodRatio().fit(TRAINING, KINDS)), L2Space)
    assert search_space(METRICS["pseudo-kinds"]).linear.transform(X).shape == X.shape
