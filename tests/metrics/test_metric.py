"""Thresholds, rates and posteriors of every metric: what is asked for must be what happens."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone

from lookdown import (
    Cosine,
    Euclidean,
    GaussianLikelihoodRatio,
    KindLikelihoodRatio,
    MixtureLikelihoodRatio,
    evaluate,
    load_metric,
)
from lookdown.errors import InputError, NotCalibratedError, NotFittedError, UncalibratedWarning
from lookdown.lab.synthetic.gaussian_world import GaussianWorld
from lookdown.metrics import Metric

Array = NDArray[np.float64]
RATES = (1e-1, 1e-2, 1e-3)
WORLD = GaussianWorld.random(8, gap=1.0)
LARGE = WORLD.chips(3000, 2, np.random.default_rng(0))
HELD_OUT = WORLD.chips(3000, 2, np.random.default_rng(1))


@cache
def calibrated(indefinite: Any) -> GaussianLikelihoodRatio:
    """Return a ratio that nobody changes."""
    return GaussianLikelihoodRatio(indefinite=indefinite, normalize=False).fit(*LARGE).calibrate(*HELD_OUT)


def fresh_scores(metric: Metric, *, same: bool, count: int = 1_000_000) -> Array:
    """Score a million independent pairs, each of classes never seen before."""
    return np.asarray(metric.score_pairs(*WORLD.pairs(count, np.random.default_rng(2), same=same)))


@pytest.mark.parametrize("indefinite", ["clip", "keep"])
def test_realised_rates_on_a_million_fresh_pairs_are_within_ten_percent(indefinite: Any) -> None:
    metric = calibrated(indefinite)
    different, same = fresh_scores(metric, same=False), fresh_scores(metric, same=True)
    for rate in RATES:
        for method in ("empirical", "analytic"):
            threshold = metric.threshold(rate, method=method)
            assert np.mean(different >= threshold) == pytest.approx(rate, rel=0.1), (rate, method)
            detected = metric.detection_rate(threshold, method=method)
            assert np.mean(same >= threshold) == pytest.approx(detected, abs=0.02)
            assert metric.false_alarm_rate(threshold, method=method) == pytest.approx(rate, rel=1e-3)
        assert metric.threshold(rate).method == "empirical"
        assert metric.threshold(rate).supported
        assert metric.threshold(rate).low < metric.threshold(rate) < metric.threshold(rate).high


def test_without_calibration_the_model_answers_with_a_warning_and_no_interval() -> None:
    metric = GaussianLikelihoodRatio(normalize=False).fit(*LARGE)
    with pytest.warns(UncalibratedWarning, match=r"threshold at a false-alarm rate of 0\.01.*calibrate"):
        threshold = metric.threshold(0.01)
    assert threshold.method == "analytic"
    assert not threshold.supported
    assert np.isnan([threshold.low, threshold.high]).all()
    with pytest.warns(UncalibratedWarning, match="detection rate"):
        detected = metric.detection_rate(threshold)
    assert detected == pytest.approx(np.mean(fresh_scores(metric, same=True, count=100_000) >= threshold), abs=0.01)
    with pytest.warns(UncalibratedWarning, match="false-alarm rate"):
        assert metric.false_alarm_rate(threshold) == pytest.approx(0.01)
    with pytest.warns(UncalibratedWarning, match="posterior"):
        assert metric.posterior(0.0, prior=0.2) == pytest.approx(0.2)
    with pytest.raises(NotCalibratedError, match="calibrate"):
        metric.threshold(0.01, method="empirical")


def test_the_analytic_law_counts_dead_dimensions_as_dead() -> None:
    X, y = LARGE
    rng = np.random.default_rng(7)
    dead = np.c_[X, np.full((len(X), 4), 3.0)]
    metric = GaussianLikelihoodRatio(normalize=False, shrinkage=0.01).fit(dead, y)
    A, B = (np.c_[rows, np.full((200_000, 4), 3.0)] for rows in WORLD.pairs(200_000, rng, same=False))
    gaps = (A - B) @ metric.factor_
    scores = metric.offset_ - np.square(gaps).sum(axis=1) / 2
    assert np.mean(scores >= metric.threshold(0.01, method="analytic")) == pytest.approx(0.01, rel=0.1)


@pytest.mark.parametrize("metric", [Cosine(), Euclidean()], ids=str)
def test_metrics_without_a_model_decide_once_they_are_calibrated(metric: Metric) -> None:
    metric.fit(*LARGE)
    for method in ("auto", "analytic"):
        with pytest.raises(NotCalibratedError, match="has no model of its scores"):
            metric.threshold(0.1, method=method)
    with pytest.raises(NotCalibratedError, match="a posterior needs calibration"):
        metric.posterior(0.5, prior=0.1)
    metric.calibrate(*HELD_OUT)
    different = fresh_scores(metric, same=False, count=250_000)
    assert np.mean(different >= metric.threshold(0.01)) == pytest.approx(0.01, rel=0.15)


def test_posteriors_rise_with_the_score_follow_bayes_and_need_a_prior() -> None:
    metric = calibrated("keep")
    scores = np.linspace(-60, 8, 400)
    found = metric.posterior(scores, prior=0.3)
    assert found.shape == scores.shape
    assert (np.diff(found) >= 0).all()
    assert ((found > 0) & (found < 1)).all()
    middle = np.linspace(-3, 4, 15)  # the exact ratio of a true model is its own log-odds
    odds = np.log(metric.posterior(middle, 0.5) / (1 - metric.posterior(middle, 0.5)))
    np.testing.assert_allclose(odds, middle, atol=0.6)
    with pytest.raises(TypeError, match="prior"):
        metric.posterior(0.0)  # type: ignore[call-arg]
    for prior in (0, 1, -0.1):
        with pytest.raises(InputError, match="prior is between 0 and 1"):
            metric.posterior(0.0, prior)


def test_a_metric_fitted_to_clusters_answers_from_a_calibration_only(tmp_path: Path) -> None:
    metric = GaussianLikelihoodRatio(normalize=False).fit(*WORLD.chips(300, 2, np.random.default_rng(0)))
    metric.pseudo_labelled_ = True
    metric.save(tmp_path / "metric")
    for one in (metric, load_metric(tmp_path / "metric")):
        for method in ("auto", "analytic", "empirical"):
            with pytest.raises(NotCalibratedError, match="adapted by clusters, which have no valid rates"):
                one.threshold(0.01, method)
        with pytest.raises(NotCalibratedError, match="adapted by clusters, which have no valid rates"):
            one.posterior(0.0, prior=0.1)
        one.calibrate(*WORLD.chips(20, 3, np.random.default_rng(1)))
        assert one.threshold(0.1).method == "empirical"
        with pytest.raises(NotCalibratedError, match="adapted by clusters"):
            one.threshold(0.01, "analytic")
    assert not metric.fit(*WORLD.chips(300, 2, np.random.default_rng(0))).pseudo_labelled_


def test_a_new_fit_forgets_the_old_calibration() -> None:
    metric = (
        GaussianLikelihoodRatio(normalize=False).fit(*LARGE).calibrate(*WORLD.chips(20, 5, np.random.default_rng(0)))
    )
    assert metric.calibration_ is not None
    assert metric.fit(*LARGE).calibration_ is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(100)}, "no different pair"),
        ({"y": np.arange(100)}, "no same pair"),
        ({"groups": np.arange(99)}, "groups has 99 labels for 100 rows"),
        ({"background": np.ones((5, 8))}, "background must be 100 booleans"),
        ({"background": np.ones(100, dtype=bool)}, "no same pair"),
        ({"X": np.full((100, 8), np.nan)}, "NaN in row 0"),
        ({"X": np.ones((1, 8)), "y": [0]}, "no same pair"),
        ({"X": np.ones((100, 7))}, "expecting 8 features"),
    ],
)
def test_held_out_data_that_cannot_be_used_are_refused(change: dict[str, Any], message: str) -> None:
    X, y = WORLD.chips(20, 5, np.random.default_rng(0))
    with pytest.raises(InputError, match=message):
        Euclidean().fit(*LARGE).calibrate(**({"X": X, "y": y} | change))


@pytest.mark.parametrize("rate", [0, 1, -0.5, 2, float("nan"), None, "often", [0.1, 0.2]])
def test_a_rate_is_a_probability(rate: Any) -> None:
    metric = GaussianLikelihoodRatio(normalize=False).fit(*LARGE)
    with pytest.raises(InputError, match="a false-alarm rate"):
        metric.threshold(rate)
    with pytest.raises(InputError, match="a prior"):
        metric.posterior(0.0, rate)
    with pytest.raises(InputError, match="method must be"):
        metric.threshold(0.1, method="guess")  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        GaussianLikelihoodRatio().threshold(0.1)


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("indefinite", ["clip", "keep"])
def test_scores_far_out_have_rates_of_nothing_or_all_and_nan_has_none(calibrated: bool, indefinite: Any) -> None:
    metric = GaussianLikelihoodRatio(indefinite=indefinite, normalize=False).fit(*LARGE)
    method: Any = "analytic"
    if calibrated:
        metric.calibrate(*WORLD.chips(20, 5, np.random.default_rng(0)))
        method = "empirical"
    for rate in (metric.false_alarm_rate, metric.detection_rate):
        for far in (1e3, 1e18, np.inf):
            assert float(rate(far, method)) == pytest.approx(0, abs=1e-12)
            assert float(rate(-far * 1e3, method)) == pytest.approx(1, abs=1e-12)
        wrongs: list[Any] = [np.nan, None, "high"]
        for wrong in wrongs:
            with pytest.raises(InputError, match="must be a number"):
                rate(wrong, method)
    if not calibrated:
        assert np.isfinite(metric.threshold(1e-300, method="analytic"))
    else:
        with pytest.raises(InputError, match="score contains NaN"):
            metric.posterior([0.0, np.nan], 0.1)


def test_a_metric_without_its_methods_is_not_a_metric() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Metric()


@pytest.mark.parametrize("metric", [Cosine(), Euclidean()], ids=str)
def test_a_metric_that_learns_nothing_scores_and_is_calibrated_without_a_fit(metric: Metric) -> None:
    X, y = WORLD.chips(20, 5, np.random.default_rng(0))
    fitted = clone(metric).fit(X)
    np.testing.assert_array_equal(metric.score(X, X), fitted.score(X, X))
    np.testing.assert_array_equal(metric.score_pairs(X, X[::-1]), fitted.score_pairs(X, X[::-1]))
    with pytest.raises(InputError, match="gallery has 3 features, but queries has 8; embed both with the same network"):
        metric.score(X, X[:, :3])
    with pytest.raises(NotCalibratedError, match="has no model of its scores"):
        metric.threshold(0.1)
    with pytest.raises(NotFittedError, match="call fit"):
        metric.save("nowhere")
    assert evaluate(metric, X, y, X, y).mean_average_precision == evaluate(fitted, X, y, X, y).mean_average_precision
    assert float(metric.calibrate(X, y).threshold(0.1)) == float(fitted.calibrate(X, y).threshold(0.1))
    with pytest.raises(InputError, match="X has 3 features, but"):
        metric.calibrate(X[:, :3], y)


LEARNING = {"fit", "fit_moments", "fit_covariances", "fit_transform"}
METRICS = [
    GaussianLikelihoodRatio(),
    GaussianLikelihoodRatio(indefinite="keep"),
    MixtureLikelihoodRatio(),
    KindLikelihoodRatio(),
]


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_any_other_metric_that_is_not_fitted_says_so_whatever_it_is_asked(metric: Any) -> None:
    X, y = WORLD.chips(20, 5, np.random.default_rng(0))
    arguments: dict[str, tuple[Any, ...]] = {
        "score": (X, X), "score_pairs": (X, X), "distance": (X, X), "transform": (X,), "calibrate": (X, y),
        "threshold": (0.1,), "false_alarm_rate": (0.0,), "detection_rate": (0.0,), "posterior": (0.0, 0.1),
        "save": ("nowhere",), "shortlist_metric": (), "augment_query": (X,), "augment_gallery": (X,),
        "score_differences": (X,), "sample": (5, "same"), "score_query": (X, np.ones(len(X)), X),
        "temper": (X, y), "predict": (X,), "predict_proba": (X,), "terms": (X,), "pooled_terms": (X, np.ones(len(X))),
        "terms_of": ("ship",), "score_kind": ("ship", X),
    }  # fmt: skip
    own = {name for name in dir(type(metric)) if callable(getattr(type(metric), name))}
    scikit_learn = {*dir(BaseEstimator), *dir(TransformerMixin)}
    public = {name for name in own - scikit_learn - LEARNING if not name.startswith(("_", "set_"))}
    assert {"score", "calibrate", "save"} <= public
    for name in public:
        with pytest.raises(NotFittedError, match=r"is not fitted yet; call fit\(X, y\) first"):
            getattr(metric, name)(*arguments[name])
