"""One script in a process of its own, and what came of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from lookdown.errors import MissingExtraError
from lookdown.lab.bench.row import ROWS_FILE, Row, Rows

__all__ = ["POOLS", "Outcome", "run_script"]

POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The rows of a script, or why there are none or not all."""

    script: str
    title: str
    threads: int | None  # of each contestant; None: all that were given
    seconds: float
    rows: Sequence[Row]
    printed: str
    trouble: str | None = None

    @property
    def missed(self) -> list[Row]:
        """Rows whose target does not hold."""
        return [row for row in self.rows if not row.met]


def run_script(script: Path, pages: Path, *, threads: int, quick: bool = False) -> Outcome:
    """Run a script with its pools of threads pinned; pages and pictures that it writes are moved to `pages`."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, str(script), "--out", folder, *(["--quick"] if quick else [])]
        pinned = os.environ | dict.fromkeys(POOLS, str(threads))
        begin = time.perf_counter()
        done = subprocess.run(command, env=pinned, capture_output=True, text=True, errors="replace")
        seconds = time.perf_counter() - begin
        table = Rows.read(Path(folder)) if Path(folder, ROWS_FILE).is_file() else Rows(script.stem, ())
        for file in sorted(Path(folder).iterdir()):
            if file.name != ROWS_FILE:
                shutil.copy(file, pages / file.name)
    outcome = Outcome(script.stem, table.title, table.threads, seconds, table.rows, done.stdout)
    if done.returncode and (quick or not outcome.missed):
        trouble = _why(script, done.returncode, done.stderr)
    elif not table.rows:
        trouble = f"{script.name} handed over no rows; end it with `report` of sidebyside"
    else:
        return outcome
    return Outcome(script.stem, table.title, table.threads, seconds, table.rows, done.stdout, trouble)


def _why(script: Path, code: int, errors: str) -> str:
    """Return the reason in a sentence, with the next step."""
    last = next((line for line in reversed(errors.splitlines()) if line.strip()), "nothing was said")
    missing = re.match(r"ModuleNotFoundError: No module named '(?!lookdown)([\w.]+)'", last)
    if missing:
        return f"{missing[1]} is missing: {MissingExtraError('the benchmark', 'bench')}"
    return f"{script.name} ended with code {code}: {last.strip()}; run it alone to see all that it says"
