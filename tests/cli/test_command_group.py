"""The group of commands: panels in the order of the work, examples that work, errors with options, completion."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.cli.reference import commands
from tests.training.runs import recipe, world
from typer.testing import CliRunner

from lookdown.cli import app
from lookdown.cli.command_group import ORDER, with_options
from lookdown.errors import GalleryError
from lookdown.gallery.index.creation import gallery_of_run
from lookdown.training.train import train

COMMANDS = {path: command for path, command, _ in commands()}


def lines_of(epilog: str) -> list[str]:
    return [line for line in epilog.splitlines() if line.startswith("lookdown ")]


def parsed(line: str) -> None:
    """Parse a command line as `lookdown` would, values included, and do not run it."""
    group: Any = typer.main.get_command(app)
    name, *arguments = shlex.split(line)
    context = group.make_context(name, list(arguments))
    while hasattr(group, "list_commands"):
        step, group, arguments = group.resolve_command(context, arguments)
        context = group.make_context(step, list(arguments), parent=context)
        arguments = [*getattr(context, "_protected_args", ()), *context.args]


def test_the_help_is_a_map_in_the_order_of_the_work() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    panels = ("Start here", "Make a metric", "Search an archive", "Reproduce")
    listed = [name for name in ORDER if f"│ {name} " in shown]
    places = [shown.index(f"│ {name} ") for name in listed]
    assert places == sorted(places)
    assert {path.split()[1] for path in COMMANDS} == set(listed)
    assert [panel for panel in panels if f"─ {panel} ─" in shown] == list(panels)
    assert "Commands ─" not in shown, "a command is in no panel"
    described = [line for line in shown.splitlines() if any(line.startswith(f"│ {name} ") for name in listed)]
    assert all(line.rstrip("│ ").endswith(".") for line in described), "a description takes more than a line"
    assert lines_of("\n".join(line.strip() for line in shown.splitlines()))[0].startswith("lookdown index")


@pytest.mark.parametrize("path", COMMANDS)
def test_each_command_ends_with_examples_that_its_parameters_take(path: str) -> None:
    lines = lines_of(COMMANDS[path].epilog)
    assert 1 <= len(lines) <= 2
    for line in lines:
        assert line.startswith(path), "an example of another command"
        assert len(line) < 78, "a terminal would break it"
        parsed(line)


def test_the_examples_of_the_whole_parse_too() -> None:
    lines = lines_of(app.info.epilog or "")
    assert len(lines) == 3
    for line in lines:
        parsed(line)


def test_the_parser_of_examples_sees_a_wrong_one() -> None:
    for wrong in ("lookdown index a -o b --nothing", "lookdown search g x -k none", "lookdown gallery sta g"):
        with pytest.raises(Exception, match=r"No such|valid integer"):
            parsed(wrong)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return a folder with small stand-ins for what the examples name, and ids of chips in its gallery."""
    folder = tmp_path_factory.mktemp("examples")
    for name in ("world", "abroad"):
        shutil.copytree(world(), folder / "demo" / name)
    train(recipe(), folder / "demo" / "run")
    gallery = gallery_of_run(folder / "demo" / "gallery", folder / "demo" / "run")
    gallery.add([folder / "demo" / "world"])
    chips = sorted((folder / "demo" / "world" / "chips").iterdir())
    shutil.copy(chips[0], folder / "EXAMPLE.jpg")
    return folder, gallery.snapshot.ids.to_pylist()


RUN_AS_THEY_ARE = ("evaluate", "adapt", "search", "gallery", "index")


def test_examples_run(demo: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, ids = demo
    monkeypatch.chdir(folder)
    shutil.copytree("demo/world/chips", "IMAGES")
    chosen = [path for path in COMMANDS if path.split()[1] in RUN_AS_THEY_ARE]
    order = sorted(chosen, key=lambda path: path != "lookdown adapt")  # evaluate compares what adapt has written
    lines = [line for path in order for line in lines_of(COMMANDS[path].epilog)]
    for line in lines:
        typed = [ids.pop() if word == "ID" else word for word in shlex.split(line)[1:]]
        done = CliRunner().invoke(app, typed)
        assert done.exit_code == 0, f"{line}: {done.exception or done.output}"


@pytest.mark.parametrize(
    ("shell", "asked"),
    [
        ("bash", {"COMP_WORDS": "lookdown ind", "COMP_CWORD": "1"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "lookdown ind"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "lookdown ind", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_a_shell_is_told_how_a_command_goes_on(shell: str, asked: dict[str, str]) -> None:
    env = {**os.environ, **asked, "_LOOKDOWN_COMPLETE": f"complete_{shell}"}
    done = subprocess.run([sys.executable, "-m", "lookdown"], env=env, capture_output=True, text=True, timeout=60)
    assert "index" in done.stdout
    assert "search" not in done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_completion_is_installed_for_the_shell_and_works_there(tmp_path: Path) -> None:
    command = f"{shlex.quote(str(Path(sys.executable).parent / 'lookdown'))}"
    env = {**os.environ, "HOME": str(tmp_path)}

    def bash(script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, timeout=60)

    assert "complete -o default" in bash(f"{command} --show-completion; true").stdout
    installed = bash(f"{command} --install-completion; true")
    assert installed.returncode == 0
    script = tmp_path / ".bash_completions" / "lookdown.sh"
    asked = bash(
        f"source {script}; PATH={Path(sys.executable).parent}:$PATH; COMP_WORDS=(lookdown gal); COMP_CWORD=1; "
        '_lookdown_completion lookdown gal lookdown; echo "${COMPREPLY[@]}"'
    )
    assert asked.stdout.split() == ["gallery"]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("it exists; pass `overwrite=True`", "it exists; pass --overwrite"),
        ("omit `data`, or pass `data='chips'`", "omit --data, or pass --data chips"),
        ("name a folder with `out=...`", "name a folder with --out"),
        ("`run` and `batch_size=3` are no options", "`run` and `batch_size=3` are no options"),
        ("run `lookdown train --resume run`", "run `lookdown train --resume run`"),
    ],
)
def test_errors_of_the_library_name_the_options_of_the_command(sentence: str, expected: str) -> None:
    assert with_options(sentence, COMMANDS["lookdown adapt"]) == expected


def test_the_commands_of_a_group_count_too() -> None:
    group: Any = typer.main.get_command(app)
    assert with_options("leave `workers` out", group.commands["gallery"]) == "leave --workers out"


def test_an_error_that_a_command_raises_is_reworded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise GalleryError("it is no gallery; pass `use='1-trained'`")

    monkeypatch.setattr("lookdown.gallery.Gallery.open", fail)
    failed = CliRunner().invoke(app, ["gallery", "metrics", str(tmp_path)])
    assert isinstance(failed.exception, GalleryError)
    assert str(failed.exception) == "it is no gallery; pass --use 1-trained"
