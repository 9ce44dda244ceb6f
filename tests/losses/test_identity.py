"""The identity loss against a loop."""

from __future__ import annotations

import math

import torch
from tests.losses.batches import CLASSES, DIMENSION, batch

from lookdown.losses import IdentityLoss


def test_it_is_the_mean_negative_log_probability_of_the_label() -> None:
    x, y = batch()
    loss = IdentityLoss(CLASSES, DIMENSION, seed=4).double()
    assert loss.bias is not None
    with torch.no_grad():
        loss.bias.copy_(torch.arange(CLASSES))
    total = 0.0
    weight, bias = loss.weight.detach(), loss.bias.detach()
    for row, label in zip(x, y.tolist(), strict=True):
        logits = [float(w @ row + b) for w, b in zip(weight, bias, strict=True)]
        total -= math.log(math.exp(logits[label]) / sum(math.exp(logit) for logit in logits))
    assert math.isclose(loss(x, y).item(), total / len(y), rel_tol=1e-12)
    assert loss.logits(x).shape == (len(y), CLASSES)


def test_the_bias_can_be_left_out() -> None:
    assert set(IdentityLoss(CLASSES, DIMENSION, bias=False).state_dict()) == {"weight"}
