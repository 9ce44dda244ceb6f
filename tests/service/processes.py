"""The service in a process of its own, on a free port of this machine."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["process"]


@contextmanager
def process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a service, and yield it with its port once it answers; it dies with the test."""
    started = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    try:
        assert started.stdout is not None
        line = started.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        assert found, (line, started.stderr.read() if started.stderr else "")
        yield started, int(found[1])
    finally:
        if started.poll() is None:
            started.kill()
        started.communicate()
