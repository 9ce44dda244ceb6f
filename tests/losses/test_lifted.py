"""Lifted structure against a loop and against pytorch-metric-learning."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import LiftedStructureLoss
from pytorch_metric_learning.reducers import MeanReducer
from tests.losses.batches import batch

from lookdown.losses import LiftedLoss


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("margin", [1.0, 2.5])
def test_it_is_the_formula(margin: float, normalize: bool) -> None:
    x, y = batch()
    rows = [row / row.norm() if normalize else row for row in x]
    gaps = [[float((a - b).norm()) for b in rows] for a in rows]
    values = []
    for i, j in combinations(range(len(y)), 2):
        if y[i] == y[j]:
            push = sum(math.exp(margin - gaps[i][k]) for k in range(len(y)) if y[k] != y[i])
            push += sum(math.exp(margin - gaps[j][k]) for k in range(len(y)) if y[k] != y[j])
            values.append(max(0.0, gaps[i][j] + math.log(push)) ** 2)
    expected = sum(values) / (2 * len(values))
    assert len(values) == 7
    assert math.isclose(LiftedLoss(margin=margin, normalize=normalize)(x, y).item(), expected, rel_tol=1e-12)


@pytest.mark.parametrize("normalize", [True, False])
def test_where_every_pair_has_negatives_it_is_that_of_pytorch_metric_learning(normalize: bool) -> None:
    x, y = batch()
    peer = LiftedStructureLoss(distance=LpDistance(normalize_embeddings=normalize), reducer=MeanReducer())
    torch.testing.assert_close(LiftedLoss(normalize=normalize)(x, y), peer(x, y), rtol=1e-6, atol=0)
