"""One comparison: what we take, what a peer or a limit takes in the same run, and how much that may be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

__all__ = ["ROWS_FILE", "Row", "Rows", "figure"]

ROWS_FILE = "rows.json"  # what a script writes into the folder that it is given


@dataclass(frozen=True, slots=True)
class Row:
    """`ratio` is ours over theirs: the median over turns where both were timed in turns."""

    what: str
    peer: str  # or the limit
    ours: float
    theirs: float
    ratio: float
    limit: float | None  # the ratio must not exceed it, or must reach it where higher is better; None: only reported
    unit: str = "s"
    better: Literal["lower", "higher"] = "lower"

    @classmethod
    def of(
        cls,
        what: str,
        peer: str,
        ours: float,
        theirs: float,
        *,
        limit: float | None,
        unit: str = "s",
        better: Literal["lower", "higher"] = "lower",
    ) -> Row:
        """Two figures and no turns."""
        return cls(what, peer, ours, theirs, ours / theirs, limit, unit, better)

    @property
    def met(self) -> bool:
        """Whether the target holds; a row without one misses nothing."""
        if self.limit is None:
            return True
        return self.ratio <= self.limit if self.better == "lower" else self.ratio >= self.limit

    @property
    def times(self) -> float:
        """Times as good as the peer, above 1 where ours is better; infinite for nothing at all."""
        return self._as_times(self.ratio)

    @property
    def wanted(self) -> float | None:
        """The target, in times as good as the peer."""
        return None if self.limit is None else self._as_times(self.limit)

    @property
    def target(self) -> str:
        """The target, as text."""
        if self.limit is None:
            return "none"
        return f"at {'most' if self.better == 'lower' else 'least'} {self.limit:.3g}"

    @property
    def verdict(self) -> str:
        """What came of the target, as text."""
        return "" if self.limit is None else "met" if self.met else "MISSED"

    def _as_times(self, ratio: float) -> float:
        if self.better == "higher":
            return ratio
        return 1 / ratio if ratio else float("inf")


@dataclass(frozen=True, slots=True)
class Rows:
    """What a script hands over."""

    title: str
    rows: Sequence[Row]
    threads: int | None = 1  # of each contestant; None: as many as the environment gives

    def write(self, folder: Path) -> None:
        """Write the file that `read` finds."""
        content = {"title": self.title, "threads": self.threads, "rows": [asdict(row) for row in self.rows]}
        (folder / ROWS_FILE).write_text(json.dumps(content), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Rows:
        """Read what a script has written into a folder."""
        content = json.loads((folder / ROWS_FILE).read_text(encoding="utf-8"))
        return cls(content["title"], [Row(**row) for row in content["rows"]], content["threads"])


def figure(value: float) -> str:
    """Return three digits, and no powers of ten where a person would not write them."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
