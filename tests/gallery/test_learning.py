"""Adapting, teaching and calibrating a gallery."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.gallery.galleries import kinds, rows_of, vector_gallery

from lookdown import Cosine, Gallery, KindLikelihoodRatio, Where, adapt
from lookdown.errors import GalleryError, InputError


def unlabelled(path: Path, n: int = 300, d: int = 32) -> tuple[Gallery, np.ndarray, np.ndarray]:
    """Return a gallery under the cosine, where most of what differs says nothing of the kind."""
    rng = np.random.default_rng(0)
    X, y = kinds(n, 6, classes=6)
    noise = rng.normal(size=(n, d - 6)) * np.linspace(3, 0.1, d - 6)
    X = np.hstack([X, noise]).astype(np.float32)
    gallery = Gallery.create(path, dimension=d)
    gallery.add_embeddings([row | {"label": None} for row in rows_of(y)], X)
    return gallery, X, y


def precision(gallery: Gallery, X: np.ndarray, y: np.ndarray, rows: range) -> float:
    """Return the share of right hits among the first twenty, over some queries."""
    ids = gallery.snapshot.ids.to_pylist()
    kind = dict(zip(ids, y, strict=True))
    found = [[kind[hit.id] == y[row] for hit in gallery.search(ids[row], k=20).hits] for row in rows]
    return float(np.mean(found))


def test_marking_a_few_results_makes_the_search_better(tmp_path: Path) -> None:
    gallery, X, y = unlabelled(tmp_path / "g")
    asked = range(200, 260)
    before = precision(gallery, X, y, asked)
    ids = gallery.snapshot.ids.to_pylist()
    learnt = gallery.teach(ids[:120], [f"kind {kind}" for kind in y[:120]])
    assert (learnt.changed, learnt.metric) == (True, "2-taught")
    assert precision(gallery, X, y, asked) > before + 0.1


def test_what_is_learnt_is_what_adapt_gives_for_the_same_labels(tmp_path: Path) -> None:
    gallery, X, y = unlabelled(tmp_path / "g")
    ids = gallery.snapshot.ids.to_pylist()
    gallery.teach(ids[:40], [str(kind) for kind in y[:40]], background=[ids[50], ids[51]])
    labels = [*map(str, y[:40])] + [None] * (len(X) - 40)
    wanted = adapt(Cosine().fit(X), X, labels=labels, background=np.isin(np.arange(len(X)), [50, 51]))
    found = gallery._registry.load("2-taught")
    np.testing.assert_allclose(found.score(X[:5], X), wanted.metric.score(X[:5], X), rtol=1e-4)


def test_a_taught_metric_names_the_kinds_of_the_user_and_background_is_none_of_them(tmp_path: Path) -> None:
    X, y = kinds(600, 12, classes=20, seed=3)
    gallery = Gallery.create(tmp_path / "g", dimension=12)
    gallery.add_embeddings([row | {"label": None} for row in rows_of(y % 10)], X)
    ids = np.array(gallery.snapshot.ids.to_pylist())
    lighters, tugs, empty = (np.flatnonzero(y == kind) for kind in (0, 1, 2))
    learnt = gallery.teach(
        [*ids[lighters[:6]], *ids[tugs[:6]]], ["lighter"] * 6 + ["a tug"] * 6, background=[*ids[empty[:6]]]
    )
    assert "12 true labels of 2 kinds and 6 of background" in learnt.reason
    metric = gallery.read_metric(learnt.metric)
    assert isinstance(metric, KindLikelihoodRatio)
    assert metric.kinds_.tolist() == ["a tug", "lighter"]
    shares = metric.predict_proba(X)
    assert (metric.predict(X[lighters[6:]]) == "lighter").all()
    assert shares[lighters[6:], 1].mean() > 0.7
    assert shares[empty[6:]].sum(axis=1).mean() < 0.1, "the background that was not marked is none of these, too"


def test_one_kind_and_background_are_enough(tmp_path: Path) -> None:
    X, y = kinds(600, 12, classes=20, seed=3)
    gallery = Gallery.create(tmp_path / "g", dimension=12)
    gallery.add_embeddings([row | {"label": None} for row in rows_of(y % 10)], X)
    ids = np.array(gallery.snapshot.ids.to_pylist())
    learnt = gallery.teach([*ids[y == 4][:5]], ["tug"] * 5, background=[*ids[y == 7][:5]])
    assert "5 true labels of 1 kind and 5 of background" in learnt.reason
    metric = gallery.read_metric(learnt.metric)
    assert isinstance(metric, KindLikelihoodRatio)
    share = metric.predict_proba(X)[:, 0]
    assert share[y == 4].min() > share[y == 7].max()


def test_too_few_labels_are_kept_and_change_nothing(tmp_path: Path) -> None:
    gallery, _, _ = unlabelled(tmp_path / "g")
    ids = gallery.snapshot.ids.to_pylist()
    learnt = gallery.teach(ids[:3], ["tanker"] * 3)
    assert (learnt.changed, learnt.metric) == (False, "1-cosine")
    assert "3 labels make no pairs yet" in learnt.reason
    assert gallery.stats().marked == 3
    assert gallery.teach([], [], background=[ids[9]]).changed


def test_labels_of_the_manifest_count_only_when_asked(tmp_path: Path) -> None:
    gallery, _, rows = vector_gallery(tmp_path / "g")
    quiet, told = gallery.adapt(clusters=10), gallery.adapt(clusters=10, labels="all")
    assert "true labels" not in quiet.reason
    assert "true labels of 10 kinds" in told.reason
    gallery.label([rows[0]["id"], rows[10]["id"], rows[1]["id"]], ["a", "a", "b"])
    assert "3 true labels of 2 kinds" in gallery.adapt(clusters=10).reason
    assert "true labels" not in gallery.adapt(clusters=10, labels="none").reason
    gallery.label([rows[0]["id"], rows[10]["id"], rows[1]["id"]], ["a", "a", "b"], marked=False)
    assert "true labels" not in gallery.adapt(clusters=10).reason, "as if they had come with the chips"
    with pytest.raises(InputError, match="`labels` must be"):
        gallery.adapt(labels="some")  # type: ignore[arg-type]


def test_every_adaptation_starts_from_the_first_metric(tmp_path: Path) -> None:
    gallery, X, _ = vector_gallery(tmp_path / "g")
    gallery.adapt(clusters=10)
    first = gallery.search(X[0], k=5).hits
    gallery.adapt(clusters=10)
    assert gallery.metric == "3-adapted"
    assert gallery.search(X[0], k=5).hits == first
    assert {metric.base for metric in gallery.metrics()[1:]} == {"1-trained"}


def test_where_nothing_clusters_the_metric_is_kept(tmp_path: Path) -> None:
    gallery = Gallery.create(tmp_path / "g", dimension=16)
    X = np.random.default_rng(0).normal(size=(300, 16)).astype(np.float32)
    gallery.add_embeddings([{"id": str(place)} for place in range(300)], X)
    learnt = gallery.adapt()
    assert (learnt.changed, learnt.metric) == (False, "1-cosine")
    assert "do not form clear clusters" in learnt.reason


def test_calibration_leaves_out_what_the_metric_was_taught_by(tmp_path: Path) -> None:
    gallery, X, y = unlabelled(tmp_path / "g")
    ids = gallery.snapshot.ids.to_pylist()
    gallery.teach(ids[:60], [str(kind) for kind in y[:60]])
    with pytest.raises(GalleryError, match="no labelled chips that 2-taught was not taught by; label some more"):
        gallery.calibrate()
    gallery.label(ids[60:180], [str(kind) for kind in y[60:180]])
    learnt = gallery.calibrate()
    assert learnt.metric == "3-calibrated"
    assert "on 120 labelled chips of 25 places" in learnt.reason
    about = gallery.metrics()[-1]
    assert about.calibrated
    assert set(about.taught_by) == set(ids[:60])
    metric = gallery._registry.load("2-taught").calibrate(X[60:180], y[60:180])
    calibration = gallery._registry.load("3-calibrated").calibration_
    assert calibration is not None
    assert metric.calibration_ is not None
    np.testing.assert_allclose(calibration.false_alarm[0], metric.calibration_.false_alarm[0])
    found = gallery.search(X[0], false_alarm_rate=0.05)
    assert found.threshold is not None
    assert found.threshold.method == "empirical"
    assert found.notes == ()


def test_removed_teachers_do_not_confuse_the_calibration(tmp_path: Path) -> None:
    gallery, _, y = unlabelled(tmp_path / "g")
    ids = gallery.snapshot.ids.to_pylist()
    gallery.teach(ids[:60], [str(kind) for kind in y[:60]])
    gallery.label(ids[240:], [str(kind) for kind in y[240:]])
    gallery.remove(ids[:30])
    assert "on 60 labelled chips" in gallery.calibrate().reason


def test_an_empty_gallery_cannot_be_adapted(tmp_path: Path) -> None:
    gallery = Gallery.create(tmp_path / "g", dimension=3)
    with pytest.raises(GalleryError, match="holds no chips yet"):
        gallery.adapt()
    with pytest.raises(GalleryError, match="holds no chips yet"):
        gallery.teach([], [])
    with pytest.raises(GalleryError, match="no labelled chips"):
        gallery.calibrate()


def test_background_alone_gives_false_alarm_rates(tmp_path: Path) -> None:
    gallery, _, _ = unlabelled(tmp_path / "g")
    ids = gallery.snapshot.ids.to_pylist()
    gallery.label([ids[0], ids[1]], ["a", "b"], background=ids[100:])
    gallery.calibrate()
    hit = gallery.search(ids[2], k=1, where=Where(background=True)).hits[0]
    assert hit.false_alarm_rate is not None
    assert hit.posterior is None


def test_what_is_learnt_can_be_kept_without_being_used(tmp_path: Path) -> None:
    gallery, X, _ = vector_gallery(tmp_path / "g")
    before = gallery.search(X[0], k=5)
    ids = gallery.snapshot.ids.to_pylist()
    adapted = gallery.adapt(clusters=10, use=False)
    taught = gallery.teach([ids[0], ids[10], ids[1]], ["a", "a", "b"], use=False)
    measured = gallery.calibrate(use=False)
    assert [adapted.metric, taught.metric, measured.metric] == ["2-adapted", "3-taught", "4-calibrated"]
    assert gallery.metric == "1-trained"
    assert [hit.id for hit in gallery.search(X[0], k=5).hits] == [hit.id for hit in before.hits]
    assert gallery.search(X[0], k=5, metric="2-adapted").metric == "2-adapted"
    assert gallery.read_metric("4-calibrated").calibration_ is not None
    assert isinstance(gallery.read_metric("cosine"), Cosine)


def test_teaching_goes_on_from_labels_that_were_given_before(tmp_path: Path) -> None:
    gallery, _, y = unlabelled(tmp_path / "g")
    ids = gallery.snapshot.ids.to_pylist()
    gallery.label(ids[:60], [str(kind) for kind in y[:60]])
    version = gallery.snapshot.version
    assert gallery.teach([], []).metric == "2-taught"
    assert gallery.snapshot.version == version


def test_a_metric_is_dropped_and_another_never_takes_its_name(tmp_path: Path) -> None:
    gallery, X, _ = vector_gallery(tmp_path / "g")
    gallery.adapt(clusters=10, use=False)
    gallery.search(X[0], metric="2-adapted")  # which keeps it in memory
    gallery.forget("2-adapted")
    assert [metric.name for metric in gallery.metrics()] == ["1-trained"]
    assert gallery.adapt(clusters=4, use=False).metric == "3-adapted"
    with pytest.raises(GalleryError, match="estimated from"):
        gallery.forget("1-trained")
