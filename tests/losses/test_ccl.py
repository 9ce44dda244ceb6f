"""Center contrastive loss and the bank behind it, against loops."""

from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import CLASSES, DIMENSION, batch

from lookdown.losses import CCLLoss


@pytest.mark.parametrize(("scale", "margin", "pull"), [(64.0, 0.35, 1.0), (3.0, 0.1, 0.2)])
@pytest.mark.parametrize("known", [[0, 1, 2, 3, 4], [0, 1, 4]])
def test_it_is_the_formula_on_the_classes_that_have_a_center(
    known: list[int], scale: float, margin: float, pull: float
) -> None:
    x, y = batch()
    loss = CCLLoss(CLASSES, DIMENSION, scale=scale, margin=margin, pull=pull).double()
    loss.update(*(part[torch.isin(y, torch.tensor(known))] for part in batch(1)))
    contrast, pulls = [], []
    for row, label in zip(x, y.tolist(), strict=True):
        if label in known:
            cosine = {j: float(row @ loss.centers[j] / row.norm()) for j in known}
            logits = {j: scale * (c - margin * (j == label)) for j, c in cosine.items()}
            contrast.append(math.log(sum(math.exp(logit - logits[label]) for logit in logits.values())))
            pulls.append(1 - cosine[label])
    expected = (sum(contrast) + pull * sum(pulls)) / len(contrast)
    assert math.isclose(loss(x, y).item(), expected, rel_tol=1e-9)


def test_centers_move_by_momentum_and_stay_on_the_sphere() -> None:
    loss = CCLLoss(CLASSES, DIMENSION, momentum=0.7).double()
    (x, y), (later, _) = batch(1), batch(2)
    expected: dict[int, torch.Tensor] = {}
    for label in range(CLASSES):
        for rows in (x, later):
            mean = torch.stack([row / row.norm() for row, own in zip(rows, y, strict=True) if own == label]).mean(0)
            moved = mean if label not in expected else 0.7 * expected[label] + 0.3 * mean
            expected[label] = moved / moved.norm()
    loss.update(x, y)
    assert loss.known.all()
    loss.update(later, y)
    torch.testing.assert_close(loss.centers, torch.stack(list(expected.values())), rtol=1e-12, atol=1e-12)


def test_before_the_first_update_there_is_nothing_to_compare_with() -> None:
    x, y = batch()
    x.requires_grad_()
    value = CCLLoss(CLASSES, DIMENSION)(x, y)
    value.backward()
    assert value == 0
    assert x.grad is not None
    assert (x.grad == 0).all()


def test_forward_changes_nothing_and_update_takes_no_gradient() -> None:
    x, y = batch()
    loss = CCLLoss(CLASSES, DIMENSION).double()
    x.requires_grad_()
    loss.update(x, y)
    before = loss.centers.clone()
    loss(x, y).backward()
    assert torch.equal(loss.centers, before)
    assert not loss.centers.requires_grad


def test_a_batch_that_is_not_finite_or_has_no_direction_leaves_the_bank_alone() -> None:
    x, y = batch()
    loss = CCLLoss(CLASSES, DIMENSION).double()
    loss.update(x, y)
    before = loss.centers.clone()
    loss.update(x * math.nan, y)
    assert torch.equal(loss.centers, before)
    fresh = CCLLoss(CLASSES, DIMENSION).double()
    fresh.update(torch.stack([x[0], -x[0], x[1]]), torch.tensor([0, 0, 1]))
    assert fresh.known.tolist() == [False, True, False, False, False]
    assert (fresh.centers[0] == 0).all()
