"""Theorem 1, mixture half: exact for one Gaussian, an approximation with a stated error for more."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from tests.metrics.test_mirrored_mixture import example, naive_halves
from tests.metrics.test_mixture import METRIC, X, Y

from lookdown import MixtureLikelihoodRatio
from lookdown.errors import InputError
from lookdown.lab.paper import theorem_1
from lookdown.lab.paper.theorem_1 import approximate_pairs, decompose, expected_mahalanobis


def test_the_error_is_none_for_one_component_and_small_against_the_scores_for_more() -> None:
    found = theorem_1.run((1, 5), chips_per_class=30, pairs=2_000)
    assert found[1].largest_error < 1e-6
    assert 0.01 < found[5].rms_error < 0.2 * found[5].exact.std()
    assert found[5].rank_correlation > 0.99


def test_theorem_1_weighted_mahalanobis_distances_come_with_their_error() -> None:
    pairs = X[:400], X[np.random.default_rng(0).integers(len(X), size=400)]
    found = approximate_pairs(METRIC, *pairs)
    np.testing.assert_allclose(found.exact, METRIC.score_pairs(*pairs))
    errors = found.scores - found.exact
    assert errors.mean() == pytest.approx(0, abs=1e-9)
    assert found.rms_error == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert found.largest_error == pytest.approx(np.abs(errors).max())
    assert found.rank_correlation == pytest.approx(spearmanr(found.scores, found.exact).statistic)
    assert 0.9 < found.rank_correlation < 1
    assert found.rms_error > 0.01, "the constant of Eq. C-3 is not one"
    one = approximate_pairs(MixtureLikelihoodRatio(1, 1, normalize=False).fit(X, Y), *pairs)
    assert one.largest_error < 1e-8, "for single Gaussians the form is exact"
    with pytest.raises(InputError, match="nothing to approximate"):
        approximate_pairs(METRIC, X[:4], X[:4])


@pytest.mark.parametrize("diagonal", [False, True])
def test_the_decomposition_is_exact_and_its_parts_are_their_definitions(diagonal: bool) -> None:
    mixture = example(diagonal=diagonal)
    x = 3 * np.random.default_rng(1).normal(size=(50, 4))
    parts = decompose(mixture, x)
    np.testing.assert_allclose(parts.expected + parts.entropy, mixture.log_density(x), rtol=1e-12)
    logs = np.log(np.exp(naive_halves(mixture, x)).sum(axis=2))
    share = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(parts.expected, (share * logs).sum(axis=1), rtol=1e-10)
    assert (parts.entropy >= 0).all()
    assert (parts.entropy <= np.log(3)).all()
    assert decompose(mixture, np.full((1, 4), 1e4)).entropy == pytest.approx(0)  # a share of zero is no NaN


@pytest.mark.parametrize("diagonal", [False, True])
def test_expected_mahalanobis_averages_over_components_and_both_sides(diagonal: bool) -> None:
    mixture = example(diagonal=diagonal)
    x = 3 * np.random.default_rng(1).normal(size=(30, 4))
    halves = np.exp(naive_halves(mixture, x))
    share = halves / halves.sum(axis=(1, 2), keepdims=True)
    covariances = [np.diag(c) for c in mixture.covariances] if diagonal else mixture.covariances
    expected = [
        sum(
            share[i, k, side] * (row - sign * mean) @ np.linalg.inv(cov) @ (row - sign * mean)
            for k, (mean, cov) in enumerate(zip(mixture.means, covariances, strict=True))
            for side, sign in enumerate((1, -1))
        )
        for i, row in enumerate(x)
    ]
    np.testing.assert_allclose(expected_mahalanobis(mixture, x), expected, rtol=1e-9)
