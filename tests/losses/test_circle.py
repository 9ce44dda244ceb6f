"""Circle loss against a loop, finite differences with its weights held, and pytorch-metric-learning."""

from __future__ import annotations

import math

import pytest
import torch
from pytorch_metric_learning.losses import CircleLoss as PeerLoss
from tests.losses.batches import batch
from torch import Tensor

from lookdown.losses import CircleLoss


def circle(s: Tensor, held: Tensor, y: Tensor, margin: float, gamma: float) -> Tensor:
    """The formula, a loop over anchors; `held` are the similarities that the weights are taken from."""
    values: list[Tensor] = []
    for a in range(len(y)):
        same = [j for j in range(len(y)) if y[j] == y[a] and j != a]
        different = [j for j in range(len(y)) if y[j] != y[a]]
        if same and different:
            push = [gamma * max(0.0, held[a, n].item() + margin) * (s[a, n] - margin) for n in different]
            pull = [-gamma * max(0.0, 1 + margin - held[a, p].item()) * (s[a, p] - 1 + margin) for p in same]
            values.append((1 + torch.stack(push).exp().sum() * torch.stack(pull).exp().sum()).log())
    return torch.stack(values).mean()


def similarities(x: Tensor) -> Tensor:
    directions: Tensor = x / x.norm(dim=1, keepdim=True)
    return directions @ directions.T


@pytest.mark.parametrize(("margin", "gamma"), [(0.25, 128.0), (0.4, 80.0), (0.1, 2.0)])
def test_it_is_the_formula_and_its_weights_take_no_gradient(margin: float, gamma: float) -> None:
    x, y = batch()
    x.requires_grad_()
    held = similarities(x).detach()
    expected = circle(similarities(x), held, y, margin, gamma)
    value = CircleLoss(margin=margin, gamma=gamma)(x, y)
    assert math.isclose(value.item(), expected.item(), rel_tol=1e-9)
    (slope,), (wanted,) = torch.autograd.grad(value, x), torch.autograd.grad(expected, x)
    torch.testing.assert_close(slope, wanted, rtol=1e-7, atol=1e-9)
    assert torch.autograd.gradcheck(lambda e: circle(similarities(e), held, y, margin, gamma), x)


def test_it_is_that_of_pytorch_metric_learning() -> None:
    x, y = batch()
    x.requires_grad_()
    value, peer = CircleLoss()(x, y), PeerLoss()(x, y)
    torch.testing.assert_close(value, peer, rtol=1e-9, atol=0)
    torch.testing.assert_close(torch.autograd.grad(value, x), torch.autograd.grad(peer, x), rtol=1e-7, atol=1e-9)
