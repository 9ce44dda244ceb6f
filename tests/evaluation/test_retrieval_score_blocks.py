"""Blocks of scores: those of the metric, whatever the size of a block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

from lookdown import Cosine, Euclidean, GaussianLikelihoodRatio, MixtureLikelihoodRatio
from lookdown.errors import InputError, NotFittedError
from lookdown.evaluation import retrieval
from lookdown.evaluation.retrieval import ScoreBlocks
from lookdown.lab.synthetic.gaussian_world import GaussianWorld
from lookdown.metrics import Metric

X, Y = GaussianWorld.random(6).chips(60, 5, np.random.default_rng(0))
METRICS = [
    GaussianLikelihoodRatio(),
    GaussianLikelihoodRatio(indefinite="keep"),
    MixtureLikelihoodRatio(different=2, pairs=2000),
    Cosine(),
    Euclidean(),
]


@pytest.mark.parametrize("metric", METRICS, ids=str)
@pytest.mark.parametrize("block", [1, 1000, 1 << 21])
def test_blocks_are_the_scores_of_the_metric(metric: Metric, block: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(retrieval, "_BLOCK_SCORES", block)
    fitted = clone(metric).fit(X, Y)
    blocks = ScoreBlocks.of(fitted, X[:70], X[70:])
    assert blocks.shape == (70, 230)
    found = [scores.copy() for scores in blocks]
    assert max(map(len, found)) == max(1, min(70, block // 230))
    np.testing.assert_allclose(np.concatenate(found), fitted.score(X[:70], X[70:]), rtol=1e-10, atol=1e-10)
    given = ScoreBlocks.of(fitted.score(X[:70], X[70:]), None, None)
    np.testing.assert_array_equal(np.concatenate(list(given)), fitted.score(X[:70], X[70:]))


@pytest.mark.parametrize("metric", [Euclidean(), GaussianLikelihoodRatio(normalize=False)], ids=str)
def test_nothing_scores_higher_than_an_equal_row(metric: Metric) -> None:
    """In float32 the squared distance of equal rows comes out below zero for some, which is no distance."""
    rows = (X * np.linspace(1, 40, len(X))[:, None]).astype(np.float32)
    fitted = clone(metric).fit(rows, Y)
    found = np.concatenate([scores.copy() for scores in ScoreBlocks.of(fitted, rows, rows)])
    assert found.max() == np.float32(fitted.offset_)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_scores_come_from_torch_with_or_without_gradients(dtype: torch.dtype) -> None:
    scores = torch.randn(4, 5, generator=torch.Generator().manual_seed(0)).to(dtype)
    for given in (scores, scores.clone().requires_grad_()):
        (found,) = ScoreBlocks.of(given, None, None)
        np.testing.assert_array_equal(found, scores.double().numpy())


@pytest.mark.parametrize(
    "scores",
    [np.zeros(5), np.zeros((2, 3, 4)), [["a", "b"]], [[1.0], [1.0, 2.0]], None, "cosine", np.ones((2, 2), bool)],
)
def test_what_is_neither_a_metric_nor_scores_is_refused(scores: Any) -> None:
    with pytest.raises(InputError, match=r"neither a metric nor scores|a fitted metric or scores of shape"):
        ScoreBlocks.of(scores, None, None)


def test_a_metric_needs_its_embeddings_and_its_fit() -> None:
    with pytest.raises(InputError, match="give queries and gallery"):
        ScoreBlocks.of(Cosine().fit(X), X, None)
    with pytest.raises(NotFittedError, match="call fit"):
        ScoreBlocks.of(GaussianLikelihoodRatio(), X, X)
    with pytest.raises(InputError, match="queries contains NaN in row 0"):
        ScoreBlocks.of(Cosine().fit(X), np.full((2, 6), np.nan), X)
    with pytest.raises(InputError, match="gallery has 5 features"):
        list(ScoreBlocks.of(Cosine().fit(X), X, X[:, :5]))
