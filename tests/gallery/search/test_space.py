"""Search by the ratio of kinds: through any engine the hits are those of the formula over every row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.gallery.galleries import kinds, rows_of

from lookdown import Gallery, GaussianLikelihoodRatio, KindLikelihoodRatio, PairMoments, Where
from lookdown.errors import UnsupportedOperationError
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


def test_what_has_no_space_is_refused_with_what_to_do() -> None:
    metric = KindLikelihoodRatio(normalize=False).fit(TRAINING, KINDS)
    with pytest.raises(UnsupportedOperationError, match="fit it with normalize=True or novelty=0"):
        search_space(metric)
    assert isinstance(search_space(GaussianLikelihoodRatio().fit(TRAINING, KINDS)), L2Space)
    assert search_space(METRICS["pseudo-kinds"]).linear.transform(X).shape == X.shape
