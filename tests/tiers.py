"""The tiers of the suite: which test belongs to which, in which order they run, and what became of each.

A test without a mark belongs to the default suite, which `make test` runs. Every other tier is a mark in
pyproject.toml and a target `make test-TIER`; `make test-all` runs them all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

__all__ = ["TIERS", "Ledger", "assign"]

# Tiers whose files take minutes come first, so that two workers end at about the same time.
TIERS = ("install", "server", "kill", "export", "paper", "browser")
_BY_FIXTURE = {
    "milvus_binaries": "server",
    "running_store": "server",
    "nodes": "server",
    "browser": "browser",
    "site": "browser",  # what is built is looked at
}
_BY_FOLDER = {"tests/lab/paper/": "paper", "tests/lab/demo/": "paper"}
_DEFAULT = "default"


def assign(items: list[pytest.Item]) -> None:
    """Give each test its tier, by mark, fixture or folder, and put the tests into the order of the tiers."""
    for item in items:
        tier = _tier(item)
        if tier != _DEFAULT and not item.get_closest_marker(tier):
            item.add_marker(tier)
        item.user_properties.append(("tier", tier))
    items.sort(key=lambda item: (*TIERS, _DEFAULT).index(dict(item.user_properties)["tier"]))


def _tier(item: pytest.Item) -> str:
    marks = sorted({mark.name for mark in item.iter_markers() if mark.name in TIERS})
    if len(marks) > 1:
        raise pytest.UsageError(f"{item.nodeid} is marked for {' and '.join(marks)}; name one tier")
    fixtures = [_BY_FIXTURE[name] for name in getattr(item, "fixturenames", ()) if name in _BY_FIXTURE]
    folders = [tier for folder, tier in _BY_FOLDER.items() if item.nodeid.startswith(folder)]
    return [*marks, *fixtures, *folders, _DEFAULT][0]


@dataclass
class _Tier:
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)  # of tests that were skipped
    seconds: float = 0.0  # of all tests together
    first: float = float("inf")  # seconds since the epoch
    last: float = 0.0

    def add(self, report: pytest.TestReport) -> None:
        self.seconds += report.duration
        self.first, self.last = min(self.first, report.start), max(self.last, report.stop)
        if report.failed or report.skipped or report.when == "call":
            self.outcomes[report.outcome] += 1
        if report.skipped and isinstance(report.longrepr, tuple):
            self.reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1

    def __str__(self) -> str:
        if set(self.outcomes) == {"skipped"}:
            return f"not run: {'; '.join(self.reasons)}"
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        return f"{self.last - self.first:5.0f} s by the clock, {self.seconds:5.0f} s of tests: {counts}"


class Ledger:
    """A plugin that says at the end what each tier came to.

    times: a folder where tiers.txt and tests.txt, the seconds of each test, are continued; `make test-all` shows them.
    """

    def __init__(self, times: Path | None = None) -> None:
        self._times = times
        self._tiers: dict[str, _Tier] = {}
        self._seconds: dict[str, float] = {}  # by test

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a part of a test, by whichever worker."""
        self._tiers.setdefault(str(dict(report.user_properties)["tier"]), _Tier()).add(report)
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write a line for each tier; those of one run share two workers, so that their times overlap."""
        terminalreporter.section("tiers")
        for line in self.lines():
            terminalreporter.write_line(line)
        if self._times is not None:
            tests = [f"{seconds:6.1f} {test}" for test, seconds in self._seconds.items()]
            for name, lines in (("tiers.txt", self.lines()), ("tests.txt", tests)):
                with (self._times / name).open("a") as file:
                    file.writelines(f"{line}\n" for line in lines)

    def lines(self) -> list[str]:
        """Return the lines, in the order in which tiers began."""
        return [f"{name:8} {tier}" for name, tier in sorted(self._tiers.items(), key=lambda pair: pair[1].first)]
