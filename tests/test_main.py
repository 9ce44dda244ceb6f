"""The command as a process: exit codes, signals, pipes and terminals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.chips import layouts
from tests.cli.terminals import environment, on_terminal, piped
from tests.gallery.galleries import vector_gallery
from tests.training.runs import recipe

from lookdown.config import to_toml

LOOKDOWN = ("-m", "lookdown")
COLOUR = re.compile(r"\x1b\[[0-9;]*[34][0-8]")  # of letters or of the ground


def lookdown(*typed: object, **options: str) -> subprocess.CompletedProcess[str]:
    return piped(*LOOKDOWN, *map(str, typed), env=environment(**options))


def interrupted(typed: list[str], cwd: Path, ready: Callable[[], bool]) -> tuple[int, str, str]:
    """Begin a command, press Ctrl-C once it is at work, and return how it ended and what it has said."""
    # A background job of a shell ignores the signal, and would hand that on.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [sys.executable, *LOOKDOWN, *typed], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    end = time.monotonic() + 120
    while not ready() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    shown, told = process.communicate(timeout=300)
    # An interrupt that passes through `exec` makes Python end by the signal itself, which shells count as 130 too.
    code = 130 if process.returncode == -signal.SIGINT else process.returncode
    return code, shown, told


def test_the_codes_of_good_and_bad_ends(tmp_path: Path) -> None:
    assert lookdown("--version").returncode == 0
    for wrong in (["serach"], ["search", "g", "x", "-k", "0"], ["search", "g"], ["doctor", "--nothing"], []):
        done = lookdown(*wrong)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
    assert "Did you mean 'search'?" in lookdown("serach").stderr
    failed = lookdown("search", tmp_path / "none", "x.jpg")
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr == f"lookdown: {tmp_path / 'none'} does not exist; make a gallery with `lookdown index`\n"


def test_an_error_of_the_system_names_its_file(tmp_path: Path) -> None:
    code = (
        "import lookdown.cli\n"
        f"def fail(**_): open({str(tmp_path / 'none')!r})\n"
        "lookdown.cli.app = fail\n"
        "from lookdown.__main__ import main; main()"
    )
    done = piped("-c", code)
    assert done.returncode == 1
    assert done.stderr == (
        f"lookdown: {tmp_path / 'none'}: No such file or directory; check its name, your permissions and the free "
        "space on the disk\n"
    )
    other = piped("-c", code.replace(f"open({str(tmp_path / 'none')!r})", "raise OSError('a bug')"))
    assert "Traceback" in other.stderr


@pytest.mark.kill
def test_training_is_interrupted_with_the_way_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text(to_toml(recipe(stage1={"epochs": 5_000})))
    log = tmp_path / "run" / "metrics.jsonl"
    typed = ["train", "quick.toml", "-o", "run", "--json"]
    code, shown, told = interrupted(typed, tmp_path, lambda: log.is_file() and log.stat().st_size > 0)
    assert code == 130
    assert shown == ""
    assert told.splitlines()[-1] == (
        "lookdown: interrupted; continue with `lookdown train --resume RUN`, or run the same command again if RUN does "
        "not exist yet"
    )
    assert "Traceback" not in told


@pytest.mark.kill
def test_preparing_is_interrupted_and_the_same_again_ends_it(tmp_path: Path) -> None:
    typed = ["prepare", "synthetic", "-o", "world", "--kinds", "ships", "--chips", "60", "--size", "48"]

    def begun() -> bool:
        return any(path.is_file() and path.suffix == ".jpg" for path in tmp_path.rglob("*"))

    code, shown, told = interrupted(typed, tmp_path, begun)
    assert (code, shown) == (130, "")
    assert told.splitlines()[-1] == "lookdown: interrupted; run the same command again to continue"
    assert "Traceback" not in told
    assert piped(*LOOKDOWN, *typed, cwd=tmp_path).returncode == 0


def test_an_interrupt_before_a_command_has_begun_is_a_line_too() -> None:
    code = (
        "import sys, types; broken = types.ModuleType('lookdown.cli')\n"
        "def interrupt(name): raise KeyboardInterrupt\n"
        "broken.__getattr__ = interrupt; sys.modules['lookdown.cli'] = broken\n"
        "from lookdown.__main__ import main; main()"
    )
    done = piped("-c", code)
    assert done.returncode == 130
    assert done.stderr == "lookdown: interrupted before it began; run the same command again\n"


def test_a_reader_that_has_seen_enough_ends_it_quietly(tmp_path: Path) -> None:
    _, _, rows = vector_gallery(tmp_path / "g", 3_000)  # more text than a pipe holds
    typed = ["search", str(tmp_path / "g"), rows[0]["id"], "-k", "2999", "--json"]
    env = environment() | {"PYTHONUNBUFFERED": ""}  # else Python takes the part of a text that was written for all
    for command in (typed, ["doctor"], ["--help"]):
        with subprocess.Popen(
            [sys.executable, *LOOKDOWN, *command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            if command is typed:
                assert os.read(process.stdout.fileno(), 8) == b'{"query"'
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 1


def test_what_a_stream_cannot_write_is_shown_all_the_same(tmp_path: Path) -> None:
    layouts.folders(tmp_path / "data", 12, ("船", "A2"))
    typed = ["prepare", "folder", tmp_path / "data", "-o", tmp_path / "out"]
    shown = lookdown(*typed, PYTHONIOENCODING="ascii")
    assert shown.returncode == 0, shown.stderr
    assert "\\u8239" in shown.stdout


def test_in_a_pipe_there_are_no_control_characters(tmp_path: Path) -> None:
    typed = ["prepare", "synthetic", "-o", str(tmp_path / "w"), "--kinds", "ships", "--chips", "10", "--size", "16"]
    for command in (["--help"], ["index", "--help"], ["doctor"], ["serach"], typed):
        done = lookdown(*command, TERM="xterm-256color")
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", done.stdout + done.stderr), command
    assert "drawing: " in done.stderr
    assert "drawing: " not in done.stdout


def test_on_a_terminal_there_are_colours_unless_they_are_not_wanted() -> None:
    def shown(**options: str) -> str:
        return on_terminal(*LOOKDOWN, "--help", env=environment(**options), stdout=True)[1]

    assert COLOUR.search(shown(TERM="xterm-256color"))
    assert not COLOUR.search(shown(TERM="xterm-256color", NO_COLOR="1"))
    assert "\x1b" not in shown(TERM="dumb")
    assert COLOUR.search(lookdown("--help", FORCE_COLOR="1", TERM="xterm-256color").stdout)


@pytest.mark.parametrize("stdout", [True, False])
def test_on_a_terminal_there_is_a_bar(stdout: bool, tmp_path: Path) -> None:
    typed = ["prepare", "synthetic", "-o", str(tmp_path / "w"), "--kinds", "ships", "--chips", "10", "--size", "16"]
    result, told = on_terminal(*LOOKDOWN, *typed, env=environment(TERM="xterm-256color"), stdout=stdout)
    assert "\x1b[?25l" in told, "the cursor is not hidden, so there was no bar"
    assert "drawing" in told
    assert "chips in " in (told if stdout else result)
    assert "\x1b" not in result
