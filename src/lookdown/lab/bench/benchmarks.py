"""All scripts one after the other, and one table, chart and file of what they came to."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lookdown.errors import MissingExtraError
from lookdown.lab.bench.chart import draw
from lookdown.lab.bench.machine import Machine, this_machine, usable_cores
from lookdown.lab.bench.row import figure
from lookdown.lab.bench.run_script import Outcome, run_script
from lookdown.lab.bench.scripts import FOLDER, chosen
from lookdown.lab.paper.report import Page, PageFigure, Table

__all__ = ["Benchmarks", "run_benchmarks"]

HEADER = ("ours", "", "peer or limit", "", "ours / theirs", "target", "")


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """What every script came to, and what it was measured on."""

    outcomes: Sequence[Outcome]
    machine: Machine
    threads: int  # that every pool was pinned to
    date: str
    lookdown: str
    quick: bool = False

    @property
    def good(self) -> bool:
        """Whether every script ran, and every target holds; a quick run is not judged by its targets."""
        return not any(one.trouble or (one.missed and not self.quick) for one in self.outcomes)

    def content(self) -> dict[str, Any]:
        """Return all of it as plain values, in the shape of bench.json."""
        rows = [
            {"script": one.script, **asdict(row), "met": None if self.quick else row.met}
            for one in self.outcomes
            for row in one.rows
        ]
        scripts = [
            {"script": one.script, "title": one.title, "threads": one.threads or self.threads}
            | {"seconds": round(one.seconds, 1), "trouble": one.trouble, "printed": one.printed}
            for one in self.outcomes
        ]
        description = {"lookdown": self.lookdown, "date": self.date, "quick": self.quick, "threads": self.threads}
        return description | {"machine": asdict(self.machine), "rows": rows, "scripts": scripts}

    def lines(self, outcome: Outcome) -> list[list[str]]:
        """Return the cells of a script's rows, and a line for its trouble."""
        lines = []
        for row in outcome.rows:
            sides = (row.what, f"{figure(row.ours)} {row.unit}", row.peer, f"{figure(row.theirs)} {row.unit}")
            lines.append([*sides, figure(row.ratio), row.target, "" if self.quick else row.verdict])
        return lines if outcome.trouble is None else [*lines, [outcome.trouble, *[""] * 5, "FAILED"]]

    def table(self) -> str:
        """Return one table of every script, in Markdown."""
        return Table(HEADER, [line for one in self.outcomes for line in self.lines(one)]).markdown()

    def page(self) -> Page:
        """Return the page: the chart, and a table a script."""
        caption = (
            f"{self.date}, lookdown {self.lookdown}. {self.machine.sentence()} Pools of threads are pinned to "
            f"{self.threads}, and to one where a title says so; each script is a process of its own. Ratios are the "
            "point: both sides were measured in this run."
        )
        if self.quick:
            caption += " A quick run of small sizes: it shows that everything runs, and says little of speed."
        rows = [row for one in self.outcomes for row in one.rows]
        parts: list[Table | PageFigure | str] = []
        if rows:
            drawn = draw(rows, judged=not self.quick)
            parts.append(PageFigure("bench", drawn, "Times as good as the peer or the limit; a stroke is the target."))
        for one in self.outcomes:
            threads = "one thread for each contestant" if one.threads == 1 else f"{one.threads or self.threads} threads"
            parts += [f"## {one.title}", f"`{one.script}`, {threads}", Table(HEADER, self.lines(one))]
        return Page("Every benchmark in one run", caption, tuple(parts))

    def write(self, out: Path, command: str) -> list[Path]:
        """Write bench.json, bench.md and its chart into a folder."""
        out.mkdir(parents=True, exist_ok=True)
        content = out / "bench.json"
        content.write_text(json.dumps(self.content(), indent=1) + "\n", encoding="utf-8")
        return [content, self.page().write("bench", out, out, command)]


def run_benchmarks(
    names: Sequence[str],
    out: Path,
    *,
    quick: bool = False,
    note: Callable[[str], None] = lambda line: None,
    folder: Path = FOLDER,
) -> Benchmarks:
    """Run scripts by name, or all of them, and write what they came to; one that fails does not stop the others."""
    scripts = chosen(names, folder)
    if find_spec("matplotlib") is None:
        raise MissingExtraError("the chart of benchmarks", "bench")  # before the work
    out.mkdir(parents=True, exist_ok=True)
    machine, threads = this_machine(), usable_cores()  # before the scripts are its load
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    command = " ".join(["lookdown bench", *names, *(["--quick"] if quick else [])])
    benchmarks = Benchmarks((), machine, threads, date, version("lookdown"), quick)
    for number, script in enumerate(scripts, start=1):
        note(f"{script.stem}, {number} of {len(scripts)}")
        outcome = run_script(script, out, threads=threads, quick=quick)
        benchmarks = replace(benchmarks, outcomes=(*benchmarks.outcomes, outcome))
        benchmarks.write(out, command)  # as it comes: a run takes half an hour, and may be stopped
    return benchmarks
