"""The new metric by formula: what it takes from the source, from true labels and from earlier rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.adaptation.targets import k_means, kinds, on_sphere, ratio_matrix

from lookdown.adaptation import CPLFPA, AdaptationSettings
from lookdown.adaptation.adaptation_settings import AUTO
from lookdown.adaptation.pseudo_labels import Covariances
from lookdown.adaptation.target_metric import estimate, estimate_kinds, normalizes, target_clusters, weighting
from lookdown.metrics import Cosine, Euclidean, GaussianLikelihoodRatio, Metric, MixtureLikelihoodRatio, PairMoments
from lookdown.metrics.covariance import oas_shrinkage

FIXED = (0.2, 0.2)


def source(**parameters: Any) -> GaussianLikelihoodRatio:
    X, y = kinds(8, 10, seed=7)
    return GaussianLikelihoodRatio(**{"shrinkage": 0.2, "normalize": False} | parameters).fit(X, y)


def moments(rows: int = 60, seed: int = 1) -> PairMoments:
    X, y = kinds(4, 30, gap=2.0, seed=seed)
    return PairMoments.of(X[:rows], y[:rows])


def of(moments: PairMoments) -> Covariances:
    return Covariances.of(moments, "pairs")


def test_without_anything_else_it_is_the_ratio_of_the_pseudo_labels() -> None:
    found = estimate(source(), CPLFPA, of(moments()))
    same, different = moments().covariances()
    np.testing.assert_allclose(found.matrix_, ratio_matrix(same, different, FIXED), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.mean_, moments().mean)
    assert found.pseudo_labelled_
    assert found.calibration_ is None


@pytest.mark.parametrize(("chips", "share"), [(0, 0.0), (30, 1 / 3), (60, 0.5), (540, 0.9)])
def test_the_source_has_a_share_of_its_chips_among_all(chips: float, share: float) -> None:
    old, target = source(), of(moments(60))
    found = estimate(old, AdaptationSettings(source_chips=chips), target)
    same = (1 - share) * target.same + share * old.same_covariance_
    different = (1 - share) * target.different + share * old.different_covariance_
    np.testing.assert_allclose(found.same_covariance_, same, rtol=1e-12)
    np.testing.assert_allclose(found.different_covariance_, different, rtol=1e-12)
    np.testing.assert_allclose(found.matrix_, ratio_matrix(same, different, FIXED), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("plain", [Cosine(), Euclidean()], ids=str)
def test_a_source_without_statistics_has_no_share(plain: Metric) -> None:
    target = of(moments())
    found = estimate(plain.fit(np.ones((1, 6))), AdaptationSettings(source_chips=1000), target)
    np.testing.assert_array_equal(found.same_covariance_, target.same)
    assert found.normalize == normalizes(plain) == isinstance(plain, Cosine)
    assert found.shrinkage == 0.1


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("shrinkage", [0.2, "auto"])
def test_full_rank_takes_part_of_the_different_pairs_away(share: float, shrinkage: Any) -> None:
    target = of(moments())
    found = estimate(source(shrinkage=shrinkage), AdaptationSettings(full_rank=share), target)
    sphere = np.eye(6) / 6
    amounts = [
        oas_shrinkage(c, n) if shrinkage == "auto" else shrinkage
        for c, n in ((target.same, 60 - 4), (target.different, 59))
    ]
    near, far = (
        np.linalg.inv((1 - a) * c + a * np.trace(c) * sphere)
        for c, a in zip((target.same, target.different), amounts, strict=True)
    )
    values, vectors = np.linalg.eigh(near - (1 - share) * far)
    np.testing.assert_allclose(
        found.matrix_, (vectors * values.clip(min=0)) @ vectors.T, rtol=1e-9, atol=1e-12 * values.max()
    )
    assert found.rank_ == (values > 0).sum()
    assert share < 0.9 or found.rank_ == 6


def test_true_labels_have_a_share_that_grows_with_them() -> None:
    pseudo = of(moments())
    for rows in (12, 60, 120):
        true = of(moments(rows, seed=2))
        share = 12 / (12 + rows - 4)
        found = estimate(source(), CPLFPA, pseudo, moments(rows, seed=2))
        np.testing.assert_allclose(found.same_covariance_, share * pseudo.same + (1 - share) * true.same)
        np.testing.assert_allclose(found.different_covariance_, share * pseudo.different + (1 - share) * true.different)
        np.testing.assert_array_equal(found.mean_, true.mean)


def test_labels_pseudo_labels_and_the_source_together() -> None:
    old, pseudo, true = source(), of(moments()), of(moments(20, seed=2))
    found = estimate(old, AdaptationSettings(source_chips=20), pseudo, moments(20, seed=2))
    otherwise = 0.75 * pseudo.same + 0.25 * old.same_covariance_
    share = 12 / (12 + 20 - 4)
    np.testing.assert_allclose(found.same_covariance_, (1 - share) * true.same + share * otherwise)


def test_without_clusters_the_source_stands_in_for_them_and_else_the_sphere() -> None:
    old, true, share = source(), of(moments(20, seed=2)), 12 / (12 + 20 - 4)
    found = estimate(old, CPLFPA, None, moments(20, seed=2))
    np.testing.assert_allclose(found.same_covariance_, (1 - share) * true.same + share * old.same_covariance_)
    found = estimate(Euclidean().fit(np.ones((1, 6))), CPLFPA, None, moments(20, seed=2))
    for part, whole in ((found.same_covariance_, true.same), (found.different_covariance_, true.different)):
        np.testing.assert_allclose(part, (1 - share) * whole + share * np.trace(whole) / 6 * np.eye(6))


def test_shrinkage_counts_the_chips_behind_a_blend_and_not_its_labels_alone() -> None:
    """The variance of a blend is (1 - s)^2 / n + s^2 / m of that of one chip."""
    pseudo, share = of(moments(100)), 12 / (12 + 8 - 4)
    found = estimate(source(shrinkage="auto"), CPLFPA, pseudo, moments(8, seed=2))
    behind = [1 / ((1 - share) ** 2 / n + share**2 / m) for n, m in ((8 - 4, 100 - 4), (7, 99))]
    assert found.shrinkage_ == pytest.approx(
        (oas_shrinkage(found.same_covariance_, behind[0]), oas_shrinkage(found.different_covariance_, behind[1]))
    )
    alone = estimate(source(shrinkage="auto"), CPLFPA, None, moments(8, seed=2))
    behind = [n / (1 - share) ** 2 for n in (8 - 4, 7)]
    assert alone.shrinkage_ == pytest.approx(
        (oas_shrinkage(alone.same_covariance_, behind[0]), oas_shrinkage(alone.different_covariance_, behind[1]))
    )


def test_parameters_are_those_of_the_source_but_for_what_settings_say() -> None:
    old = source(shrinkage=0.3, indefinite="keep", weighting="classes")
    target = of(moments())
    assert estimate(old, CPLFPA, target).get_params() == old.get_params()
    changed = estimate(old, AdaptationSettings(indefinite="clip", weighting="pairs"), target)
    assert changed.get_params() == old.get_params() | {"indefinite": "clip", "weighting": "pairs"}
    assert weighting(old, CPLFPA) == "classes"
    assert weighting(old, AdaptationSettings(weighting="pairs")) == "pairs"
    assert weighting(Cosine(), CPLFPA) == "pairs"
    mixture = MixtureLikelihoodRatio(1, 2, shrinkage=0.4, normalize=False, weighting="classes")
    of_mixture = estimate(mixture, CPLFPA, target)
    expected = {"shrinkage": 0.4, "indefinite": "keep", "normalize": False, "weighting": "classes"}
    assert of_mixture.get_params() == expected


@pytest.mark.parametrize("normalize", [False, True])
def test_later_rounds_cluster_in_the_space_of_the_metric_so_far(normalize: bool) -> None:
    X, _ = kinds(5, 40, gap=1.2)
    old = source(normalize=normalize, indefinite="keep")  # a space is needed all the same
    first = k_means(on_sphere(X) if normalize else X, 6, seed=2)
    np.testing.assert_array_equal(target_clusters(old, X, 6, CPLFPA, X, 2).assign(X)[0], first.labels_)
    labels = first.labels_
    for rounds in (2, 3):
        metric = GaussianLikelihoodRatio(0.2, normalize=normalize).fit(X, labels)
        labels = k_means(metric.transform(X), 6, seed=2).labels_
        found = target_clusters(old, X, 6, AdaptationSettings(rounds=rounds), X, 2)
        np.testing.assert_array_equal(found.assign(X)[0], labels)
    assert not np.array_equal(labels, first.labels_)


def test_later_rounds_blend_in_the_source_too() -> None:
    X, _ = kinds(5, 40, gap=1.2)
    old, settings = source(), AdaptationSettings(rounds=2, source_chips=500)
    so_far = of(PairMoments.of(X, k_means(X, 6).labels_))
    expected = k_means(estimate(old, settings, so_far).transform(X), 6).labels_
    np.testing.assert_array_equal(target_clusters(old, X, 6, settings, X).assign(X)[0], expected)


@pytest.mark.parametrize(("empty", "novelty"), [(0, 0.1), (2, 0.1), (20, 20 / 48), (2000, 0.9)])
def test_background_has_its_share_of_the_marks_among_what_is_of_no_kind(empty: int, novelty: float) -> None:
    X, y = kinds(4, 7, seed=3)
    rng = np.random.default_rng(0)
    marked = np.concatenate([X, rng.normal(size=(empty, X.shape[1]))])
    labels = np.r_[y, 4 + np.arange(empty)]
    names = np.array(["barge", "ferry", "tanker", "tug"])
    found = estimate_kinds(Cosine(), AUTO, None, PairMoments.of(marked, labels, normalize=True), names=names)
    assert found.novelty == pytest.approx(novelty)
    assert found.kinds_.tolist() == names.tolist()
    assert found.predict_proba(marked[:28]).shape == (28, 4)
    assert (found.predict(marked[:28]) == names[y]).mean() > 0.7
