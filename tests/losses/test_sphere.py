"""A-Softmax against a loop and against pytorch-metric-learning, and its schedule."""

from __future__ import annotations

import math

import pytest
import torch
from pytorch_metric_learning.losses import SphereFaceLoss
from tests.losses.batches import CLASSES, DIMENSION, batch

from lookdown.errors import InputError
from lookdown.losses import SphereLoss


def psi(angle: float, margin: int) -> float:
    k = min(int(angle * margin / math.pi), margin - 1)
    return (1 - 2 * (k % 2)) * math.cos(margin * angle) - 2 * k


@pytest.mark.parametrize("margin", [1, 2, 3, 4])
@pytest.mark.parametrize("annealing", [0.0, 5.0, 1000.0])
def test_it_is_the_formula(margin: int, annealing: float) -> None:
    x, y = batch()
    loss = SphereLoss(CLASSES, DIMENSION, margin=margin).double()
    loss.annealing.fill_(annealing)
    total = 0.0
    for row, label in zip(x, y.tolist(), strict=True):
        angles = [math.acos(float(w @ row / (w.norm() * row.norm()))) for w in loss.weight.detach()]
        logits = [float(row.norm()) * math.cos(angle) for angle in angles]
        own = (annealing * math.cos(angles[label]) + psi(angles[label], margin)) / (annealing + 1)
        logits[label] = float(row.norm()) * own
        total -= logits[label] - math.log(sum(math.exp(logit) for logit in logits))
    assert math.isclose(loss(x, y).item(), total / len(y), rel_tol=1e-10)


@pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning")
def test_without_annealing_it_is_that_of_pytorch_metric_learning() -> None:
    x, y = batch()
    loss = SphereLoss(CLASSES, DIMENSION, annealing_start=0, annealing_end=0).double()
    peer = SphereFaceLoss(CLASSES, DIMENSION, margin=4)
    peer.W.data = loss.weight.detach().T
    torch.testing.assert_close(loss(x, y), peer(x, y), rtol=1e-9, atol=0)


def test_the_angle_is_penalised_more_as_training_goes_on() -> None:
    x, y = batch()
    loss = SphereLoss(CLASSES, DIMENSION).double()
    assert loss.annealing == 1000
    values = []
    for fraction, expected in ((0, 1000), (0.01, 1000 / 34.6), (0.1, 5), (1, 5)):
        loss.progress(fraction)
        assert math.isclose(loss.annealing.item(), expected)
        values.append(loss(x, y).item())
    assert values[0] < values[1] < values[2] == values[3]


def test_the_ends_of_the_circle_have_finite_slopes() -> None:
    loss = SphereLoss(2, 2).double()
    with torch.no_grad():
        loss.weight.copy_(torch.eye(2))
    x = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    loss(x, torch.tensor([0, 0])).backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_the_margin_is_a_whole_number_and_the_schedule_falls() -> None:
    with pytest.raises(InputError, match=r"margin must be a whole number of at least 1, got 1\.5"):
        SphereLoss(2, 2, margin=1.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="annealing_start must be at least 5, got 1"):
        SphereLoss(2, 2, annealing_start=1)
