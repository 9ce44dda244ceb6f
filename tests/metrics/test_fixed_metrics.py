"""Cosine similarity and Euclidean distance against their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lookdown import Cosine, Euclidean
from lookdown.errors import InputError
from lookdown.metrics import top_k

X = np.random.default_rng(0).normal(size=(9, 4))
LONG = X * np.geomspace(0.1, 100, 9)[:, None]


def test_scores_are_cosines_and_distances_are_chords() -> None:
    metric = Cosine().fit(LONG)
    scores, distances = metric.score(LONG[:4], LONG[4:]), metric.distance(LONG[:4], LONG[4:])
    for i, a in enumerate(LONG[:4]):
        for j, b in enumerate(LONG[4:]):
            cosine = sum(p * q for p, q in zip(a, b, strict=True)) / math.sqrt(sum(a * a) * sum(b * b))
            assert scores[i, j] == pytest.approx(cosine, abs=1e-12)
            assert distances[i, j] == pytest.approx(2 * math.sin(math.acos(cosine) / 2), abs=1e-7)
    np.testing.assert_allclose(np.diag(metric.score(LONG, LONG)), 1)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_the_length_of_an_embedding_does_not_matter(scale: float) -> None:
    metric = Cosine().fit(LONG)
    np.testing.assert_allclose(metric.score(LONG[:4] * scale, LONG[4:]), metric.score(LONG[:4], LONG[4:]), atol=1e-12)
    single = (LONG * 1e25).astype(np.float32)
    np.testing.assert_allclose(metric.score(single[:4], single[4:]), metric.score(LONG[:4], LONG[4:]), atol=1e-5)


def test_a_zero_vector_is_named_by_the_side_it_is_on() -> None:
    with pytest.raises(InputError, match="gallery has a zero vector in row 2"):
        Cosine().fit(LONG).score(LONG, np.r_[LONG[:2], np.zeros((1, 4))])


def test_scores_are_minus_half_the_squared_distance() -> None:
    metric = Euclidean().fit(X)
    scores, distances = metric.score(X[:4], X[4:]), metric.distance(X[:4], X[4:])
    for i, a in enumerate(X[:4]):
        for j, b in enumerate(X[4:]):
            assert scores[i, j] == pytest.approx(-sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) / 2)
            assert distances[i, j] == pytest.approx(math.dist(a, b))


def test_what_cannot_be_squared_or_compared_is_named() -> None:
    metric = Euclidean().fit(X)
    for huge in (X * 1e160, (X * 1e25).astype(np.float32)):
        for work in (metric.score, metric.distance, metric.score_pairs):
            with pytest.raises(InputError, match=r"overflows float.*scale the embeddings down"):
                work(huge[:4], huge[5:])
        with pytest.raises(InputError, match="overflows float"):
            top_k(metric, huge, huge, 2)
    with pytest.raises(InputError, match="gallery has 3 features, but Euclidean is expecting 4"):
        metric.score(X, X[:, :3])
    with pytest.raises(InputError, match="second contains NaN in row 1"):
        metric.score_pairs(X[:2], np.array([[1, 2, 3, 4], [1, 2, np.nan, 4]]))
