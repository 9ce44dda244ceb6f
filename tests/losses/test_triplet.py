"""Batch-hard triplets against a loop and against pytorch-metric-learning."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.miners import BatchHardMiner
from pytorch_metric_learning.reducers import MeanReducer
from tests.losses.batches import batch

from lookdown.errors import InputError
from lookdown.losses import TripletLoss


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("margin", [0.2, 3.0, "soft"])
def test_it_is_the_formula(margin: Any, normalize: bool) -> None:
    x, y = batch()
    rows = [row / row.norm() if normalize else row for row in x]
    values = []
    for a, row in enumerate(rows):
        gaps = [float((row - other).norm()) for other in rows]
        same = [gaps[j] for j in range(len(y)) if y[j] == y[a] and j != a]
        different = [gaps[j] for j in range(len(y)) if y[j] != y[a]]
        if same and different:
            excess = max(same) - min(different)
            values.append(math.log1p(math.exp(excess)) if margin == "soft" else max(0.0, excess + margin))
    expected = sum(values) / len(values)
    assert len(values) == 8
    assert math.isclose(TripletLoss(margin=margin, normalize=normalize)(x, y).item(), expected, rel_tol=1e-12)


@pytest.mark.parametrize("normalize", [True, False])
def test_it_is_that_of_pytorch_metric_learning_on_its_hardest_triplets(normalize: bool) -> None:
    x, y = batch()
    distance = LpDistance(normalize_embeddings=normalize)
    peer = TripletMarginLoss(0.7, distance=distance, reducer=MeanReducer())
    expected = peer(x, y, BatchHardMiner(distance=distance)(x, y))
    torch.testing.assert_close(TripletLoss(margin=0.7, normalize=normalize)(x, y), expected, rtol=1e-6, atol=0)


def test_softplus_does_not_overflow() -> None:
    x = torch.tensor([[0.0], [5000.0], [1.0]], requires_grad=True)
    value = TripletLoss(margin="soft", normalize=False)(x, torch.tensor([0, 0, 1]))
    assert math.isclose(value.item(), (4999 + math.log1p(math.exp(5000 - 4999))) / 2, rel_tol=1e-6)


def test_another_word_for_the_margin_is_refused() -> None:
    with pytest.raises(InputError, match="margin must be a number, got 'hard'"):
        TripletLoss(margin="hard")  # type: ignore[arg-type]
