"""Two ways to do one thing, timed in turns in one run: the ratio is the result, since seconds depend on the machine."""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Row", "compare", "report"]


@dataclass(frozen=True)
class Row:
    """One comparison: `ratio` is our time over the peer's, the median over turns."""

    what: str
    peer: str
    ours: float  # seconds, median
    theirs: float
    ratio: float
    limit: float  # the ratio must not exceed it

    @property
    def met(self) -> bool:
        """Whether the target holds."""
        return self.ratio <= self.limit


def compare(
    what: str, ours: Callable[[], object], peer: str, theirs: Callable[[], object], *, limit: float, turns: int = 7
) -> Row:
    """Run both once to warm up, then in turns."""
    ours()
    theirs()
    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(turns)]
    mine, other = zip(*pairs, strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    return Row(what, peer, statistics.median(mine), statistics.median(other), ratio, limit)


def report(title: str, rows: list[Row]) -> None:
    """Print the table; the exit code is 1 if a target was missed."""
    print(f"{title}\n{platform.machine()}, Python {platform.python_version()}, one thread for each contestant\n")
    print("| ours | s | peer | s | ours / peer | target | |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        verdict = "met" if row.met else "MISSED"
        print(
            f"| {row.what} | {row.ours:.4f} | {row.peer} | {row.theirs:.4f} | {row.ratio:.3g} "
            f"| at most {row.limit:g} | {verdict} |"
        )
    sys.exit(not all(row.met for row in rows))


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
