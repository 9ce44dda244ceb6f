"""The group of all commands: their order, their examples, interrupts, and the errors of the library in its options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from lookdown.errors import LookdownError

__all__ = ["ORDER", "CommandGroup", "examples", "with_options"]

ORDER = (
    "demo", "doctor",
    "prepare", "train", "evaluate", "adapt", "export",
    "index", "search", "gallery", "serve",
    "reproduce", "bench",
)  # fmt: skip
_AFTER_INTERRUPT = {
    "train": "continue with `lookdown train --resume RUN`, or run the same command again if RUN does not exist yet",
    "prepare": "run the same command again to continue",
    "index": "everything added so far is kept; run the same command again to continue",
    "reproduce": "everything trained so far is kept; run the same command again to continue",
    "demo": "every finished step is kept; run the same command again to continue",
}
_ARGUMENT = re.compile(r"`(\w+)(?:=([^`]*))?`")


class CommandGroup(TyperGroup):
    """All commands of `lookdown`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the work; typer would list groups before commands."""
        return sorted(super().list_commands(ctx), key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the command line; an interrupt prints one line."""
        try:
            return super().make_context(*arguments, **options)
        except KeyboardInterrupt as error:
            typer.echo("lookdown: interrupted before it began; run the same command again", err=True)
            raise typer.Exit(130) from error

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an interrupt prints one line with the next step, and errors name the command's options."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            step = _AFTER_INTERRUPT.get(ctx.invoked_subcommand or "", "run the same command again to start over")
            typer.echo(f"lookdown: interrupted; {step}", err=True)
            raise typer.Exit(130) from error
        except LookdownError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            error.args = (with_options(str(error), command or self),)
            raise


def with_options(sentence: str, command: Any) -> str:
    """Replace Python arguments in a sentence by the options of a command.

    The library names arguments in backticks, alone or with a value. If the command takes an argument of that name as an
    option, `overwrite=True` becomes --overwrite, `data="chips"` becomes --data chips, and `data` becomes --data.
    """
    options = dict(_options(command))

    def replaced(match: re.Match[str]) -> str:
        name, value = match.groups()
        if name not in options:
            return match[0]
        if value in (None, "True", "..."):
            return options[name]
        return options[name] + " " + value.strip("'\"")

    return _ARGUMENT.sub(replaced, sentence)


def _options(command: Any) -> Iterator[tuple[str, str]]:
    """Yield the name of each parameter of a command, and of the commands in a group, with its long option."""
    for parameter in command.params:
        if parameter.param_type_name == "option":
            yield parameter.name, max(parameter.opts, key=len)
    for inner in getattr(command, "commands", {}).values():
        yield from _options(inner)


def examples(*lines: str) -> str:
    """Return command lines, given without `lookdown`, as the end of a help text."""
    heading = "Example:" if len(lines) == 1 else "Examples:"
    return "\n\n".join((heading, "\n".join(f"lookdown {line}" for line in lines)))
