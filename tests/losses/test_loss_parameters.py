"""Parameters are checked by name; weights start where the seed says."""

from __future__ import annotations

import math

import pytest
import torch

from lookdown.errors import InputError
from lookdown.losses.loss import flag, initial_weights, number


def test_numbers_come_back_as_floats() -> None:
    assert number("scale", 3) == 3.0
    assert isinstance(number("scale", 3), float)
    assert number("margin", 0, least=0, most=1) == 0
    assert number("margin", 1, least=0, most=1) == 1


@pytest.mark.parametrize("value", ["1", None, True, math.nan, math.inf, [1]])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="scale must be a number, got"):
        number("scale", value)


def test_bounds_are_named() -> None:
    with pytest.raises(InputError, match="scale must be above 0, got 0"):
        number("scale", 0, above=0)
    with pytest.raises(InputError, match=r"momentum must be at least 0 and at most 1, got 1.5"):
        number("momentum", 1.5, least=0, most=1)


def test_a_flag_is_true_or_false() -> None:
    assert flag("bias", True) is True
    with pytest.raises(InputError, match="bias must be true or false, got 1"):
        flag("bias", 1)


def test_weights_are_uniform_within_their_bound() -> None:
    weights = initial_weights(400, 25, seed=0)
    assert weights.abs().max() <= 1 / 5
    assert weights.abs().max() > 0.199
    assert abs(weights.std().item() - 0.2 / math.sqrt(3)) < 0.003
    assert torch.equal(weights, initial_weights(400, 25, seed=0))
    with pytest.raises(InputError, match=r"seed must be a whole number, got 1\.5"):
        initial_weights(4, 4, seed=1.5)  # type: ignore[arg-type]
