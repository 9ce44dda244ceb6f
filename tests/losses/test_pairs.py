"""Pairs, directions and distances against loops."""

from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import batch

from lookdown.losses.pairs import Pairs, cosines, distances, lengths, masked_logsumexp, members_of, unit, zero


def test_pairs_are_those_of_a_loop() -> None:
    _, y = batch()
    pairs = Pairs.of(y)
    for i, j in torch.cartesian_prod(torch.arange(len(y)), torch.arange(len(y))).tolist():
        assert pairs.same[i, j] == (i != j and y[i] == y[j])
        assert pairs.different[i, j] == (y[i] != y[j])
    assert pairs.anchors.tolist() == [0, 1, 2, 3, 4, 5, 7, 8]  # 6 and 9 are alone in their class
    assert pairs.are_of_both_kinds
    assert not Pairs.of(torch.tensor([0, 0])).are_of_both_kinds
    assert not Pairs.of(torch.tensor([0, 1])).are_of_both_kinds


def test_members() -> None:
    names, members = members_of(torch.tensor([7, -1, 7]))
    assert names.tolist() == [-1, 7]
    assert members.tolist() == [[False, True, False], [True, False, True]]


@pytest.mark.parametrize("scale", [1.0, 1e30, 1e-11])
def test_units_have_length_one_at_any_scale(scale: float) -> None:
    x, _ = batch(dtype=torch.float32)
    torch.testing.assert_close(unit(x * scale), unit(x))
    torch.testing.assert_close(unit(x).square().sum(1), torch.ones(len(x)))
    torch.testing.assert_close(lengths(x * scale) / scale, x.norm(dim=1))


def test_gradients_of_directions_and_lengths() -> None:
    x, _ = batch()
    x.requires_grad_()
    assert torch.autograd.gradcheck(unit, x)
    assert torch.autograd.gradcheck(lengths, x)
    assert torch.autograd.gradcheck(cosines, x)


def test_a_row_without_direction_is_zero_and_gets_no_gradient() -> None:
    x = torch.tensor([[0.0, 0.0], [1e-30, 1e-40], [3.0, 4.0]], requires_grad=True)
    torch.testing.assert_close(unit(x), torch.tensor([[0.0, 0.0], [0.0, 0.0], [0.6, 0.8]]))
    (slope,) = torch.autograd.grad(unit(x).sum() + lengths(x).sum(), x)
    assert (slope[:2] == 0).all()
    assert slope[2].any()


def test_distances_are_exact_where_a_product_would_cancel() -> None:
    x = torch.full((3, 4), 1000.0)
    x[1, 0] += 2**-10
    x.requires_grad_()
    d = distances(x)
    assert d[0, 1] == 2**-10
    assert d[0, 2] == 0
    (slope,) = torch.autograd.grad(d[0, 1] + d[0, 2], x)
    assert slope[0].tolist() == [-1, 0, 0, 0]
    assert (slope[2] == 0).all()


def test_masked_logsumexp() -> None:
    values = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    mask = torch.tensor([[True, False, True], [False, True, False]])
    expected = torch.tensor([math.log(math.e + math.e**3), 5])
    torch.testing.assert_close(masked_logsumexp(values, mask, 1), expected)
    torch.testing.assert_close(masked_logsumexp(values, mask, (0, 1)), expected.logsumexp(0))


def test_zero_has_a_gradient_and_shows_nan() -> None:
    x = torch.tensor([[3e38, 3e38]], requires_grad=True)
    value = zero(x)
    (slope,) = torch.autograd.grad(value, x)
    assert value == 0
    assert (slope == 0).all()
    assert zero(torch.tensor([[math.nan]])).isnan()
