"""Progress: a bar on a terminal, lines elsewhere, and never a word on stdout."""

from __future__ import annotations

import pytest
from tests.cli.terminals import environment, on_terminal, piped

CODE = """
import time
from lookdown.cli.progress_bar import ProgressBar
with ProgressBar("reading [bold]now") as progress:
    for done in range(1, 1001):
        progress(done, 1000, "chips")
    progress.begin("training", 40)
    progress.move(50, 100, "steps", description="stage 2", detail="loss 1.234")
    time.sleep(0.6)  # a bar is drawn four times a second
    progress.say("epoch 1 " + "long " * 30 + "[end]")
    print("result", flush=True)
    progress.note("at the end")
"""


def test_elsewhere_there_are_ten_plain_lines() -> None:
    done = piped("-c", CODE)
    assert done.stdout == "result\n"
    tenths = [f"reading [bold]now: {n:,} of 1,000 chips" for n in range(100, 1001, 100)]
    assert done.stderr.splitlines() == [*tenths, "epoch 1 " + "long " * 30 + "[end]", "at the end"]


@pytest.mark.parametrize("stdout", [True, False])
def test_on_a_terminal_there_is_a_bar_that_goes_away(stdout: bool) -> None:
    result, shown = on_terminal("-c", CODE, env=environment(TERM="xterm-256color", COLUMNS="120"), stdout=stdout)
    assert "reading [bold]now" in shown
    assert "50/100 steps" in shown
    assert "stage 2" in shown
    assert "loss 1.234" in shown
    assert "\x1b[2K" in shown, "the bar is never cleared"
    assert ("result" in shown) == stdout
    assert result == ("" if stdout else "result\n"), "a result in a pipe is plain, whatever the terminal shows"


def test_a_dumb_terminal_gets_lines() -> None:
    _, shown = on_terminal("-c", CODE, env=environment(TERM="dumb"), stdout=True)
    assert "\x1b" not in shown
    assert "reading [bold]now: 500 of 1,000 chips" in shown


def test_of_several_processes_the_others_are_silent() -> None:
    done = piped("-c", CODE.replace('now")', 'now", quiet=True)'))
    assert (done.stdout, done.stderr) == ("result\n", "")


def test_work_that_grows_shows_no_tenth_twice() -> None:
    code = """
from lookdown.cli.progress_bar import ProgressBar
with ProgressBar("indexing") as progress:
    progress(0, 0, "chips")
    for done in range(512, 20_000, 512):
        progress(done, done + 512, "chips")
"""
    lines = piped("-c", code).stderr.splitlines()
    assert 1 < len(lines) <= 10
    assert lines[0] == "indexing: 512 of 1,024 chips"


def test_work_without_a_total_prints_a_line_every_30_seconds() -> None:
    code = """
from lookdown.cli import progress_bar as module
clock = iter(range(0, 1000, 10))
module.time.monotonic = lambda: next(clock)
with module.ProgressBar("listing") as progress:
    for done in range(1000, 8000, 1000):
        progress(done, None, "files")
"""
    assert piped("-c", code).stderr.splitlines() == ["listing: 3,000 files", "listing: 6,000 files"]
