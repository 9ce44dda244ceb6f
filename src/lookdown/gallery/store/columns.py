"""What filters look at, a row a chip, in memory; everything else of a chip is read when it is shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lookdown.gallery.search.where import Where

__all__ = ["Codes", "Columns", "Rows"]

Rows = NDArray[np.intp]  # places in the table, from 0


@dataclass(frozen=True, slots=True)
class Codes:
    """A column of text with many repeats: each row's place among the distinct `values`, -1 where it has none."""

    values: tuple[str, ...]
    codes: NDArray[np.int32]

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> Self:
        """Encode a column."""
        places: dict[str, int] = {}
        codes = [-1 if text is None else places.setdefault(text, len(places)) for text in texts]
        return cls(tuple(places), np.array(codes, dtype=np.int32))

    def __getitem__(self, row: int) -> str | None:
        code = self.codes[row]
        return None if code < 0 else self.values[code]

    def among(self, wanted: Collection[str]) -> NDArray[np.bool_]:
        """Return which rows have one of the texts, compared as they are."""
        chosen = [*map(frozenset(wanted).__contains__, self.values), False]  # the last is what -1 finds
        return np.array(chosen, dtype=np.bool_)[self.codes]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one version of the table."""

    labels: Codes
    scenes: Codes
    sensors: Codes
    times: NDArray[np.datetime64]  # microseconds UTC, NaT where the time is not known
    background: NDArray[np.bool_]
    bounds: NDArray[np.float64]  # (n, 4) west, south, east, north of the footprint; NaN where there is none
    footprints: Callable[[Rows], Sequence[str | None]]  # reads the WKT of some rows, since few are ever needed
    _last: dict[Where, NDArray[np.bool_]] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.background)

    def kept(self, where: Where) -> NDArray[np.bool_]:
        """Return which rows a filter keeps, to be read only; the last answer is remembered, for a search asks twice."""
        found = self._last.get(where)
        if found is None:
            found = where.rows(self)
            found.flags.writeable = False
            self._last.clear()
            self._last[where] = found
        return found
