"""The in-batch instance loss against a loop."""

from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import batch

from lookdown.losses import InstanceLoss


@pytest.mark.parametrize("gamma", [1.0, 64.0])
def test_it_is_the_formula(gamma: float) -> None:
    x, y = batch()
    means = []
    for label in sorted(set(y.tolist())):
        mean = torch.stack([row / row.norm() for row, own in zip(x, y, strict=True) if own == label]).mean(0)
        means.append(mean / mean.norm())
    total = 0.0
    for i, mean in enumerate(means):
        logits = [gamma * float(mean @ other) for other in means]
        total -= logits[i] - math.log(sum(math.exp(logit) for logit in logits))
    assert math.isclose(InstanceLoss(gamma=gamma)(x, y).item(), total / len(means), rel_tol=1e-10)


def test_the_target_is_the_own_label_and_not_the_rank_of_a_row() -> None:
    """Labels that are well apart cost nothing, wherever their rows stand; not so in pytorch-metric-learning."""
    x, y = torch.eye(3)[[2, 0, 1, 2, 0, 1]].double(), torch.tensor([2, 0, 1, 2, 0, 1])
    assert InstanceLoss()(x, y) < 1e-20
