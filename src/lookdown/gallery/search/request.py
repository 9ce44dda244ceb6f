"""What is asked of a gallery, checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.gallery.search.where import Where
from lookdown.gallery.store.snapshot import Rows

__all__ = ["Request"]

Embeddings = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of a gallery; `k` hits, or all that a false-alarm rate accepts."""

    examples: Embeddings  # (n, d)
    weights: NDArray[np.float64]  # (n,), of the examples
    objects: int  # that the examples show: views of one share its weight
    counter_examples: Embeddings  # (m, d)
    left_out: Rows  # examples that are chips of the gallery themselves
    told: str
    k: int | None
    false_alarm_rate: float | None
    where: Where | None
    prior: float
    overlap: float | None  # windows of a scene that overlap by more are one hit; None keeps all
    expand: int  # hits that join the query in a second search
    rerank: bool
    most: int | None = None  # hits to return of those that a rate accepts; None for all

    def __post_init__(self) -> None:
        if not len(self.examples):
            raise InputError("there is nothing to search for; give at least one example")
        if self.k is not None and self.false_alarm_rate is not None:
            raise InputError("give k or a false-alarm rate, not both: one says how many hits, the other how good")
        if self.k is not None and not (_is_whole(self.k) and self.k >= 1):
            raise InputError(f"k must be a whole number of at least 1, got {self.k!r}")
        if self.most is not None and not (_is_whole(self.most) and self.most >= 1):
            raise InputError(f"most must be a whole number of at least 1, got {self.most!r}")
        for name, value in (("false_alarm_rate", self.false_alarm_rate), ("prior", self.prior)):
            if value is not None and not (_is_number(value) and 0 < value < 1):
                raise InputError(f"{name} must be between 0 and 1, both excluded; got {value!r}")
        if self.overlap is not None and not (_is_number(self.overlap) and 0 <= self.overlap < 1):
            raise InputError(f"overlap must be a share from 0 to below 1, or None; got {self.overlap!r}")
        if not (_is_whole(self.expand) and self.expand >= 0):
            raise InputError(f"expand must be a whole number from 0, got {self.expand!r}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
