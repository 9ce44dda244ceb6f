"""docs/command-line.md says what the commands are."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.reference import PAGE, commands, with_reference

SOURCE = Path(__file__).parents[2] / "src" / "lookdown"


def test_the_reference_is_that_of_the_commands() -> None:
    page = PAGE.read_text()
    assert page == with_reference(page), "run `python -m tests.cli.reference`"


def test_every_command_and_every_option_is_on_the_page() -> None:
    page = PAGE.read_text()
    for path, command, _ in commands():
        section = page.split(f"### {path}\n")[1].split("\n### ")[0]
        options = {name for param in command.params for name in (*param.opts, *param.secondary_opts) if name[0] == "-"}
        rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
        assert {name for row in rows for name in re.findall(r"`(-[a-z0-9-]+)`", row)} == options - {"--help"}


def test_every_variable_that_the_source_reads_is_on_the_page() -> None:
    page = PAGE.read_text()
    text = "\n".join(file.read_text() for file in SOURCE.rglob("*.py"))
    assert set(re.findall(r"\bLOOKDOWN_[A-Z]+\b", text)) <= set(re.findall(r"`([A-Z_]+)`", page))


def test_a_page_that_differs_is_seen() -> None:
    page = PAGE.read_text()
    changed = page.replace("| `--overwrite` |", "| `--owerwrite` |", 1)
    assert changed != page
    assert with_reference(changed) == page
