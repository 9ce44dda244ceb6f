"""Euclidean distance against its formula."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lookdown import Euclidean
from lookdown.errors import InputError
from lookdown.metrics import top_k

X = np.random.default_rng(0).normal(size=(9, 4))


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
