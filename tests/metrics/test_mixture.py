"""The mixture likelihood ratio behind the protocol of the Gaussian one."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.utils.estimator_checks import check_estimator
from tests.metrics.test_scikit_learn_contract import COMPARES

from lookdown import GaussianLikelihoodRatio, MixtureLikelihoodRatio, PairMoments, load_metric
from lookdown.errors import CollapsedComponentWarning, InputError, UncalibratedWarning
from lookdown.metrics import QuadraticForm, top_k
from lookdown.metrics.covariance import oas_shrinkage, shrink
from lookdown.metrics.differences import draw_differences

Array = NDArray[np.float64]


def clusters(seed: int = 0, samples: int = 900, dim: int = 5, classes: int = 4) -> tuple[Array, NDArray[np.int64]]:
    """Few classes far apart: differences of different kinds gather in six places, which is no Gaussian."""
    centres = 4 * np.random.default_rng(42).normal(size=(classes, dim))
    rng = np.random.default_rng(seed)
    y = np.arange(samples) % classes
    return centres[y] + rng.normal(size=(samples, dim)), y


X, Y = clusters()
METRIC = MixtureLikelihoodRatio(different=7, normalize=False, pairs=10_000).fit(X, Y)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("weighting", ["pairs", "classes"])
def test_one_component_each_is_the_gaussian_ratio(normalize: bool, weighting: Any) -> None:
    options: dict[str, Any] = {"normalize": normalize, "weighting": weighting}
    mixture = MixtureLikelihoodRatio(same=1, different=1, **options).fit(X, Y)
    gaussian = GaussianLikelihoodRatio(indefinite="keep", **options).fit(X, Y)
    np.testing.assert_allclose(mixture.score(X[:50], X[50:]), gaussian.score(X[:50], X[50:]), rtol=1e-9, atol=1e-9)
    assert mixture.shrinkage_ == gaussian.shrinkage_
    assert mixture.converged_ == {"same": True, "different": True}


def test_a_diagonal_single_component_has_the_exact_variances() -> None:
    mixture = MixtureLikelihoodRatio(1, 1, "diagonal", shrinkage=0, normalize=False).fit(X, Y)
    expected = np.diag(PairMoments.of(X, Y).different_covariance)
    np.testing.assert_allclose(mixture.different_.covariances[0], expected, rtol=1e-12)


def test_scores_are_symmetric_bit_for_bit_on_differences_and_to_rounding_in_blocks(monkeypatch: Any) -> None:
    monkeypatch.setattr("lookdown.metrics.mixture._BLOCK_ROWS", 37)
    gaps = X[:300] - X[300:600]
    np.testing.assert_array_equal(METRIC.score_differences(gaps), METRIC.score_differences(-gaps))
    np.testing.assert_array_equal(METRIC.score_pairs(X[:300], X[300:600]), METRIC.score_pairs(X[300:600], X[:300]))
    scores = METRIC.score(X[:100], X[100:])
    np.testing.assert_allclose(scores, METRIC.score(X[100:], X[:100]).T, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(np.diag(scores), METRIC.score_pairs(X[:100], X[100:200]), rtol=1e-9, atol=1e-9)


def test_a_mixture_tells_more_than_a_gaussian_where_differences_cluster() -> None:
    held_out, labels = clusters(seed=1)
    rng = np.random.default_rng(0)
    i, j = rng.integers(len(labels), size=(2, 20_000))
    same = labels[i] == labels[j]
    gaussian = GaussianLikelihoodRatio(indefinite="keep", normalize=False).fit(X, Y)
    gains = []
    for metric in (METRIC, gaussian):
        scores = metric.score_pairs(held_out[i], held_out[j])
        gains.append(np.logaddexp(0, np.where(same, -scores, scores)).mean())  # log loss at even odds
    assert gains[0] < 0.8 * gains[1]
    assert (
        METRIC.bic_["different"]
        < MixtureLikelihoodRatio(1, 1, normalize=False, pairs=10_000).fit(X, Y).bic_["different"]
    )


def test_bic_finds_the_number_of_places() -> None:
    auto = MixtureLikelihoodRatio(
        same=3, different=12, components="auto", normalize=False, pairs=5_000, shrinkage=0
    ).fit(X, Y)
    assert len(auto.same_.weights) == 1
    assert 6 <= len(auto.different_.weights) <= 8  # six places, and the component at zero if it found a use


def test_a_seed_fixes_every_bit() -> None:
    twins = [MixtureLikelihoodRatio(different=4, pairs=2_000, seed=s).fit(X, Y) for s in (3, 3, 4)]
    scores = [metric.score(X[:20], X[20:60]) for metric in twins]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scoring_takes_no_more_memory_than_its_blocks(normalize: bool, dtype: Any) -> None:
    metric = MixtureLikelihoodRatio(different=3, normalize=normalize, pairs=2_000).fit(X, Y)
    wide = np.random.default_rng(0).normal(size=(48_000, X.shape[1])).astype(dtype)
    extra = []
    for rows in (6_000, 48_000):
        metric.score(wide[:10], wide[:10])
        tracemalloc.start()
        answer = metric.score(wide[:64], wide[:rows])
        extra.append(tracemalloc.get_traced_memory()[1] - answer.nbytes)
        tracemalloc.stop()
    assert max(extra) < 2.5e6
    assert extra[1] < extra[0] + 1e5  # a copy of the larger gallery would take 1.7 MB more


def test_differences_are_scored_in_blocks() -> None:
    x = np.random.default_rng(0).normal(size=(60_000, X.shape[1]))
    tracemalloc.start()
    answer = METRIC.score_differences(x)
    assert tracemalloc.get_traced_memory()[1] < 3 * answer.nbytes + 2e6
    tracemalloc.stop()


def test_a_shortlist_by_the_gaussian_holds_the_best_of_the_mixture() -> None:
    shortlist = METRIC.shortlist_metric()
    assert shortlist.is_euclidean
    np.testing.assert_allclose(shortlist.matrix_, GaussianLikelihoodRatio(normalize=False).fit(X, Y).matrix_, rtol=1e-9)
    best = top_k(METRIC, X[:40], X[40:], 10).indices
    first = top_k(shortlist, X[:40], X[40:], 200).indices
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(best, first, strict=True)]) > 0.95


def test_samples_come_from_the_hypothesis_asked_for() -> None:
    for hypothesis, covariance in (("same", METRIC.same_covariance_), ("different", METRIC.different_covariance_)):
        x = METRIC.sample(100_000, hypothesis, seed=1)  # type: ignore[arg-type]
        np.testing.assert_allclose(np.trace(x.T @ x / len(x)), np.trace(covariance), rtol=0.05)
        np.testing.assert_array_equal(x, METRIC.sample(100_000, hypothesis, seed=1))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'same' or 'different'"):
        METRIC.sample(10, "H1")  # type: ignore[arg-type]


def test_bic_is_its_formula() -> None:
    metric = MixtureLikelihoodRatio(different=3, pairs=2_000, normalize=False, seed=4).fit(X, Y)
    for name, mixture in (("same", metric.same_), ("different", metric.different_)):
        x = draw_differences(X, Y, same=name == "same", pairs=2_000, weighting="pairs", seed=4)
        d, k = 5, len(mixture.weights)
        free = (k - 1) + k * d * (d + 1) // 2 + d * sum(mean.any() for mean in mixture.means)
        assert metric.bic_[name] == pytest.approx(free * np.log(2_000) - 2 * mixture.log_density(x).sum(), rel=1e-12)


def test_components_follow_the_weighting() -> None:
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(400), np.repeat(np.arange(1, 6), 12)].astype(int)
    spread = np.where(y == 0, 0.2, 3.0)[:, None]
    wide = 6 * rng.normal(size=(6, 4))[y] + spread * rng.normal(size=(460, 4))
    for weighting in ("pairs", "classes"):
        metric = MixtureLikelihoodRatio(2, 6, weighting=weighting, normalize=False).fit(wide, y)
        for mixture, covariance in (
            (metric.same_, metric.same_covariance_),
            (metric.different_, metric.different_covariance_),
        ):
            traces = np.trace(mixture.covariances, axis1=1, axis2=2) + np.square(mixture.means).sum(axis=1)
            assert mixture.weights @ traces == pytest.approx(np.trace(covariance), rel=0.1)


def test_a_component_is_shrunk_by_its_share_of_the_chips() -> None:
    few, labels = clusters(samples=80, dim=8)
    options: dict[str, Any] = {"different": 3, "pairs": 3_000, "normalize": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapsedComponentWarning)
        shrunk = MixtureLikelihoodRatio(**options).fit(few, labels).different_
        plain = MixtureLikelihoodRatio(**options, shrinkage=0).fit(few, labels).different_
    assert len(plain.weights) > 1
    for weight, raw, found in zip(plain.weights, plain.covariances, shrunk.covariances, strict=True):
        np.testing.assert_allclose(found, shrink(raw, oas_shrinkage(raw, 79 * weight)), rtol=1e-9)


def test_rounds_end_with_max_iter_or_with_tol_a_difference() -> None:
    short = MixtureLikelihoodRatio(different=3, pairs=2_000, normalize=False, max_iter=2, tol=0).fit(X, Y)
    assert (len(short.objectives_["different"]), short.converged_["different"]) == (2, False)
    full = MixtureLikelihoodRatio(different=3, pairs=2_000, normalize=False, tol=1e-2).fit(X, Y)
    gains = np.diff(full.objectives_["different"]) / 2_000
    assert full.converged_["different"]
    assert gains[-1] < 1e-2
    assert (gains[:-1] >= 1e-2).all()


def test_one_component_each_decides_as_the_gaussian_ratio_does() -> None:
    few, labels = clusters(samples=60, dim=20)
    mixture = MixtureLikelihoodRatio(1, 1, normalize=False).fit(few, labels)
    gaussian = GaussianLikelihoodRatio(indefinite="keep", normalize=False).fit(few, labels)
    for rate in (1e-1, 1e-3, 1e-6):
        found = mixture.threshold(rate, method="analytic")
        assert found == pytest.approx(gaussian.threshold(rate, method="analytic"), rel=1e-6)
        assert found.method == "analytic"


def test_simulated_rates_reach_far_beyond_one_in_the_draws() -> None:
    """With one component each the exact law is known; diagonal covariances take the simulated one."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(400), 5)
    flat = (2 * rng.normal(size=(400, 6)))[y] + rng.normal(size=(2000, 6))
    simulated = MixtureLikelihoodRatio(1, 1, "diagonal", normalize=False, shrinkage=0).fit(flat, y)
    variances = simulated.same_.covariances[0], simulated.different_.covariances[0]
    form = QuadraticForm((1 / variances[0] - 1 / variances[1]) * variances[1])
    offset = np.log(variances[1] / variances[0]).sum() / 2
    for rate, error in ((1e-1, 0.02), (1e-3, 0.05), (1e-5, 0.15), (1e-7, 0.6)):
        threshold = simulated.threshold(rate, method="analytic")
        assert threshold.method == "simulated"
        assert form.cdf(2 * (offset - threshold)) == pytest.approx(rate, rel=error)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_what_the_gaussian_metric_refuses_is_refused(covariance: Any) -> None:
    dead = np.c_[X, np.full(len(X), 2.0)]
    with pytest.raises(InputError, match=r"no spread in some direction.*shrinkage=0"):
        MixtureLikelihoodRatio(1, 2, covariance, pairs=500, shrinkage=0, ridge=0, normalize=False).fit(dead, Y)
    with pytest.raises(InputError, match=r"1 feature\(s\)"):
        MixtureLikelihoodRatio(1, 1, covariance).fit(X[:, :1], Y)
    metric = MixtureLikelihoodRatio(1, 2, covariance, pairs=500, normalize=False).fit(X, Y)
    for work in (metric.score, metric.score_pairs):
        with pytest.raises(InputError, match="overflows"):
            work(X[:3] * 1e200, X[3:6])
    with pytest.raises(InputError, match="differences has 4 features"):
        metric.score_differences(X[:, :4])
    with pytest.raises(InputError, match="differences contains NaN"):
        metric.score_differences(np.full((2, 5), np.nan))
    with pytest.raises(InputError, match="n must be a whole number"):
        metric.sample(2.5, "same")  # type: ignore[arg-type]


