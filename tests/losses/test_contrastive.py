"""The contrastive loss against a loop."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import mean

import pytest
import torch
from tests.losses.batches import batch

from lookdown.losses import ContrastiveLoss


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("margin", [1.2, 6.0])
def test_it_is_the_formula_with_a_mean_for_each_kind(margin: float, normalize: bool) -> None:
    x, y = batch()
    rows = [row / row.norm() if normalize else row for row in x]
    same, different = [], []
    for i, j in combinations(range(len(y)), 2):
        gap = float((rows[i] - rows[j]).norm())
        if y[i] == y[j]:
            same.append(gap**2 / 2)
        else:
            different.append(max(0.0, margin - gap) ** 2 / 2)
    expected = mean(same) + mean(different)
    assert math.isclose(ContrastiveLoss(margin=margin, normalize=normalize)(x, y).item(), expected, rel_tol=1e-12)


def test_one_kind_is_enough() -> None:
    x = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    assert math.isclose(ContrastiveLoss()(x, torch.tensor([0, 0])).item(), 1)
    assert ContrastiveLoss()(x, torch.tensor([0, 1])) == 0
    assert math.isclose(ContrastiveLoss(margin=2)(x, torch.tensor([0, 1])).item(), (2 - math.sqrt(2)) ** 2 / 2)
