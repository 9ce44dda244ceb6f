"""Two ways to do one thing, timed in turns in one run: the ratio is the result, since seconds depend on the machine."""

from __future__ import annotations

import argparse
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from lookdown.lab.bench.row import Row, Rows, figure

__all__ = ["OPTIONS", "OUT", "QUICK", "Row", "compare", "peak_memory", "report"]

# Every script takes these, with or without options of its own.
OPTIONS = argparse.ArgumentParser(add_help=False)
OPTIONS.add_argument("--quick", action="store_true", help="small sizes, to see that it runs; targets are not judged")
OPTIONS.add_argument("--out", type=Path, help="also write the rows, and pages where there are any, into this folder")
_given = OPTIONS.parse_known_args()[0]
QUICK: bool = _given.quick
OUT: Path | None = _given.out


def compare(
    what: str,
    ours: Callable[[], object],
    peer: str,
    theirs: Callable[[], object],
    *,
    limit: float | None,
    turns: int = 7,
) -> Row:
    """Run both once to warm up, then in turns."""
    ours()
    theirs()
    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(1 if QUICK else turns)]
    mine, other = zip(*pairs, strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    return Row(what, peer, statistics.median(mine), statistics.median(other), ratio, limit)


def report(title: str, rows: Sequence[Row], *, threads: Literal[1] | None = 1) -> None:
    """Print the table, hand the rows over where a folder is given, and end: with code 1 if a target was missed.

    threads: of each contestant; None where they take all that the environment gives.
    """
    if OUT is not None:
        Rows(title, rows, threads).write(OUT)
    description = (
        "one thread for each contestant" if threads == 1 else "all cores" if threads is None else f"{threads} threads"
    )
    print(f"{title}\n{platform.machine()}, Python {platform.python_version()}, {description}\n")
    print("| ours | | peer | | ours / peer | target | |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        verdict = "" if QUICK else row.verdict
        print(
            f"| {row.what} | {figure(row.ours)} {row.unit} | {row.peer} | {figure(row.theirs)} {row.unit} "
            f"| {row.ratio:.3g} | {row.target} | {verdict} |"
        )
    sys.exit(not QUICK and not all(row.met for row in rows))


def peak_memory() -> int:
    """Return the largest memory of this process so far, in bytes."""
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
