"""How far long work has come, on stderr: a bar on a terminal, a plain line for each tenth elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich import progress
from rich.console import Console

__all__ = ["Progress"]


class Progress:
    """A bar, or lines; called with what is done and what there is to do, as the library reports it."""

    def __init__(self, description: str, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._description = description
        self._tenth = 0
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[detail]}", markup=False),
            progress.TimeRemainingColumn(),
            console=self._console,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # else a result would go to the terminal, and not into its file
            disable=not self._console.is_interactive,
        )
        self._task = self._bar.add_task(description, total=None, detail="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begin(self, description: str, done: int = 0) -> None:
        """Go over to other work, some of which may be done already: that says nothing of the time left."""
        self._description, self._tenth = description, 0
        self._bar.remove_task(self._task)
        self._task = self._bar.add_task(description, completed=done, total=None, detail="")

    def __call__(self, done: int, total: int) -> None:
        """Show how far it is."""
        self.bar(done, total)
        tenth = 10 * done // total if total else 0
        if not self._console.is_interactive and tenth > self._tenth:
            self._tenth = tenth
            self.say(f"{self._description}: {done:,} of {total:,}")

    def bar(self, done: int, total: int, *, description: str | None = None, detail: str = "") -> None:
        """Show how far it is on a terminal only, where lines of another kind tell it elsewhere."""
        self._bar.update(
            self._task, completed=done, total=total, description=description or self._description, detail=detail
        )

    def note(self, step: str) -> None:
        """Say what is being done now, where nobody knows how much is to do: beside the bar, or on a line."""
        if self._console.is_interactive:
            self.begin(step)
        else:
            self.say(step)

    def say(self, sentence: str) -> None:
        """Print a line, above the bar where there is one; it is not broken, for a path may be in it."""
        self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)