def test_decisions_work_as_for_the_gaussian_metric(tmp_path: Path) -> None:
    metric = MixtureLikelihoodRatio(different=7, normalize=False, pairs=5_000).fit(X, Y)
    with pytest.warns(UncalibratedWarning, match="threshold"):
        modelled = metric.threshold(0.01)
    assert modelled.method == "simulated"
    drawn = metric.score_differences(metric.sample(200_000, "different", seed=5))
    assert np.mean(drawn >= modelled) == pytest.approx(0.01, rel=0.1)
    assert metric.false_alarm_rate(modelled, method="analytic") == pytest.approx(0.01, rel=0.01)
    same = metric.score_differences(metric.sample(200_000, "same", seed=5))
    assert metric.detection_rate(modelled, method="analytic") == pytest.approx(np.mean(same >= modelled), abs=0.01)
    metric.calibrate(*clusters(seed=2, samples=400))
    cut = metric.threshold(0.01)
    assert cut.method == "empirical"
    metric.save(tmp_path / "metric")
    twin = load_metric(tmp_path / "metric")
    assert isinstance(twin, MixtureLikelihoodRatio)
    np.testing.assert_array_equal(twin.score(X[:50], X[50:]), metric.score(X[:50], X[50:]))
    assert twin.threshold(0.01) == cut
    assert (twin.bic_, twin.converged_, twin.objectives_) == (metric.bic_, metric.converged_, metric.objectives_)
    np.testing.assert_array_equal(twin.shortlist_metric().matrix_, metric.shortlist_metric().matrix_)


