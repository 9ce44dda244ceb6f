"""Adaptation end to end: Algorithm 3 to the letter, when it is not done, what labels and further images add."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.adaptation.targets import (
    Array,
    Labels,
    blob,
    digits,
    k_means,
    kinds,
    loop_covariances,
    mean_average_precision,
    on_sphere,
    ratio_matrix,
)

from lookdown import load_metric
from lookdown.adaptation import AUTO, AUTO_OF_DIFFERENCES, CPLFPA, Adaptation, AdaptationSettings, adapt, pseudo_labels
from lookdown.adaptation.pseudo_labels import Covariances
from lookdown.adaptation.target_metric import estimate
from lookdown.adaptation.ward_tree import find_tree
from lookdown.errors import InputError, NotCalibratedError, NotFittedError, UnsupportedOperationError
from lookdown.metrics import (
    Cosine,
    Euclidean,
    GaussianLikelihoodRatio,
    KindLikelihoodRatio,
    Metric,
    MixtureLikelihoodRatio,
    PairMoments,
)
from lookdown.metrics.covariance import oas_shrinkage


def source(dim: int = 6, **parameters: Any) -> GaussianLikelihoodRatio:
    X, y = kinds(8, 10, dim, seed=7)
    return GaussianLikelihoodRatio(**parameters).fit(X, y)


def mixture(**parameters: Any) -> MixtureLikelihoodRatio:
    X, y = kinds(8, 10, seed=7)
    return MixtureLikelihoodRatio(1, 2, pairs=300, seed=5, **parameters).fit(X, y)


def matrix(adaptation: Adaptation) -> Array:
    """Return numbers that two metrics share only if they are the same: a matrix, or ratios of some points."""
    metric = adaptation.metric
    if isinstance(metric, GaussianLikelihoodRatio):
        return metric.matrix_
    assert isinstance(metric, KindLikelihoodRatio)
    points = np.random.default_rng(0).normal(size=(30, metric.n_features_in_))
    return np.exp(metric.score(points, points))


@pytest.mark.parametrize("weighting", ["pairs", "classes"])
@pytest.mark.parametrize("indefinite", ["clip", "keep"])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("shrinkage", ["auto", 0.2])
def test_algorithm_3_to_the_letter(weighting: str, indefinite: str, normalize: bool, shrinkage: Any) -> None:
    X, _ = kinds(5, 20, gap=1.5)
    old = source(shrinkage=shrinkage, indefinite=indefinite, normalize=normalize, weighting=weighting)
    points = on_sphere(X) if normalize else X
    labels = k_means(points, 6, seed=3).labels_
    same, different = loop_covariances(points, labels, weighting)
    amounts = 0.2, 0.2
    if shrinkage == "auto":
        amounts = oas_shrinkage(same, 100 - 6), oas_shrinkage(different, 99)
    expected = ratio_matrix(same, different, amounts, clip=indefinite == "clip")
    found = adapt(old, X, clusters=6, method="cplfpa", seed=3)
    np.testing.assert_allclose(matrix(found), expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())
    assert found.clusters == 6
    assert type(found.metric) is type(old)
    assert found.metric.get_params() == old.get_params()


@pytest.mark.parametrize("weighting", ["pairs", "classes"])
def test_a_mixture_is_fitted_to_the_clusters(weighting: Any) -> None:
    X, _ = kinds(5, 20, gap=1.5)
    for old, method in (
        (mixture(weighting=weighting), "cplfpa"),
        (mixture(weighting="pairs"), AdaptationSettings(weighting=weighting)),
    ):
        labels = k_means(on_sphere(X), 6, seed=3).labels_
        expected = MixtureLikelihoodRatio(**old.get_params() | {"weighting": weighting}).fit(X, labels)
        found = adapt(old, X, clusters=6, method=method, seed=3).metric  # type: ignore[arg-type]
        assert isinstance(found, MixtureLikelihoodRatio)
        assert found.get_params() == expected.get_params()
        np.testing.assert_allclose(found.score(X[:20], X[20:]), expected.score(X[:20], X[20:]), rtol=1e-9, atol=1e-9)
        assert found.pseudo_labelled_
        assert not expected.pseudo_labelled_


def test_a_mixture_takes_true_labels_and_gives_them_to_their_clusters() -> None:
    X, y = kinds(5, 20, gap=1.5)
    labels = np.where(np.arange(100) < 40, y, -1)
    pseudo = k_means(on_sphere(X), 6).labels_
    old = mixture()
    mixed = []
    for row in range(100):
        told = [labels[other] for other in range(40) if pseudo[other] == pseudo[row]]
        majority = 6 + max(sorted(set(told)), key=told.count) if told else pseudo[row]
        mixed.append(6 + labels[row] if row < 40 else majority)
    expected = MixtureLikelihoodRatio(**old.get_params()).fit(X, mixed)
    found = adapt(old, X, clusters=6, method="cplfpa", labels=labels).metric
    np.testing.assert_allclose(found.score(X[:20], X[20:]), expected.score(X[:20], X[20:]), rtol=1e-9, atol=1e-9)


def test_soft_clusters_give_another_metric() -> None:
    X, _ = kinds(5, 20, gap=1.5)
    hard, soft = (adapt(source(), X, clusters=6, method=AdaptationSettings(softness=s)) for s in (0.0, 1.0))
    hardly = adapt(source(), X, clusters=6, method=AdaptationSettings(softness=1e-4))
    np.testing.assert_allclose(matrix(hardly), matrix(hard), rtol=1e-6, atol=1e-6 * np.abs(matrix(hard)).max())
    assert not np.allclose(matrix(soft), matrix(hard), rtol=0.1)


def source_of_16() -> GaussianLikelihoodRatio:
    return GaussianLikelihoodRatio(shrinkage=0.1).fit(*kinds(20, 10, 16, seed=3))


def unseen() -> tuple[Array, Labels, Array, Labels]:
    """Return the digits 0 to 4 as source, and 5 to 9 as target."""
    X, y = digits()
    return X[y < 5], y[y < 5], X[y >= 5], y[y >= 5]


@pytest.mark.filterwarnings("ignore::lookdown.errors.LowRankWarning")
def test_digits_of_unseen_classes_are_found_again() -> None:
    X, y, target, truth = unseen()
    old = GaussianLikelihoodRatio(normalize=False).fit(X, y)
    cosine = mean_average_precision(Cosine().fit(target), target, truth)
    assert mean_average_precision(old, target, truth) < cosine - 25
    for adaptation, gain in (
        (adapt(old, target, clusters=5, method="cplfpa"), 5),
        (adapt(old, target, clusters=5), 5),
        (adapt(old, target), 4),
    ):
        assert adaptation.helped
        assert mean_average_precision(adaptation.metric, target, truth) > cosine + gain


def test_digits_of_the_same_classes_are_spared_by_blending() -> None:
    X, y = digits()
    old = GaussianLikelihoodRatio(normalize=False).fit(X[:900], y[:900])
    before, little, much, none = (
        mean_average_precision(metric, X[900:], y[900:])
        for metric in (
            old,
            *(
                adapt(old, X[900:], method=replace(AUTO_OF_DIFFERENCES, source_chips=chips)).metric
                for chips in (300, 1000, 0)
            ),
        )
    )
    assert none + 1 < little < much - 1 < before


@pytest.mark.parametrize("normalize", [False, True])
def test_by_default_pseudo_kinds_of_every_cut_are_averaged(normalize: bool) -> None:
    X, _ = kinds(6, 40, gap=1.5)
    adaptation = adapt(source(normalize=normalize), X, clusters=4)
    tree = find_tree(X, 4, normalize=normalize, centred=True)
    finest = tree.assign(X)[0]
    ratios = [
        np.exp(KindLikelihoodRatio(0, 8.0, normalize=normalize).fit(X, cut[finest]).score(X, X)) for cut in tree.cuts
    ]
    assert len(ratios) > 2
    np.testing.assert_allclose(np.exp(adaptation.metric.score(X, X)), np.mean(ratios, axis=0), rtol=1e-6)


@pytest.mark.parametrize(
    ("each", "novelty", "temperature"), [(2, 0.3, 10.0), (5, 0.12, 4.0), (10, 0.1, 3.0), (30, 0.1, 3.0)]
)
def test_labelled_kinds_come_first_and_pseudo_kinds_compare_the_rest(
    each: int, novelty: float, temperature: float
) -> None:
    X, y = kinds(6, 40, gap=1.5)
    first = [np.flatnonzero(y == kind)[:each] for kind in range(3)]
    labels: list[str | None] = [None] * len(y)
    for row in np.concatenate(first):
        labels[row] = f"kind {y[row]}"
    pseudo = adapt(source(), X, clusters=4).metric
    metric = adapt(source(), X, clusters=4, labels=labels).metric
    known = np.array([label is not None for label in labels])
    moments = PairMoments.of(X[known], y[known], normalize=True)
    expected = KindLikelihoodRatio(novelty, temperature).fit_moments(moments, fallback=pseudo)
    np.testing.assert_allclose(metric.score(X, X), expected.score(X, X), rtol=1e-9, atol=1e-9)


def kept(adaptation: Adaptation, old: Metric, reason: str) -> None:
    assert adaptation.metric is old
    assert not adaptation.helped
    assert adaptation.reason.startswith("the source metric is kept: ")
    assert reason in adaptation.reason


@pytest.mark.parametrize("old", [source(16), Cosine().fit(np.ones((1, 16)))], ids=["ratio", "cosine"])
def test_where_nothing_can_be_learnt_the_source_comes_back(old: Metric) -> None:
    few = kinds(5, 2, 16)[0]
    kept(adapt(old, few), old, "10 images are too few")
    kept(adapt(old, few, method="cplfpa"), old, "give 50")
    kept(adapt(old, few[:1]), old, "too few")
    copies = np.tile(few[:1], (200, 1))
    kept(adapt(old, copies), old, "all images look the same")
    kept(adapt(old, copies, clusters=3, method="cplfpa"), old, "all images look the same")
    brighter = copies * np.linspace(0.5, 9, 200)[:, None]  # the same on the unit sphere
    kept(adapt(old, brighter.astype(np.float32)), old, "all images look the same")
    cloud = adapt(old, blob())
    kept(cloud, old, "the images do not form clear clusters")
    assert cloud.clusters == 0
    assert f"{cloud.separation:.2f}" in cloud.reason
    kept(adapt(old, blob(), clusters=6), old, "the images do not form clear clusters")


def test_the_paper_adapts_to_a_cloud_all_the_same_and_is_not_trusted() -> None:
    old = source(16)
    for method in ("cplfpa", AUTO):
        adaptation = adapt(old, blob(), clusters=6, method=method)
        assert adaptation.metric is not old
        assert not adaptation.helped
        assert adaptation.separation < 0.2
        assert f"separation {adaptation.separation:.2f}" in adaptation.reason


def test_what_helped_is_said_with_its_evidence() -> None:
    X, _ = kinds(6, 50)
    adaptation = adapt(source(), X, clusters=6)
    assert adaptation.helped
    assert adaptation.separation > 0.4
    assert adaptation.reason == f"300 images in 6 to 24 clusters (separation {adaptation.separation:.2f})"


@pytest.mark.parametrize("method", ["cplfpa", "auto"])
@pytest.mark.parametrize("make", [source, mixture])
def test_the_source_is_not_touched_and_its_calibration_not_taken_over(method: Any, make: Any) -> None:
    X, y = kinds(6, 30)
    old = make().calibrate(*kinds(8, 10, seed=9))
    before = pickle.dumps(old)
    adaptation = adapt(old, X, clusters=6, method=method, labels=np.where(np.arange(180) < 30, y, -1))
    assert pickle.dumps(old) == before
    assert adaptation.metric.calibration_ is None
    assert adaptation.recalibrate(X, y).metric.calibration_ is not None
    assert adaptation.metric.calibration_ is None
    assert pickle.dumps(old) == before


def test_a_source_metric_that_was_kept_is_not_recalibrated_itself() -> None:
    X, y = kinds(6, 30)
    old = source().calibrate(*kinds(8, 10, seed=9))
    before = pickle.dumps(old)
    kept = adapt(old, X[:10])
    assert kept.metric is old
    assert kept.recalibrate(X, y).metric is not old
    assert pickle.dumps(old) == before


@pytest.mark.parametrize("make", [source, mixture])
def test_an_adapted_metric_says_nothing_of_rates_also_after_storage(make: Any, tmp_path: Path) -> None:
    X, _ = kinds(6, 30)
    metric = adapt(make(), X, clusters=6).metric
    metric.save(tmp_path / "metric")
    loaded = load_metric(tmp_path / "metric")
    np.testing.assert_array_equal(loaded.score(X[:9], X[9:]), metric.score(X[:9], X[9:]))
    for one in (metric, loaded):
        assert one.calibration_ is None
        assert one.pseudo_labelled_
        for how in ("auto", "analytic"):
            with pytest.raises(NotCalibratedError, match=r"adapted by clusters.*call calibrate\(X, y\) on held-out"):
                one.threshold(0.01, how)
        with pytest.raises(NotCalibratedError, match="adapted by clusters"):
            one.posterior(1.0, prior=0.01)


def test_labels_of_the_target_calibrate_an_adapted_metric() -> None:
    X, y = kinds(6, 30, gap=1.0)
    adaptation = adapt(source(), X, clusters=6, method="cplfpa")
    adaptation = adaptation.recalibrate(X, y)
    different = [(i, j) for i, j in combinations(range(len(X)), 2) if y[i] != y[j]]
    scores = adaptation.metric.score(X, X)
    for rate in (0.3, 0.1, 0.01):
        threshold = adaptation.metric.threshold(rate)
        assert threshold.method == "empirical"
        assert np.mean([scores[i, j] >= threshold for i, j in different]) == pytest.approx(rate, rel=0.02)
    same = [scores[i, j] >= threshold for i, j in combinations(range(len(X)), 2) if y[i] == y[j]]
    assert adaptation.metric.detection_rate(threshold) == pytest.approx(np.mean(same), rel=0.02)


def test_background_alone_calibrates_an_adapted_metric() -> None:
    X, y = kinds(6, 30, gap=1.0)
    adaptation = adapt(source(), X, clusters=6, method="cplfpa")
    empty = y == 5
    adaptation = adaptation.recalibrate(X, background=empty)
    scores = adaptation.metric.score(X, X)
    different = np.array([scores[i, j] for i in np.flatnonzero(empty) for j in np.flatnonzero(~empty)])
    for rate in (0.3, 0.1, 0.01):
        threshold = adaptation.metric.threshold(rate)
        assert threshold.method == "empirical"
        assert np.mean(different >= threshold) == pytest.approx(rate, rel=0.02)
    with pytest.raises(NotCalibratedError, match="needs same pairs"):
        adaptation.metric.detection_rate(0.0)


def test_with_many_labels_the_metric_is_the_one_fitted_to_them() -> None:
    off = []
    for each in (40, 400, 1200):
        X, y = kinds(8, each, 4, gap=0.7)
        found = matrix(adapt(source(4, shrinkage=0.1), X, clusters=8, method="cplfpa", labels=y))
        truth = GaussianLikelihoodRatio(shrinkage=0.1).fit(X, y).matrix_
        off.append(np.linalg.norm(found - truth) / np.linalg.norm(truth))
    pseudo = matrix(adapt(source(4, shrinkage=0.1), X, clusters=8, method="cplfpa"))
    assert np.linalg.norm(pseudo - truth) > 0.5 * np.linalg.norm(truth)
    assert off[0] > 2 * off[1] > 4 * off[2]
    assert off[2] < 0.01


@pytest.mark.filterwarnings("ignore::lookdown.errors.LowRankWarning")
@pytest.mark.parametrize("method", ["cplfpa", "auto"])
def test_few_labels_of_unseen_digits_are_better_than_none(method: Any) -> None:
    X, y, target, truth = unseen()
    old = GaussianLikelihoodRatio().fit(X, y)

    def found(each: int, seed: int) -> float:
        rng, labels = np.random.default_rng(seed), np.full(len(target), -1)
        for digit in range(5, 10):
            of_gallery = 200 + np.flatnonzero(truth[200:] == digit)
            labels[rng.permutation(of_gallery)[:each]] = digit  # the fewer are among the more
        adaptation = adapt(old, target, clusters=5, method=method, labels=labels)
        assert (f"and {5 * each} true labels of 5 kinds" in adaptation.reason) == (each > 0)
        return mean_average_precision(adaptation.metric, target, truth)

    none, two, ten, twenty = (np.mean([found(each, seed) for seed in range(3)]) for each in (0, 2, 10, 20))
    assert none - 0.5 < two  # hardly anything, but no harm
    assert none + 1 < ten < twenty


def test_a_missing_label_is_none_or_nan_or_minus_one() -> None:
    X, y = kinds(6, 30, gap=1.0)
    known = np.arange(180) < 40
    spellings: list[Any] = [
        np.where(known, y, -1),
        np.where(known, y, np.nan),
        [label if k else None for label, k in zip(y.tolist(), known, strict=True)],
        [f"kind {label}" if k else None for label, k in zip(y.tolist(), known, strict=True)],
        torch.tensor(np.where(known, y, -1)),
    ]
    found = [adapt(source(), X, clusters=6, method="cplfpa", labels=labels) for labels in spellings]
    assert all(np.array_equal(matrix(found[0]), matrix(other)) for other in found[1:])
    without = adapt(source(), X, clusters=6, method="cplfpa")
    none_known = adapt(source(), X, clusters=6, method="cplfpa", labels=np.full(180, -1))
    assert np.array_equal(matrix(without), matrix(none_known))
    assert not np.allclose(matrix(without), matrix(found[0]), rtol=0.01)


@pytest.mark.parametrize("rows", [60, 10])
def test_labels_that_make_no_pairs_are_refused(rows: int) -> None:
    X, _ = kinds(6, 10)
    one_class, no_two_alike = np.full(rows, -1), np.full(rows, -1)
    one_class[:5], no_two_alike[:5] = 3, np.arange(5)
    with pytest.raises(InputError, match=r"5 labels of 1 classes make no same and different pairs; label at least two"):
        adapt(source(), X[:rows], labels=one_class)
    with pytest.raises(InputError, match=r"5 labels of 5 classes make no same .*or omit `labels`"):
        adapt(source(), X[:rows], labels=no_two_alike)
    with pytest.raises(InputError, match=f"labels has 3 labels for {rows} rows"):
        adapt(source(), X[:rows], labels=[1, 1, 2])


@pytest.mark.parametrize("plain", [Cosine(), Euclidean()], ids=str)
def test_a_metric_that_learns_nothing_can_be_the_source(plain: Metric) -> None:
    X, y = kinds(6, 30, gap=1.0)
    plain.fit(X)
    normalize = isinstance(plain, Cosine)
    labels = np.where(np.arange(180) < 60, y, -1)
    points = on_sphere(X) if normalize else X
    pseudo = loop_covariances(points, k_means(points, 6).labels_)
    true = loop_covariances(points[:60], y[:60])
    share = 12 / (12 + 60 - 6)
    same, different = ((1 - share) * t + share * p for t, p in zip(true, pseudo, strict=True))
    found = adapt(plain, X, clusters=6, method="cplfpa", labels=labels)
    expected = ratio_matrix(same, different, (0.1, 0.1))
    np.testing.assert_allclose(matrix(found), expected, rtol=1e-7, atol=1e-9 * expected.max())
    assert mean_average_precision(
        adapt(plain, np.r_[X, X], clusters=6, method="cplfpa", labels=np.r_[y, y]).metric, np.r_[X, X], np.r_[y, y]
    ) > mean_average_precision(plain, np.r_[X, X], np.r_[y, y])


def test_labels_alone_teach_where_clusters_cannot() -> None:
    X, y = kinds(3, 8)
    old = source()
    adaptation = adapt(old, X, labels=y)
    assert adaptation.helped, "24 labels of 3 kinds outweigh the source in 6 dimensions"
    assert adaptation.reason.startswith(
        "the source metric is blended with 24 true labels of 3 kinds, without clusters: 24"
    )
    assert not adapt(old, X, labels=np.where(np.arange(24) < 9, y, -1)).helped, "9 do not"
    blend = estimate(old, AUTO, None, PairMoments.of(X, y, normalize=True)).matrix_
    np.testing.assert_array_equal(matrix(adapt(old, X, labels=y, method=AUTO_OF_DIFFERENCES)), blend)
    assert isinstance(adaptation.metric, KindLikelihoodRatio)
    assert isinstance(adaptation.metric.fallback_, GaussianLikelihoodRatio)
    np.testing.assert_array_equal(adaptation.metric.fallback_.matrix_, blend)
    assert adaptation.metric.kinds_.tolist() == [0, 1, 2]
    kept(adapt(mixture_source := mixture(), X, labels=y), mixture_source, "too few")


def test_a_mixture_refuses_settings_that_it_cannot_honour() -> None:
    X, _ = kinds(5, 20)
    for settings in (
        AdaptationSettings(softness=1),
        AdaptationSettings(source_chips=10),
        AdaptationSettings(nearest=0.5),
        AdaptationSettings(full_rank=0.5),
    ):
        with pytest.raises(InputError, match="of the settings, give weighting and rounds"):
            adapt(mixture(), X, clusters=6, method=settings)
    adapt(mixture(), X, clusters=6, method=AdaptationSettings(weighting="classes", rounds=2))


def test_the_shortlist_of_an_adapted_mixture_says_nothing_of_rates_either() -> None:
    X, _ = kinds(6, 30)
    metric = adapt(mixture(), X, clusters=6).metric
    assert isinstance(metric, MixtureLikelihoodRatio)
    with pytest.raises(NotCalibratedError, match="adapted by clusters"):
        metric.shortlist_metric().threshold(0.01)


def test_copies_of_a_few_images_are_no_clusters() -> None:
    X, _ = kinds(10, 1, 16)
    made = adapt(source_of_16(), np.tile(X, (20, 1)))
    assert not made.helped
    assert "do not form clear clusters" in made.reason


@pytest.mark.parametrize("normalize", [False, True])
def test_further_images_add_their_moments(normalize: bool) -> None:
    X, _ = kinds(5, 40, gap=1.5)
    A, B = X[:120], X[120:]
    old = source(shrinkage=0.2, normalize=normalize)
    first = adapt(old, A, clusters=6, method="cplfpa")
    before = matrix(first).copy()
    both = first.update(B)
    points = on_sphere(X) if normalize else X
    centres = k_means(points[:120], 6).cluster_centers_
    labels = np.array([np.argmin([sum((row - centre) ** 2) for centre in centres]) for row in points])
    expected = ratio_matrix(*loop_covariances(points, labels), (0.2, 0.2))
    np.testing.assert_allclose(matrix(both), expected, rtol=1e-7, atol=1e-9 * expected.max())
    np.testing.assert_array_equal(matrix(first), before)
    assert both.metric.pseudo_labelled_
    assert (both.clusters, both.helped, both.separation) == (first.clusters, first.helped, first.separation)


def test_the_order_of_further_images_does_not_matter() -> None:
    X, y = kinds(5, 60, gap=1.5)
    A, B, C = X[:150], X[150:220], X[220:]
    first = adapt(source(), A, clusters=6, labels=np.where(np.arange(150) < 20, y[:150], -1), method=AUTO)
    one, other = first.update(B).update(C), first.update(C).update(B)
    once = first.update(np.r_[C, B])
    for found in (other, once):
        np.testing.assert_allclose(matrix(found), matrix(one), rtol=1e-9, atol=1e-9 * matrix(one).max())
    assert not np.allclose(matrix(one), matrix(first), rtol=0.01)


def test_labels_still_count_after_further_images() -> None:
    X, y = kinds(5, 60, gap=1.5)
    old, labels = source(normalize=False), np.where(np.arange(200) < 30, y[:200], -1)
    found = adapt(old, X[:200], clusters=6, labels=labels, method="cplfpa").update(X[200:])
    centres = k_means(X[:200], 6).cluster_centers_
    pseudo = PairMoments.of(X, np.square(X[:, None] - centres).sum(axis=2).argmin(axis=1))
    expected = estimate(old, CPLFPA, Covariances.of(pseudo, "pairs"), PairMoments.of(X[:30], y[:30]))
    np.testing.assert_allclose(matrix(found), expected.matrix_, rtol=1e-7, atol=1e-9 * expected.matrix_.max())


def test_where_there_are_no_moments_nothing_can_be_added() -> None:
    X, _ = kinds(5, 20)
    for adaptation in (
        adapt(source(), X[:10]),
        adapt(mixture(), X, clusters=5),
        adapt(source(), X, clusters=5, method=AdaptationSettings(softness=1)),
    ):
        with pytest.raises(UnsupportedOperationError, match=r"no moments .* call adapt with all images"):
            adaptation.update(X)


def test_further_images_are_checked() -> None:
    X, _ = kinds(5, 20)
    adaptation = adapt(source(), X, clusters=5)
    with pytest.raises(InputError, match="X has 5 features"):
        adaptation.update(X[:, :5])
    many = np.tile(X, (100, 1))
    many[9000] = 0  # in the second block
    with pytest.raises(InputError, match=r"zero vector in row 9000 \(1 of 10000 rows\)"):
        adaptation.update(many)


@pytest.mark.parametrize("clusters", [101, 1, 0, -3, 2.5, "many", None, True])
@pytest.mark.parametrize("method", ["auto", "cplfpa"])
def test_a_number_of_clusters_that_cannot_be_is_refused(clusters: Any, method: Any) -> None:
    X, _ = kinds(5, 20)
    for rows in (X, np.tile(X[:1], (100, 1))):  # before anything is looked at
        with pytest.raises(
            InputError, match=r"clusters must be 'auto' or a whole number from 2 to 99 for 100 images, go"
        ):
            adapt(source(), rows, clusters=clusters, method=method)


def test_one_image_has_no_two_clusters() -> None:
    with pytest.raises(InputError, match="from 2 to 0 for 1 images, got 2"):
        adapt(source(), kinds()[0][:1], clusters=2)


def test_as_many_clusters_as_images_have_no_same_pair() -> None:
    with pytest.raises(InputError, match="from 2 to 19 for 20 images, got 20"):
        adapt(source(), kinds(5, 4)[0], clusters=20, method="cplfpa")


@pytest.mark.parametrize("make", [source, mixture])
def test_images_that_cannot_be_used_are_refused(make: Any) -> None:
    X, _ = kinds(5, 20)
    broken, empty = X.copy(), np.tile(X, (100, 1))
    broken[7, 2], empty[9000] = np.nan, 0  # the latter in the second block
    for rows, message in (
        (broken, "X contains NaN in row 7"),
        (empty, "X has a zero vector in row 9000"),
        (X[:0], "X is not a matrix of embeddings"),
        (X[:, :5], "X has 5 features, but .* is expecting 6"),
        (X[0], "expected 2D array"),
    ):
        with pytest.raises(InputError, match=message):
            adapt(make(), rows, clusters=5)
    with pytest.raises(NotFittedError, match="not fitted yet; call fit"):
        adapt(type(make())(), X, clusters=5)
    with pytest.raises(InputError, match="method must be 'auto', 'cplfpa' or AdaptationSettings, got 'best'"):
        adapt(make(), X, clusters=5, method="best")  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["auto", "cplfpa", AdaptationSettings(softness=1), AdaptationSettings(nearest=0.5)])
@pytest.mark.parametrize("clusters", [6, "auto"])
def test_the_same_seed_gives_the_same_bits(method: Any, clusters: Any) -> None:
    X, _ = kinds(6, 30)
    first, again = (adapt(source(), X, clusters=clusters, method=method, seed=4) for _ in range(2))
    assert np.array_equal(matrix(first), matrix(again))
    assert (first.separation, first.clusters, first.reason) == (again.separation, again.clusters, again.reason)


def test_another_seed_starts_elsewhere() -> None:
    X = blob(200, 6)
    one, other = (adapt(source(), X, clusters=9, method="cplfpa", seed=seed) for seed in (0, 1))
    assert not np.array_equal(matrix(one), matrix(other))


def test_single_precision_and_torch() -> None:
    X, _ = kinds(6, 30)
    exact = adapt(source(), X, clusters=6)
    single = adapt(source(), X.astype(np.float32), clusters=6)
    np.testing.assert_allclose(matrix(single), matrix(exact), rtol=1e-3, atol=1e-3 * matrix(exact).max())
    assert matrix(single).dtype == np.float64
    assert np.array_equal(matrix(adapt(source(), torch.tensor(X), clusters=6)), matrix(exact))
    assert np.array_equal(matrix(adapt(source(), torch.tensor(X).float(), clusters=6)), matrix(single))
    assert np.array_equal(
        matrix(adapt(source(), X[:170], clusters=6).update(torch.tensor(X[170:]))),
        matrix(adapt(source(), X[:170], clusters=6).update(X[170:])),
    )


def test_a_memmap_is_adapted_to_as_an_array_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lookdown.adaptation.k_means.SAMPLE_ROWS", 2000)
    monkeypatch.setattr(pseudo_labels, "_BLOCK_ROWS", 30_000)
    X = kinds(5, 20_000)[0].astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    stored = np.load(tmp_path / "X.npy", mmap_mode="r")
    found = adapt(source(), stored, clusters=5)
    assert np.array_equal(matrix(found), matrix(adapt(source(), X, clusters=5)))
    assert np.array_equal(stored, X)


def test_memory_beside_the_images_does_not_grow_with_them() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 64)).astype(np.float32)
    X += 5 * rng.normal(size=(4, 64)).astype(np.float32)[rng.integers(4, size=len(X))]
    old, peaks = source(64), []
    for rows in (len(X) // 4, len(X)):
        tracemalloc.start()
        found = adapt(old, X[:rows], clusters=4)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.helped
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[1] < 100e6, "a tree of 4,096 rows takes the distances of their pairs"


def test_it_is_told_how_far_the_work_is() -> None:
    X, _ = kinds(5, 30, gap=1.5)
    shares: list[int] = []

    def progress(done: int, total: int | None, unit: str) -> None:
        assert (total, unit) == (100, "percent")
        shares.append(done)

    adapt(source(), X, progress=progress)
    assert len(shares) >= 2
    adapt(source(), X, method="cplfpa", progress=progress)
    assert len(shares) > 7, "the number of clusters is found step by step"
    assert shares[2:] == sorted(shares[2:])
    assert 0 < shares[0] < shares[-1] <= 100
