"""The commands in the order of the work, each with an example, and what to do after Ctrl-C."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["ORDER", "CommandMap", "examples"]

ORDER = (
    "demo", "doctor",
    "prepare", "train", "evaluate", "adapt", "export",
    "index", "search", "gallery", "serve",
    "reproduce", "bench",
)  # fmt: skip
_AFTER_INTERRUPT = {
    "train": "go on with `lookdown train --resume RUN`; where RUN was not begun yet, type the same again",
    "prepare": "type the same again, and it goes on where it was",
    "index": "what was added is kept: type the same again, and it goes on where it was",
    "reproduce": "what was trained is kept: type the same again, and it goes on where it was",
    "demo": "what was finished is kept: type the same again, and it goes on where it was",
}


class CommandMap(TyperGroup):
    """The group of all commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the work, whichever was registered first; strangers come last."""
        return sorted(super().list_commands(ctx), key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the command line; an interrupt meanwhile is a line, too."""
        try:
            return super().make_context(*arguments, **options)
        except KeyboardInterrupt as error:
            typer.echo("lookdown: interrupted before it began; type the same again", err=True)
            raise typer.Exit(130) from error

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an interrupt is one line with the next step and the exit code 130."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            step = _AFTER_INTERRUPT.get(ctx.invoked_subcommand or "", "type the same again to start over")
            typer.echo(f"lookdown: interrupted; {step}", err=True)
            raise typer.Exit(130) from error


def examples(*lines: str) -> str:
    """Return command lines as the end of a help text."""
    return "\n\n".join(("Example:" if len(lines) == 1 else "Examples:", "\n".join(lines)))
