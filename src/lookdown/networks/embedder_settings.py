"""What determines an embedder, apart from its weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from lookdown.errors import InputError

__all__ = ["LIMITS", "EmbedderSettings", "HeadKind", "PoolingKind", "check_limits"]

# Wide enough for any use, and narrow enough that a stranger's file cannot claim all memory.
LIMITS = {"bands": (1, 256), "size": (8, 2048), "dimension": (1, 65_536)}

PoolingKind = Literal["average", "gem"]
HeadKind = Literal["linear", "mlp", "pca"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderSettings:
    """Everything but the weights that determines what an embedder returns.

    An image is a square of `size` pixels with `bands` bands. It is scaled to 0..1; then `mean` is subtracted and the
    result divided by `std`, one value a band each.
    """

    backbone: str
    bands: int
    size: int
    pooling: PoolingKind
    head: HeadKind
    dimension: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> EmbedderSettings:
        """Return settings as JSON keeps them: with lists in place of tuples."""
        return cls(**{**values, "mean": tuple(values["mean"]), "std": tuple(values["std"])})

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
    """Refuse a value that is not a whole number within the limits of a setting."""
    least, most = LIMITS[name]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"{name} must be a whole number from {least} to {most}, got {value!r}")
