"""What the weights of an expanded query promise."""

from __future__ import annotations

import numpy as np
import pytest

from lookdown import Cosine, GaussianLikelihoodRatio
from lookdown.errors import InputError
from lookdown.gallery.search.query import expansion_weights
from lookdown.lab.synthetic.gaussian_world import GaussianWorld
from lookdown.metrics import L2Metric


def test_cosines_weigh_as_in_the_paper() -> None:
    np.testing.assert_allclose(expansion_weights([0.9, 0.5, 0.1], 1.0), [1, 0.729, 0.125, 0.001])
    np.testing.assert_allclose(expansion_weights([0.9, 0.5, 0.1], 1.0, alpha=1), [1, 0.9, 0.5, 0.1])


def test_log_likelihood_ratios_weigh_as_cosines_do_whatever_their_scale() -> None:
    cosines = np.array([0.95, 0.7, 0.2, -0.3])
    for scale in (1e-3, 1, 40, 1e6):
        np.testing.assert_allclose(expansion_weights(scale * cosines, scale), expansion_weights(cosines, 1.0))


def test_the_query_counts_most_and_hits_by_their_score() -> None:
    scores = np.sort(np.random.default_rng(0).normal(5, 10, 200))[::-1]
    weights = expansion_weights(scores, 20.0)
    assert weights.shape == (201,)
    assert weights[0] == 1
    assert (weights >= 0).all()
    assert (np.diff(weights) <= 0).all()
    inside = (scores > 0) & (scores < 20)
    assert (np.diff(weights[1:][inside]) < 0).all()
    assert (weights[1:][inside] < 1).all()
    steep = expansion_weights(scores, 20.0, alpha=6)
    assert (steep[1:][inside] < weights[1:][inside]).all()


def test_what_speaks_against_is_left_out_and_nothing_counts_more_than_the_query() -> None:
    np.testing.assert_array_equal(expansion_weights([np.inf, 7.1, 7.0, 0.0, -3.0, -np.inf], 7.0), [1, 1, 1, 1, 0, 0, 0])


def test_poor_hits_do_not_gain_by_being_the_best_there_are() -> None:
    assert expansion_weights([1.0, 0.9], 20.0).sum() < 1.001
    np.testing.assert_array_equal(expansion_weights([9.0, 1.0], 20.0)[2], expansion_weights([1.0], 20.0)[1])


@pytest.mark.parametrize("own", [0.0, -4.0])
def test_where_not_even_a_copy_would_speak_for_itself_the_query_stands_alone(own: float) -> None:
    np.testing.assert_array_equal(expansion_weights([own, own - 1], own), [1, 0, 0])


def test_without_hits_there_is_the_query() -> None:
    np.testing.assert_array_equal(expansion_weights([], 1.0), [1])


@pytest.mark.parametrize("metric", [Cosine(), GaussianLikelihoodRatio()], ids=str)
def test_the_mean_vector_ranks_as_the_mean_score_does(metric: L2Metric) -> None:
    X, y = GaussianWorld.random(6).chips(60, 4, np.random.default_rng(0))
    metric.fit(X, y)
    scores = metric.score(X[:1], X[1:])[0]
    best = np.argsort(-scores)[:5]
    weights = expansion_weights(scores[best], metric.offset_)
    assert (weights[1:3] > 0).all()
    members = np.r_[0, best + 1]
    mean = np.average(metric.transform(X[members]), axis=0, weights=weights)
    closeness = -((metric.transform(X) - mean) ** 2).sum(axis=1) / 2
    means = np.average(metric.score(X[members], X), axis=0, weights=weights)
    assert np.ptp(means - closeness) < 1e-9 * np.ptp(means)


@pytest.mark.parametrize("scores", [[np.nan, 1.0], [[1.0]]])
def test_scores_that_are_no_row_of_numbers_are_refused(scores: list[float]) -> None:
    with pytest.raises(InputError, match="one number per hit"):
        expansion_weights(scores, 1.0)


def test_arguments_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(InputError, match="against itself"):
        expansion_weights([1.0], np.inf)
    for alpha in (0, -1, np.nan, np.inf):
        with pytest.raises(InputError, match="alpha"):
            expansion_weights([1.0], 1.0, alpha=alpha)