@pytest.mark.parametrize("pairs", [300, "all"])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_more_components_than_the_data_carry_are_answered(covariance: Any, pairs: Any) -> None:
    few, labels = clusters(samples=12)
    with pytest.warns(CollapsedComponentWarning):
        metric = MixtureLikelihoodRatio(5, 40, covariance, pairs=pairs, normalize=False).fit(few, labels)
    assert np.isfinite(metric.score(few, few)).all()
    assert len(metric.different_.weights) < 40


def test_duplicate_points_are_answered() -> None:
    doubled, labels = np.repeat(X[:40], 3, axis=0), np.repeat(Y[:40], 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapsedComponentWarning)
        metric = MixtureLikelihoodRatio(3, 5, normalize=False).fit(doubled, labels)
    assert np.isfinite(metric.score(doubled, doubled)).all()


def test_without_a_ridge_a_vanishing_component_is_named() -> None:
    doubled, labels = np.repeat(X[:8], 30, axis=0), np.repeat(Y[:8], 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapsedComponentWarning)
        with pytest.raises(InputError, match="no spread in some direction, with ridge=0"):
            MixtureLikelihoodRatio(1, 6, normalize=False, ridge=0, tol=0).fit(doubled, labels)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (X, np.zeros(len(X)), "no different pair"),
        (X, np.arange(len(X)), "no same pair"),
        (np.full_like(X, np.nan), Y, "NaN in row 0"),
        (np.ones_like(X), Y, "all samples are identical"),
        (X * 0, Y, "zero vector in row 0"),
        (X, None, "y is missing"),
        (X, Y[1:], "labels for 900 rows"),
    ],
)
def test_data_without_an_answer_are_refused(X: Any, y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        MixtureLikelihoodRatio(different=2).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"same": 0}, "same must be a whole number"),
        ({"different": 2.5}, "different must be a whole number"),
        ({"pairs": "some"}, "pairs must be a whole number"),
        ({"covariance": "tied"}, "covariance must be 'full' or 'diagonal'"),
        ({"components": "best"}, "components must be 'fixed' or 'auto'"),
        ({"weighting": "chips"}, "weighting must be"),
        ({"shrinkage": 2}, "shrinkage must be"),
        ({"ridge": -1}, "ridge must be a number from 0"),
        ({"ridge": np.inf}, "ridge must be a number from 0"),
        ({"tol": float("nan")}, "tol must be a number from 0"),
        ({"tol": None}, "tol must be a number from 0"),
        ({"seed": None}, "seed must be a whole number of at least 0"),
        ({"pairs": "all", "weighting": "classes"}, "for classes give a number"),
    ],
)
def test_parameters_are_checked_when_fitting(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MixtureLikelihoodRatio(**parameters).fit(X, Y)


def test_the_estimator_checks_pass() -> None:
    metric = MixtureLikelihoodRatio(different=2, pairs=500, normalize=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(metric, expected_failed_checks=COMPARES)
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == set(COMPARES)
