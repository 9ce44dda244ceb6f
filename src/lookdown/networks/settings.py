"""What an embedder is made of, apart from its weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from lookdown.errors import InputError

__all__ = ["LIMITS", "HeadKind", "PoolingKind", "Settings", "check_limits"]

# Wide enough for any use, and narrow enough that a stranger's file cannot ask for all memory.
LIMITS = {"bands": (1, 256), "size": (8, 2048), "dimension": (1, 65_536)}

PoolingKind = Literal["average", "gem"]
HeadKind = Literal["linear", "mlp", "pca"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything but the weights that decides what an embedder returns.

    An image is a square of `size` pixels with `bands` bands; it is scaled to 0..1, then `mean` is subtracted and the
    rest divided by `std`, one value a band each.
    """

    backbone: str
    bands: int
    size: int
    pooling: PoolingKind
    head: HeadKind
    dimension: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in LIMITS:
            check_limits(name, getattr(self, name))
        for name, known in (("pooling", get_args(PoolingKind)), ("head", get_args(HeadKind))):
            if getattr(self, name) not in known:
                raise InputError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")
        if not len(self.mean) == len(self.std) == self.bands:
            raise InputError(f"mean and std need {self.bands} values, one a band; got {self.mean} and {self.std}")
        if not all(math.isfinite(value) for value in self.mean) or not all(0 < value < math.inf for value in self.std):
            raise InputError(f"mean must be finite and std positive, got {self.mean} and {self.std}")


def check_limits(name: str, value: object) -> None:
    """Refuse what is no whole number within the limits of a setting."""
    least, most = LIMITS[name]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"{name} must be a whole number from {least} to {most}, got {value!r}")
