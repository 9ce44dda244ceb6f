"""The in-batch instance loss against a loop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from tests.losses.batches import batch

from lookdown import Cosine
from lookdown.errors import InputError
from lookdown.evaluation import evaluate
from lookdown.losses import InstanceLoss


@pytest.mark.parametrize("gamma", [1.0, 64.0])
@pytest.mark.parametrize("rows", ["chips", "means"])
def test_it_is_the_formula(gamma: float, rows: Any) -> None:
    x, y = batch()
    means = {}
    for label in set(y.tolist()):
        mean = torch.stack([row / row.norm() for row, own in zip(x, y, strict=True) if own == label]).mean(0)
        means[label] = mean / mean.norm()
    chips = [(row / row.norm(), label) for row, label in zip(x, y.tolist(), strict=True)]
    told_apart = chips if rows == "chips" else [(mean, label) for label, mean in means.items()]
    total = 0.0
    for row, label in told_apart:
        logits = {other: gamma * float(row @ mean) for other, mean in means.items()}
        total -= logits[label] - math.log(sum(math.exp(logit) for logit in logits.values()))
    value = InstanceLoss(gamma=gamma, rows=rows)(x, y).item()
    assert math.isclose(value, total / len(told_apart), rel_tol=1e-10)


@pytest.mark.parametrize("rows", ["chips", "means"])
def test_the_target_is_the_own_label_and_not_the_rank_of_a_row(rows: Any) -> None:
    """Labels that are well apart cost nothing, wherever their rows stand; not so in pytorch-metric-learning."""
    x, y = torch.eye(3)[[2, 0, 1, 2, 0, 1]].double(), torch.tensor([2, 0, 1, 2, 0, 1])
    assert InstanceLoss(gamma=64.0, rows=rows)(x, y) < 1e-20


def test_the_default_pulls_and_the_means_do_not() -> None:
    """Two labels in opposite directions: chips that spread around their mean cost something, the means alone not."""
    spread = torch.tensor([[1.0, 0.8], [1.0, -0.8], [-1.0, 0.8], [-1.0, -0.8]], dtype=torch.float64)
    y = torch.tensor([0, 0, 1, 1])
    tight = spread * torch.tensor([1.0, 0.1])
    assert InstanceLoss()(spread, y) > 3 * InstanceLoss()(tight, y)
    torch.testing.assert_close(InstanceLoss(rows="means")(spread, y), InstanceLoss(rows="means")(tight, y))


def test_the_default_trains_where_the_means_against_the_means_do_not() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(240) % 12
    noise = rng.normal(size=(240, 64)) * np.r_[3 * np.ones(16), np.ones(48)]  # loud where nothing is told apart
    x = rng.normal(size=(12, 64))[y] * np.r_[np.zeros(16), np.ones(48)] + noise

    def trained(**options: Any) -> float:
        weight = torch.eye(64, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.3)
        loss = InstanceLoss(**options)
        for _ in range(100):
            rows = torch.tensor(rng.permutation(120)[:48])
            optimizer.zero_grad()
            loss(torch.tensor(x, dtype=torch.float32)[rows] @ weight, torch.tensor(y)[rows]).backward()
            optimizer.step()
        return by_cosine(x @ weight.detach().numpy())

    def by_cosine(z: Any) -> float:
        query, gallery = slice(120, 180), slice(180, 240)  # seen by no step
        return evaluate(Cosine().fit(z), z[query], y[query], z[gallery], y[gallery]).mean_average_precision

    before = by_cosine(x)
    assert trained() > before + 0.1
    assert trained(rows="means", gamma=64.0) < before + 0.02


def test_other_rows_are_refused() -> None:
    with pytest.raises(InputError, match="rows must be one of 'chips', 'means'; got 'labels'"):
        InstanceLoss(rows="labels")  # type: ignore[arg-type]
