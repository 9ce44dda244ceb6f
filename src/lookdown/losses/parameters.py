"""Parameters of losses as recipes give them, checked; and where a classifier starts."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lookdown.errors import InputError

__all__ = ["flag", "initial_weights", "number"]


def number(
    name: str, value: object, *, above: float = -math.inf, least: float = -math.inf, most: float = math.inf
) -> float:
    """Return a finite number within bounds, or refuse the parameter by name."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{name} must be a number, got {value!r}")
    if not (value > above and least <= value <= most):
        bounds = [(f"above {above:g}", above > -math.inf), (f"at least {least:g}", least > -math.inf)]
        wanted = " and ".join(text for text, bound in [*bounds, (f"at most {most:g}", most < math.inf)] if bound)
        raise InputError(f"{name} must be {wanted}, got {value!r}")
    return float(value)


def flag(name: str, value: object) -> bool:
    """Return true or false, or refuse the parameter by name."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be true or false, got {value!r}")
    return value


def initial_weights(rows: int, columns: int, seed: int) -> Tensor:
    """Draw uniform weights within 1/sqrt(columns), as `torch.nn.Linear` has them, without touching global state."""
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InputError(f"seed must be a whole number, got {seed!r}")
    bound = 1 / math.sqrt(columns)
    return torch.empty(rows, columns).uniform_(-bound, bound, generator=torch.Generator().manual_seed(seed))
