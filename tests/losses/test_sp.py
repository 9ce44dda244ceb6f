"""SP and AdaSP against loops over classes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from tests.losses.batches import batch
from torch import Tensor

from lookdown.errors import InputError
from lookdown.losses import SPLoss


def sp(x: Tensor, y: Tensor, t: float, positive: str, weights: dict[int, float] | None = None) -> Tensor:
    """The formula, class by class; `weights` holds AdaSP's, by class."""
    directions = x / x.norm(dim=1, keepdim=True)
    s = directions @ directions.T
    values = []
    for label in sorted(set(y.tolist())):
        own = [i for i in range(len(y)) if y[i] == label]
        others = [i for i in range(len(y)) if y[i] != label]
        if len(own) < 2:
            continue
        negative = torch.stack([(s[a, c] / t).exp() for a in own for c in others]).sum()
        hardest = -t * torch.stack([(-s[a, b] / t).exp() for a in own for b in own]).sum().log()
        least = t * torch.stack([1 / torch.stack([(-s[a, b] / t).exp() for b in own]).sum() for a in own]).sum().log()
        h, k = hardest.item(), least.item()
        w = {"hardest": 1.0, "least-hard": 0.0, "adaptive": 0.0 if h < 0 else 2 * h * k / (h + k)}[positive]
        w = w if weights is None else weights.setdefault(label, w)
        chosen = w * hardest + (1 - w) * least
        values.append((1 + (-chosen / t).exp() * negative).log())
    return torch.stack(values).mean()


@pytest.mark.parametrize("positive", ["adaptive", "hardest", "least-hard"])
@pytest.mark.parametrize("temperature", [0.04, 0.5])
@pytest.mark.parametrize("closeness", [0.0, 3.0])
def test_it_is_the_formula(positive: Any, temperature: float, closeness: float) -> None:
    x, y = batch()
    x = x + closeness * torch.eye(6, dtype=x.dtype)[y]  # near classes have h > 0, so that AdaSP's weight is not zero
    x.requires_grad_()
    held: dict[int, float] = {}
    expected = sp(x, y, temperature, positive, held)
    value = SPLoss(temperature=temperature, positive=positive)(x, y)
    assert math.isclose(value.item(), expected.item(), rel_tol=1e-9)
    (slope,), (wanted,) = torch.autograd.grad(value, x), torch.autograd.grad(expected, x)
    torch.testing.assert_close(slope, wanted, rtol=1e-7, atol=1e-9)
    assert torch.autograd.gradcheck(lambda e: sp(e, y, temperature, positive, held), x)
    if positive == "adaptive" and closeness and temperature == 0.04:
        assert max(held.values()) > 0.1


def test_the_hardest_positive_weighs_as_much_as_it_is_trusted() -> None:
    x, y = batch()
    values = [SPLoss(positive=kind)(x, y).item() for kind in ("hardest", "adaptive", "least-hard")]
    assert values == sorted(values, reverse=True)


def test_another_positive_is_refused() -> None:
    with pytest.raises(InputError, match="positive must be one of 'adaptive', 'hardest', 'least-hard'; got 'easy'"):
        SPLoss(positive="easy")  # type: ignore[arg-type]
