"""The progress of long work, on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

__all__ = ["ProgressBar"]

_LINE_SECONDS = 30  # between two lines if the total is not known


class ProgressBar:
    """A `lookdown.progress.Progress` for the command line.

    A terminal shows a bar with the rate and the time left. Elsewhere a line is printed for every tenth of the work, or
    every 30 seconds if the total is not known.
    """

    def __init__(self, description: str, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            _Count(),
            TextColumn("{task.fields[detail]}", markup=False),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # a result that goes into a pipe must not be drawn on the terminal
            disable=not self._console.is_interactive,
        )
        self._start(description)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def begin(self, description: str, done: int = 0) -> None:
        """Start a new bar for the next piece of work; `done` items of it were finished before and set no rate."""
        self._bar.remove_task(self._task)
        self._start(description, done)

    def __call__(self, done: int, total: int | None, unit: str) -> None:
        """Move the bar, or print a line if one is due."""
        self.move(done, total, unit)
        if not self._console.is_interactive and self._line_is_due(done, total):
            self.say(f"{self._description}: {done:,} {f'of {total:,} ' if total else ''}{unit}")

    def move(
        self, done: int, total: int | None, unit: str, *, description: str | None = None, detail: str = ""
    ) -> None:
        """Move the bar of a terminal and print nothing elsewhere, for callers that print lines of their own."""
        shown = description or self._description
        self._bar.update(self._task, completed=done, total=total, description=shown, unit=unit, detail=detail)

    def note(self, step: str) -> None:
        """Show the step that begins, if its amount of work is not known: beside the bar, or on a line."""
        if self._console.is_interactive:
            self.begin(step)
        else:
            self.say(step)

    def say(self, sentence: str) -> None:
        """Print a line above the bar, unwrapped because it may hold a path."""
        self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def _start(self, description: str, done: int = 0) -> None:
        self._description, self._tenth, self._last_line = description, 0, time.monotonic()
        self._task = self._bar.add_task(description, completed=done, total=None, unit="", detail="")

    def _line_is_due(self, done: int, total: int | None) -> bool:
        now, tenth = time.monotonic(), 10 * done // total if total else 0
        due = tenth > self._tenth if total is not None else now - self._last_line >= _LINE_SECONDS
        if due:
            self._tenth, self._last_line = max(tenth, self._tenth), now
        return due


class _Count(ProgressColumn):
    """How many are done, of how many, and how many a second."""

    def render(self, task: Task) -> Text:
        if not (unit := task.fields["unit"]):
            return Text("")
        total = "" if task.total is None else f"/{int(task.total):,}"
        speed = task.finished_speed or task.speed
        rate = "" if speed is None else f", {speed:,.{0 if speed >= 10 else 1}f}/s"
        return Text(f"{int(task.completed):,}{total} {unit}{rate}", style="progress.download")
