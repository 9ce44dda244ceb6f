"""The tiers of the suite: which test belongs to which, and a table of what their runs came to.

A test without a mark belongs to the default suite, which `make test` runs. Every other tier is a mark in
pyproject.toml and a target `make test-TIER`. `python -m tests.tiers FOLDER` reads the JUnit files of a run, one a tier.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from xml.etree import ElementTree

import pytest

__all__ = ["TIERS", "Run", "assign", "table"]

TIERS = ("server", "browser", "kill", "export", "paper", "install")
_BY_FIXTURE = {
    "milvus_binaries": "server",
    "running_store": "server",
    "nodes": "server",
    "browser": "browser",
    "site": "browser",  # what is built is looked at
}
_BY_FOLDER = {"tests/experiments/": "paper", "tests/demo/": "paper"}
_SLOWEST = 20


def assign(items: Iterable[pytest.Item]) -> None:
    """Mark each test whose fixtures or folder say its tier, and refuse a test that is marked for two."""
    for item in items:
        marked = {mark.name for mark in item.iter_markers() if mark.name in TIERS}
        if len(marked) > 1:
            raise pytest.UsageError(f"{item.nodeid} is marked for {' and '.join(sorted(marked))}; name one tier")
        if not marked:
            fixtures = [_BY_FIXTURE[name] for name in getattr(item, "fixturenames", ()) if name in _BY_FIXTURE]
            folders = [tier for folder, tier in _BY_FOLDER.items() if item.nodeid.startswith(folder)]
            for tier in (fixtures + folders)[:1]:
                item.add_marker(tier)


@dataclass(frozen=True, slots=True)
class Run:
    """One tier, as pytest has written it down."""

    tier: str
    wall_seconds: float
    outcomes: Counter[str]  # passed, failed, skipped
    seconds: dict[str, float]  # by test, its fixtures included
    skip_reasons: Counter[str]

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read the JUnit file of a tier."""
        suite = ElementTree.parse(file).getroot()[0]
        outcomes: Counter[str] = Counter()
        reasons: Counter[str] = Counter()
        seconds = {}
        for case in suite.iter("testcase"):
            seconds[f"{case.get('classname')}::{case.get('name')}"] = float(case.get("time", 0))
            skipped = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                outcomes["failed"] += 1
            elif skipped is not None:
                outcomes["skipped"] += 1
                reasons[skipped.get("message", "").strip()] += 1
            else:
                outcomes["passed"] += 1
        return cls(file.stem, float(suite.get("time", 0)), outcomes, seconds, reasons)

    def __str__(self) -> str:
        counts = ", ".join(f"{self.outcomes[name]:,} {name}" for name in ("passed", "failed", "skipped"))
        if set(self.outcomes) == {"skipped"}:
            counts = f"not run: {'; '.join(self.skip_reasons)}"
        return f"{self.tier:8} {self.wall_seconds:7.0f} s  {counts}"


def table(runs: list[Run]) -> str:
    """Return the wall time of each tier, why tests were skipped, and the slowest tests of all."""
    skipped = sum((run.skip_reasons for run in runs), Counter[str]())
    tests = {name: seconds for run in runs for name, seconds in run.seconds.items()}
    slowest = sorted(tests.items(), key=lambda test: -test[1])[:_SLOWEST]
    parts = {
        "Tiers, by the clock": map(str, runs),
        "Skipped": (f"{count:5,} {reason}" for reason, count in skipped.most_common()),
        f"Slowest {len(slowest)}": (f"{seconds:7.1f} s  {name}" for name, seconds in slowest),
    }
    return "\n".join("\n".join([heading, *(f"  {line}" for line in lines)]) for heading, lines in parts.items())


if __name__ == "__main__":
    files = sorted(Path(sys.argv[1]).glob("*.xml"), key=lambda file: ("default", *TIERS).index(file.stem))
    print(table([Run.read(file) for file in files]))
