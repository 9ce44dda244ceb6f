"""Unified cross entropy against a loop."""

from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import CLASSES, DIMENSION, batch

from lookdown.losses import UCELoss


@pytest.mark.parametrize(("margin", "scale", "negatives"), [(0.4, 64.0, 1.0), (0.1, 4.0, 0.3)])
def test_it_is_the_formula(margin: float, scale: float, negatives: float) -> None:
    x, y = batch()
    loss = UCELoss(CLASSES, DIMENSION, margin=margin, scale=scale, negatives=negatives).double()
    assert math.isclose(loss.threshold.item(), math.log(50), rel_tol=1e-7)
    b, total = loss.threshold.item(), 0.0
    for row, label in zip(x, y.tolist(), strict=True):
        for j, weight in enumerate(loss.weight.detach()):
            cosine = float(row @ weight / (row.norm() * weight.norm()))
            if j == label:
                total += math.log(1 + math.exp(b - scale * (cosine - margin)))
            else:
                total += negatives * math.log(1 + math.exp(scale * cosine - b))
    assert math.isclose(loss(x, y).item(), total / len(y), rel_tol=1e-8)


def test_there_is_one_threshold_and_it_is_learnt() -> None:
    x, y = batch()
    loss = UCELoss(CLASSES, DIMENSION).double()
    loss(x, y).backward()
    assert loss.threshold.shape == ()
    assert loss.threshold.grad is not None
    assert loss.threshold.grad != 0
    assert isinstance(loss.threshold, torch.nn.Parameter)
