"""The Gaussian likelihood ratio against its definition, its invariances, and the paper's sign error."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import mahalanobis
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from lookdown import Cosine, Euclidean, GaussianLikelihoodRatio, PairMoments
from lookdown.errors import InputError, LowRankWarning, NotFittedError, UnsupportedOperationError
from lookdown.lab.synthetic.gaussian_world import GaussianWorld
from lookdown.metrics import Metric
from lookdown.metrics.covariance import shrink

Array = NDArray[np.float64]
WORLD = GaussianWorld.random(6)


def sample(seed: int = 0, classes: int = 40, per_class: int = 8) -> tuple[Array, NDArray[np.int64]]:
    return WORLD.chips(classes, per_class, np.random.default_rng(seed))


def shrunk(metric: GaussianLikelihoodRatio) -> tuple[Array, Array]:
    covariances = (metric.same_covariance_, metric.different_covariance_)
    return tuple(shrink(c, s) for c, s in zip(covariances, metric.shrinkage_, strict=True))  # type: ignore[return-value]


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("weighting", ["pairs", "classes"])
def test_kept_whole_it_is_the_log_likelihood_ratio(normalize: bool, weighting: Any) -> None:
    X, y = sample()
    metric = GaussianLikelihoodRatio(indefinite="keep", normalize=normalize, weighting=weighting).fit(X, y)
    same, different = (multivariate_normal(cov=c) for c in shrunk(metric))
    A, B = X[:5], X[5:12]
    scores = metric.score(A, B)
    if normalize:
        A, B = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (A, B))
    for i, j in np.ndindex(5, 7):
        assert scores[i, j] == pytest.approx(same.logpdf(A[i] - B[j]) - different.logpdf(A[i] - B[j]), abs=1e-9)


def test_clipped_it_drops_the_directions_in_which_same_pairs_spread_wider() -> None:
    X, y = sample()
    rng = np.random.default_rng(1)
    X = np.c_[X, rng.normal(size=(len(X), 12))]  # dimensions that tell nothing come out a little to either side
    kept, clipped = (GaussianLikelihoodRatio(indefinite=i, normalize=False).fit(X, y) for i in ("keep", "clip"))
    same, different = shrunk(kept)
    values, vectors = np.linalg.eigh(np.linalg.inv(same) - np.linalg.inv(different))
    assert 0 < (values < 0).sum() < 12
    np.testing.assert_allclose(kept.matrix_, (vectors * values) @ vectors.T, atol=1e-10)
    np.testing.assert_allclose(clipped.matrix_, (vectors * values.clip(min=0)) @ vectors.T, atol=1e-10)
    np.testing.assert_allclose(clipped.factor_ @ clipped.factor_.T, clipped.matrix_, atol=1e-12)
    assert clipped.factor_.shape == (18, clipped.rank_) == (18, (values > 0).sum())
    assert kept.rank_ == 18
    assert (
        clipped.offset_
        == kept.offset_
        == pytest.approx((np.linalg.slogdet(different)[1] - np.linalg.slogdet(same)[1]) / 2)
    )
    gaps = X[:9, None] - X[9:20]
    for metric in (kept, clipped):
        expected = metric.offset_ - np.einsum("ijk,kl,ijl->ij", gaps, metric.matrix_, gaps) / 2
        np.testing.assert_allclose(metric.score(X[:9], X[9:20]), expected, rtol=1e-9)


def test_theorem_1_the_clipped_score_is_minus_half_a_squared_mahalanobis_distance() -> None:
    X, y = sample()
    metric = GaussianLikelihoodRatio(normalize=False).fit(X, y)
    scores, distances = metric.score(X[:30], X[30:60]), metric.distance(X[:30], X[30:60])
    for i, j in np.ndindex(30, 30):
        expected = mahalanobis(X[i], X[30 + j], metric.matrix_)
        assert distances[i, j] == pytest.approx(expected, rel=1e-9)
        assert scores[i, j] == pytest.approx(metric.offset_ - expected**2 / 2, rel=1e-9)
    among = metric.distance(X[:30], X[:30])
    assert (distances[:, None] <= among[:, :, None] + distances[None] + 1e-9).all()  # the triangle inequality


def test_transformed_l2_ranks_as_the_score_does() -> None:
    X, y = sample()
    metric = GaussianLikelihoodRatio().fit(X, y)
    Z = metric.transform(X)
    by_hand = np.linalg.norm(Z[:20, None] - Z[20:], axis=2)
    np.testing.assert_array_equal(by_hand.argsort(axis=1), (-metric.score(X[:20], X[20:])).argsort(axis=1))


@pytest.mark.parametrize("indefinite", ["clip", "keep"])
def test_inner_products_of_augmented_vectors_are_the_scores(indefinite: Any) -> None:
    X, y = sample()
    metric = GaussianLikelihoodRatio(indefinite=indefinite, normalize=False).fit(X + 1e4, y)
    queries, gallery = metric.augment_query(X[:20] + 1e4), metric.augment_gallery(X[20:] + 1e4)
    np.testing.assert_allclose(queries @ gallery.T, metric.score(X[:20] + 1e4, X[20:] + 1e4), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("indefinite", ["clip", "keep"])
def test_scores_are_symmetric(indefinite: Any) -> None:
    X, y = sample()
    metric = GaussianLikelihoodRatio(indefinite=indefinite).fit(X, y)
    np.testing.assert_allclose(metric.score(X[:50], X[50:]), metric.score(X[50:], X[:50]).T, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("indefinite", ["clip", "keep"])
@pytest.mark.parametrize("normalize", [False, True])
def test_a_change_of_basis_changes_nothing(indefinite: Any, normalize: bool) -> None:
    X, y = sample()
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(6, 6)))[0]
    metric = GaussianLikelihoodRatio(indefinite=indefinite, normalize=normalize)
    plain = metric.fit(X, y).score(X[:30], X[30:])
    turned = metric.fit(X @ turn, y).score(X[:30] @ turn, X[30:] @ turn)
    np.testing.assert_allclose(plain, turned, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("indefinite", ["clip", "keep"])
def test_a_common_offset_changes_nothing_without_normalisation(indefinite: Any) -> None:
    X, y = sample()
    X = np.round(X, 3)
    metric = GaussianLikelihoodRatio(indefinite=indefinite, normalize=False)
    plain = metric.fit(X, y).score(X[:30], X[30:])
    moved = metric.fit(X + 1e6, y).score(X[:30] + 1e6, X[30:] + 1e6)
    np.testing.assert_allclose(plain, moved, rtol=1e-8, atol=1e-7)


@pytest.mark.parametrize("indefinite", ["clip", "keep"])
@pytest.mark.parametrize("scale", [1e-90, 1e-30, 1e30, 1e90])
def test_the_unit_of_the_embeddings_does_not_matter(indefinite: Any, scale: float) -> None:
    X, y = sample()
    for normalize in (False, True):
        metric = GaussianLikelihoodRatio(indefinite=indefinite, normalize=normalize)
        plain = metric.fit(X, y).score(X[:30], X[30:])
        rate = metric.false_alarm_rate(1.0, method="analytic")
        scaled = metric.fit(X * scale, y).score(X[:30] * scale, X[30:] * scale)
        np.testing.assert_allclose(scaled, plain, rtol=1e-9, atol=1e-9)
        assert metric.false_alarm_rate(1.0, method="analytic") == pytest.approx(rate, rel=1e-8)


@pytest.mark.parametrize(("scale", "remedy"), [(1e-120, "scale them up"), (1e120, "scale them down")])
def test_a_unit_beyond_what_can_be_squared_is_refused(scale: float, remedy: str) -> None:
    X, y = sample()
    with pytest.raises(InputError, match=remedy):
        GaussianLikelihoodRatio(normalize=False).fit(X * scale, y)
    GaussianLikelihoodRatio(normalize=True).fit(X * scale, y)


def test_what_a_metric_can_do_follows_from_its_last_fit() -> None:
    X, y = sample()
    metric = GaussianLikelihoodRatio().fit(X, y)
    metric.set_params(indefinite="keep")
    assert metric.is_euclidean
    metric.fit(X, y)
    assert not metric.is_euclidean
    assert not hasattr(metric, "factor_")
    metric.set_params(indefinite="clip")
    with pytest.raises(UnsupportedOperationError):
        metric.transform(X)


def test_a_fit_from_merged_moments_is_the_fit_on_all_samples() -> None:
    X, y = sample()
    merged = PairMoments.of(X[::2], y[::2], normalize=True) + PairMoments.of(X[1::2], y[1::2], normalize=True)
    whole = GaussianLikelihoodRatio().fit(X, y)
    np.testing.assert_allclose(GaussianLikelihoodRatio().fit_moments(merged).matrix_, whole.matrix_, rtol=1e-9)
    with pytest.raises(InputError, match=r"normalize=True, the metric has normalize=False; .*normalize=False\)"):
        GaussianLikelihoodRatio(normalize=False).fit_moments(merged)


def test_a_fit_from_covariances_is_the_fit_from_their_moments() -> None:
    X, y = WORLD.chips(30, 4, np.random.default_rng(0))
    moments = PairMoments.of(X, y)
    whole = GaussianLikelihoodRatio(normalize=False).fit(X, y)
    parts = GaussianLikelihoodRatio(normalize=False).fit_covariances(
        *moments.covariances(), moments.mean, free=(120 - 30, 120 - 1)
    )
    assert np.array_equal(whole.matrix_, parts.matrix_)
    assert whole.shrinkage_ == parts.shrinkage_


def test_single_precision_and_torch_stay_close_to_double() -> None:
    X, y = sample()
    metric = GaussianLikelihoodRatio().fit(X, y)
    exact = metric.score(X[:30], X[30:])
    single = metric.score(X[:30].astype(np.float32), X[30:].astype(np.float32))
    assert single.dtype == metric.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single, exact, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(metric.score(torch.tensor(X[:30]), torch.tensor(X[30:])), exact)


def test_with_keep_there_is_no_space_and_the_message_names_clip() -> None:
    X, y = sample()
    metric = GaussianLikelihoodRatio(indefinite="keep").fit(X, y)
    with pytest.raises(UnsupportedOperationError, match="indefinite='clip'"):
        metric.transform(X)
    with pytest.raises(UnsupportedOperationError, match="indefinite='clip'"):
        metric.distance(X, X)
    assert not hasattr(metric, "factor_")
    assert not metric.is_euclidean


@pytest.mark.parametrize(
    "metric", [GaussianLikelihoodRatio(), GaussianLikelihoodRatio(indefinite="keep"), Cosine(), Euclidean()], ids=str
)
def test_scores_of_aligned_pairs_are_the_diagonal_of_all_scores(metric: Metric) -> None:
    X, y = sample()
    metric.fit(X, y)
    np.testing.assert_allclose(
        metric.score_pairs(X[:50], X[50:100]), np.diag(metric.score(X[:50], X[50:100])), atol=1e-9
    )
    with pytest.raises(InputError, match="as many rows on both sides; got 3 and 4"):
        metric.score_pairs(X[:3], X[:4])


def average_precision(scores: NDArray[Any], relevant: NDArray[np.bool_]) -> float:
    """Mean over queries of the precision at each relevant item, one item at a time."""
    values = []
    for row, truth in zip(scores, relevant, strict=True):
        found, precisions = 0, []
        for rank, item in enumerate(np.argsort(-row, kind="stable"), start=1):
            if truth[item]:
                found += 1
                precisions.append(found / rank)
        values.append(np.mean(precisions))
    return float(100 * np.mean(values))


def digits() -> tuple[Array, NDArray[np.int64]]:
    X, y = load_digits(return_X_y=True)
    return PCA(30, random_state=0).fit_transform(X), y


def retrieve(metric: Metric, X: Array, y: NDArray[np.int64]) -> float:
    return average_precision(metric.score(X[:200], X[200:]), y[:200, None] == y[200:])


def test_the_literal_sign_of_the_paper_ranks_dissimilar_objects_first() -> None:
    X, y = digits()
    metric = GaussianLikelihoodRatio(normalize=False).fit(X[:900], y[:900])
    same, different = shrunk(metric)
    values, vectors = np.linalg.eigh(np.linalg.inv(different) - np.linalg.inv(same))  # Eq. 11 as printed
    root = vectors * np.sqrt(values.clip(min=0))
    gaps = (X[900:1100] @ root)[:, None] - (X[1100:] @ root)[None]
    literal = average_precision(np.square(gaps).sum(axis=2), y[900:1100, None] == y[1100:])
    ours = retrieve(metric, X[900:], y[900:])
    assert literal < 15 < 60 < ours
    assert metric.score(X[900:901], X[900:901]) >= metric.score(X[900:901], X[1100:]).max()


def test_digits_learnt_classes_are_found_better_and_unseen_classes_collapse() -> None:
    X, y = digits()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowRankWarning)
        metrics = [GaussianLikelihoodRatio(normalize=False), Euclidean(), Cosine()]
        known = [retrieve(metric.fit(X[:900], y[:900]), X[900:], y[900:]) for metric in metrics]
        source, target = y < 5, y >= 5
        unseen = [retrieve(metric.fit(X[source], y[source]), X[target], y[target]) for metric in metrics]
    assert known[0] > max(known[1:]) + 8
    assert unseen[0] < min(unseen[1:]) - 15


def test_a_metric_of_few_dimensions_warns() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 2000)
    X = rng.normal(size=(4000, 12))
    X[:, 1:] *= 1 + 0.5 * rng.random((4000, 1))
    X[y == 1] += 5
    with pytest.warns(LowRankWarning, match=r"in \d of 12 dimensions.*indefinite='keep'"):
        metric = GaussianLikelihoodRatio(normalize=False, shrinkage=0).fit(X, y)
    assert metric.rank_ < 6


def test_fewer_samples_than_dimensions_and_constant_columns_are_answered_by_shrinkage() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 3)
    X = 3 * rng.normal(size=(6, 40))[y] + rng.normal(size=(18, 40))
    X[:, :5] = 1.5
    metric = GaussianLikelihoodRatio(normalize=False).fit(X, y)
    scores = metric.score(X, X)
    assert np.isfinite(scores).all()
    same = y[:, None] == y
    assert scores[same].min() > scores[~same].max()
    with pytest.raises(InputError, match="singular"):
        GaussianLikelihoodRatio(normalize=False, shrinkage=0).fit(X, y)


@pytest.mark.parametrize("normalize", [False, True])
def test_copies_of_one_sample_are_refused(normalize: bool) -> None:
    rng = np.random.default_rng(0)
    metric = GaussianLikelihoodRatio(normalize=normalize)
    with pytest.raises(InputError, match=r"samples of each class are identical to rounding.*not copies of one"):
        metric.fit(rng.normal(size=(4, 3)).repeat(3, axis=0), np.arange(4).repeat(3))
    with pytest.raises(InputError, match="all samples are identical"):
        metric.fit(rng.normal(size=(1, 3)).repeat(12, axis=0), np.arange(4).repeat(3))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"shrinkage": 1.5}, "shrinkage must be"),
        ({"shrinkage": "some"}, "shrinkage must be"),
        ({"shrinkage": np.array([0.1, 0.2])}, "shrinkage must be"),
        ({"indefinite": "drop"}, "indefinite must be"),
        ({"weighting": "chips"}, "weighting must be"),
    ],
)
def test_parameters_are_checked_when_fitting(parameters: dict[str, Any], message: str) -> None:
    X, y = sample()
    with pytest.raises(InputError, match=message):
        GaussianLikelihoodRatio(**parameters).fit(X, y)


def test_input_that_does_not_fit_is_refused_by_name() -> None:
    X, y = sample()
    metric = GaussianLikelihoodRatio()
    with pytest.raises(NotFittedError, match="call fit"):
        metric.score(X, X)
    metric.fit(X, y)
    with pytest.raises(InputError, match="gallery has 5 features, but GaussianLikelihoodRatio is expecting 6"):
        metric.score(X, X[:, :5])
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(InputError, match="queries contains NaN in row 7"):
        metric.score(bad, X)
    with pytest.raises(InputError, match=r"1 feature\(s\)"):
        metric.fit(X[:, :1], y)
    with pytest.raises(InputError, match="takes PairMoments, got ndarray; embeddings go to fit"):
        metric.fit_moments(X)  # type: ignore[arg-type]


def test_the_shortlist_metric_of_an_indefinite_ratio_is_the_clipped_one() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(300) % 10
    X = rng.normal(size=(10, 6))[y] + rng.normal(size=(300, 6))
    kept = GaussianLikelihoodRatio(indefinite="keep").fit(X, y)
    clipped = GaussianLikelihoodRatio(indefinite="clip").fit(X, y)
    np.testing.assert_allclose(kept.shortlist_metric().score(X[:5], X), clipped.score(X[:5], X), rtol=1e-10)
    assert clipped.shortlist_metric() is clipped
