"""The reference in docs/command-line.md, made from the commands themselves.

`python -m tests.cli.reference` in the root of the repository writes it anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from lookdown.cli import app

__all__ = ["PAGE", "commands", "documented_keys", "reference", "with_reference"]

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
_BEGIN, _END = "<!-- reference: begin -->\n", "<!-- reference: end -->\n"


def commands() -> Iterator[tuple[str, Any, Any]]:
    """Yield the name of each command, itself and its context, in the order of the help."""
    whole = typer.main.get_command(app)
    yield from _below(whole, whole.make_context("lookdown", [], resilient_parsing=True))


def _below(group: Any, context: Any) -> Iterator[tuple[str, Any, Any]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        own = command.make_context(name, [], parent=context, resilient_parsing=True)
        if hasattr(command, "list_commands"):
            yield from _below(command, own)
        else:
            yield own.command_path, command, own


def reference() -> str:
    """Return a section for each command: what it does, its arguments and options, its examples."""
    return "\n".join(_section(*row) for row in commands())


def with_reference(page: str) -> str:
    """Return the page with the reference as it is now between its two marks."""
    before, _, rest = page.partition(_BEGIN)
    return before + _BEGIN + "\n" + reference() + "\n" + _END + rest.partition(_END)[2]


def documented_keys(path: str) -> set[str]:
    """Return the keys that the page gives to the JSON document of a command."""
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{path}` |"))
    return set(re.findall(r"`(\w+)`", row.partition(" | ")[2]))


def _section(path: str, command: Any, context: Any) -> str:
    usage = context.get_usage().removeprefix("Usage: ")
    shown = "\n".join(line for line in command.epilog.splitlines() if line.startswith("lookdown "))
    rows = "\n".join(_row(param, context) for param in command.params if not param.hidden and param.name != "help")
    table = f"| | |\n|---|---|\n{rows}"
    return f"### {path}\n\n{_joined(command.help)}\n\n`{' '.join(usage.split())}`\n\n{table}\n\n```\n{shown}\n```\n"


def _joined(text: str) -> str:
    """Return a paragraph on a line, as the pages are written."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _row(param: Any, context: Any) -> str:
    names = (
        [param.metavar or param.name] if param.param_type_name == "argument" else [*param.opts, *param.secondary_opts]
    )
    notes = [param.help]
    if param.type_descriptor.is_choice:
        notes.append("one of " + ", ".join(f"`{choice}`" for choice in param.type_descriptor.choices))
    if param.envvar:
        notes.append(f"also from `{param.envvar}`")
    if param.required:
        notes.append("required")
    elif param.default is not None and not isinstance(param.default, bool | list | tuple):
        notes.append(f"`{param.default}` unless given")
    return f"| {', '.join(f'`{name}`' for name in names)} | {'; '.join(notes)} |".replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(with_reference(PAGE.read_text()))
