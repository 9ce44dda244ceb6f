"""Commands in processes of their own, with pipes or with a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["environment", "on_terminal", "piped"]

_OF_COLOURS = (
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "NO_COLOR",
    "PY_COLORS",
    "TERM",
    "TTY_COMPATIBLE",
)


def environment(**changes: str) -> dict[str, str]:
    """Return the variables of this process without those that speak of colours, and with some of the test's own."""
    return {name: value for name, value in os.environ.items() if name not in _OF_COLOURS} | changes


def piped(*arguments: str, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python with arguments, its output in pipes."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=env or environment(), capture_output=True, text=True, timeout=300, **options)


def on_terminal(*arguments: str, env: Mapping[str, str], stdout: bool) -> tuple[str, str]:
    """Run Python with stderr on a terminal, and stdout there too or in a pipe; return what each has shown."""
    ours, theirs = pty.openpty()
    target = theirs if stdout else subprocess.PIPE
    with subprocess.Popen([sys.executable, *arguments], env=env, stdout=target, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:  # Linux says so where the other end is closed
                break
            if not part:
                break
            shown += part
        rest = process.stdout.read() if process.stdout else b""
    os.close(ours)
    return rest.decode(), shown.decode()
