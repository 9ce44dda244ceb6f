"""Rates counted over held-out pairs: exact counts, honest intervals, ties."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lookdown import Euclidean, GaussianLikelihoodRatio, load_metric
from lookdown.errors import NotCalibratedError
from lookdown.lab.synthetic.gaussian_world import GaussianWorld
from lookdown.metrics import Calibration, Metric, calibration

Array = NDArray[np.float64]
WORLD = GaussianWorld.random(8, gap=1.0)
METRIC = GaussianLikelihoodRatio(normalize=False).fit(*WORLD.chips(3000, 2, np.random.default_rng(0)))


def calibrate(X: Array, y: Any, metric: Metric = METRIC, **options: Any) -> Calibration:
    found = metric.calibrate(X, y, **options).calibration_
    assert found is not None
    return found


def naive_scores(metric: Metric, X: Array, y: Any, background: Any) -> tuple[Array, Array]:
    """All pairs that have an object in them, one at a time."""
    same: list[float] = []
    different: list[float] = []
    for i, j in combinations(range(len(X)), 2):
        if background[i] and background[j]:
            continue
        alike = y[i] == y[j] and not background[i] and not background[j]
        (same if alike else different).append(metric.score(X[i : i + 1], X[j : j + 1])[0, 0])
    return np.array(same), np.array(different)


def test_rates_are_counts_over_all_held_out_pairs_with_background_as_different(monkeypatch: Any) -> None:
    monkeypatch.setattr(calibration, "_BLOCK_PAIRS", 500)  # several blocks
    X, y = WORLD.chips(8, 9, np.random.default_rng(3))
    background = np.arange(72) % 5 == 0
    found = calibrate(X, y, background=background)
    same, different = naive_scores(METRIC, X, y, background)
    assert (found.same_pairs, found.different_pairs) == (len(same), len(different))
    assert (found.same_groups, found.different_groups) == ((~background).sum(), 72)
    for score in found.scores[::7]:
        just_below = score - found.resolution / 4  # the oracle rounds otherwise than the matrix product
        assert found.false_alarm_rate(score) == pytest.approx(np.mean(different >= just_below), abs=1e-12)
        assert found.detection_rate(score) == pytest.approx(np.mean(same >= just_below), abs=1e-12)
    for rate in (0.5, 0.1, 0.02):
        assert np.mean(different >= found.threshold(rate)) == pytest.approx(rate, abs=2 / len(different))


def test_labels_of_background_are_not_read() -> None:
    X, y = WORLD.chips(8, 9, np.random.default_rng(3))
    background = np.arange(72) % 5 == 0
    unlabelled = y.astype(str).astype(object)
    unlabelled[background] = None
    plain, found = calibrate(X, y, background=background), calibrate(X, unlabelled, background=background)
    np.testing.assert_array_equal(found.false_alarm, plain.false_alarm)
    np.testing.assert_array_equal(found.detection, plain.detection)


def test_objects_of_unknown_class_are_compared_with_background_only() -> None:
    X, y = WORLD.chips(8, 9, np.random.default_rng(3))
    background = np.arange(72) % 5 == 0
    unknown = np.arange(72) % 3 == 1
    labels = np.where(unknown, -1, y)
    found = calibrate(X, labels, background=background)
    same: list[float] = []
    different: list[float] = []
    for i, j in combinations(range(72), 2):
        if background[i] and background[j]:
            continue
        if not (background[i] or background[j]) and (unknown[i] or unknown[j]):
            continue
        alike = not (background[i] or background[j]) and y[i] == y[j]
        (same if alike else different).append(METRIC.score(X[i : i + 1], X[j : j + 1])[0, 0])
    assert (found.same_pairs, found.different_pairs) == (len(same), len(different))
    score = float(np.quantile(different, 0.9))
    assert found.false_alarm_rate(score) == pytest.approx(np.mean(np.array(different) >= score), abs=2e-3)
    with_none = [None if label == -1 else str(label) for label in labels]
    assert calibrate(X, with_none, background=background).different_pairs == len(different)


def test_background_alone_gives_a_threshold_and_no_detection_rate(tmp_path: Any) -> None:
    X, _ = WORLD.chips(8, 9, np.random.default_rng(3))
    background = np.arange(72) % 2 == 0
    metric = GaussianLikelihoodRatio(normalize=False).fit(*WORLD.chips(300, 2, np.random.default_rng(0)))
    metric.calibrate(X, background=background)
    against = metric.score(X[~background], X[background]).ravel()
    assert np.mean(against >= metric.threshold(0.05)) == pytest.approx(0.05, abs=2 / len(against))
    metric.save(tmp_path / "metric")
    for one in (metric, load_metric(tmp_path / "metric")):
        assert one.threshold(0.05, "empirical").method == "empirical"
        with pytest.raises(NotCalibratedError, match="a detection rate needs same pairs"):
            one.detection_rate(0.0)
        with pytest.raises(NotCalibratedError, match="a posterior needs same pairs"):
            one.posterior(0.0, prior=0.1)


def test_rates_reach_one_and_zero_at_the_extremes_of_both_kinds() -> None:
    X, y = WORLD.chips(6, 4, np.random.default_rng(3))
    found = calibrate(X, y)
    scores = np.concatenate(naive_scores(METRIC, X, y, np.zeros(24, dtype=bool)))
    for rate in (found.false_alarm_rate, found.detection_rate):
        assert float(rate(scores.min() - 1)) == 1
        assert float(rate(scores.max() + 1)) == 0
    assert found.false_alarm_rate(scores.max() + 1).high > 0, "nothing seen is not nothing there"
    assert not found.false_alarm_rate(scores.max() + 1).supported


def test_where_scores_tie_the_rate_is_kept_from_above() -> None:
    rng = np.random.default_rng(0)
    places = rng.normal(size=(4, 8))
    X, y = places[rng.integers(4, size=200)], rng.integers(20, size=200)
    found = calibrate(X, y, Euclidean().fit(X))
    i, j = np.triu_indices(200, k=1)
    scores = Euclidean().fit(X).score_pairs(X[i], X[j])[y[i] != y[j]]
    for rate in (0.9, 0.5, 0.2, 0.1, 0.01):
        threshold = found.threshold(rate)
        assert found.false_alarm_rate(threshold) <= rate
        assert np.mean(scores >= threshold) <= rate
    assert np.mean(scores >= found.threshold(0.9)) > 0.5, "the lower atoms are still told apart"


def test_a_selection_of_scores_places_the_knots_of_large_sets_as_well(monkeypatch: Any) -> None:
    X, y = WORLD.chips(300, 2, np.random.default_rng(4))
    rates = (0.3, 1e-2, 1e-3, 1e-4, 2e-5)
    every = [float(calibrate(X, y).threshold(rate)) for rate in rates]
    monkeypatch.setattr(calibration, "_KEPT_SCORES", 20_000)
    monkeypatch.setattr(calibration, "_KEPT_HIGHEST", 1_000)
    some = calibrate(X, y)
    np.testing.assert_allclose([some.threshold(rate) for rate in rates], every, atol=0.02)


@pytest.mark.parametrize("grouped", [False, True])
def test_intervals_cover_the_truth_and_are_as_wide_as_the_spread(grouped: bool) -> None:
    rates = (1e-1, 1e-2)
    found = np.empty((100, 2, 3))
    for seed in range(100):
        rng = np.random.default_rng(100 + seed)
        X, y = WORLD.chips(60, 5, rng) if grouped else WORLD.chips(300, 1, rng)
        X, y = np.r_[X, X[:1]], np.r_[y, y[:1]]  # one same pair, so that there is something to count
        curve = calibrate(X, y, groups=y if grouped else None)
        found[seed] = [(t.low, float(t), t.high) for t in map(curve.threshold, rates)]
    low, value, high = np.moveaxis(found, 2, 0)
    truth = [METRIC.threshold(rate, method="analytic") for rate in rates]
    covered = ((low <= truth) & (truth <= high)).mean(axis=0)
    assert (covered >= 0.87).all(), covered
    width = (high - low).mean(axis=0) / (2 * 1.96 * value.std(axis=0))
    assert ((width > 0.75) & (width < 1.35)).all(), width


def test_groups_that_hang_together_widen_the_interval() -> None:
    X, y = WORLD.chips(40, 10, np.random.default_rng(5))
    loose, tied = calibrate(X, y).threshold(0.01), calibrate(X, y, groups=y).threshold(0.01)
    assert loose == tied
    assert tied.high - tied.low > 1.5 * (loose.high - loose.low)


def test_a_pair_within_a_group_is_counted_with_it_once() -> None:
    counts = calibration._Counts(3, np.array([0.0, 1.0]))
    pair = calibration._Pairs(True, np.array([0.5, 2.0]), np.array([0, 1]), np.array([0, 2]))
    counts.add(pair)
    np.testing.assert_array_equal(counts.touching, [[0, 1, 0], [0, 0, 1], [0, 0, 1]])
    np.testing.assert_array_equal(counts.total, [0, 1, 1])
    assert (counts.pairs, counts.groups) == (2, 3)


def test_support_needs_twenty_exceedances_and_ten_groups() -> None:
    X, y = WORLD.chips(20, 5, np.random.default_rng(6))  # 4,750 different pairs, 200 same ones
    found = calibrate(X, y)
    assert found.threshold(20 / 4750).supported
    assert not found.threshold(19 / 4750).supported
    assert not found.threshold(1e-9).supported
    assert found.false_alarm_rate(found.threshold(21 / 4750)).supported
    assert not found.false_alarm_rate(found.threshold(18 / 4750)).supported
    assert calibrate(X, y, groups=y % 10).threshold(0.1).supported
    assert not calibrate(X, y, groups=y % 9).threshold(0.1).supported


def test_groups_that_contribute_nothing_lend_no_support() -> None:
    X, _ = WORLD.chips(20, 2, np.random.default_rng(6))
    y = np.r_[np.zeros(21), np.arange(1, 20)]  # one class has all 210 same pairs
    found = calibrate(X, y, groups=np.r_[np.zeros(21), np.arange(1, 20)])
    assert found.same_groups == 1
    rate = found.detection_rate(-1e3)
    assert float(rate) == 1
    assert not rate.supported
    assert found.threshold(0.5).supported


def test_the_ratio_is_that_of_the_counts_between_knots() -> None:
    knots = np.array([0.0, 1.0, 2.0, 3.0])
    different = np.tile([1.0, 0.4, 0.1, 0.0], (3, 1))
    same = np.tile([1.0, 0.9, 0.6, 0.0], (3, 1))
    found = Calibration(knots, different, same, 1e-9, 10**6, 10**6, 50, 50)
    centres = np.array([0.5, 1.5, 2.5])
    expected = np.log([0.1 / 0.6, 0.3 / 0.3, 0.6 / 0.1])
    np.testing.assert_allclose(found.log_likelihood_ratio(centres), expected, atol=1e-4)
