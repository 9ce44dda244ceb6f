"""Cosine similarity against its formula."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lookdown import Cosine
from lookdown.errors import InputError

X = np.random.default_rng(0).normal(size=(9, 4)) * np.geomspace(0.1, 100, 9)[:, None]


def test_scores_are_cosines_and_distances_are_chords() -> None:
    metric = Cosine().fit(X)
    scores, distances = metric.score(X[:4], X[4:]), metric.distance(X[:4], X[4:])
    for i, a in enumerate(X[:4]):
        for j, b in enumerate(X[4:]):
            cosine = sum(p * q for p, q in zip(a, b, strict=True)) / math.sqrt(sum(a * a) * sum(b * b))
            assert scores[i, j] == pytest.approx(cosine, abs=1e-12)
            assert distances[i, j] == pytest.approx(2 * math.sin(math.acos(cosine) / 2), abs=1e-7)
    np.testing.assert_allclose(np.diag(metric.score(X, X)), 1)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_the_length_of_an_embedding_does_not_matter(scale: float) -> None:
    metric = Cosine().fit(X)
    np.testing.assert_allclose(metric.score(X[:4] * scale, X[4:]), metric.score(X[:4], X[4:]), atol=1e-12)
    single = (X * 1e25).astype(np.float32)
    np.testing.assert_allclose(metric.score(single[:4], single[4:]), metric.score(X[:4], X[4:]), atol=1e-5)


def test_a_zero_vector_is_named_by_the_side_it_is_on() -> None:
    with pytest.raises(InputError, match="gallery has a zero vector in row 2"):
        Cosine().fit(X).score(X, np.r_[X[:2], np.zeros((1, 4))])
