"""Folders that take long to make, made once for all workers of a run; who writes to one takes a copy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

from filelock import FileLock

__all__ = ["begin", "end", "template"]

_ROOT = "LOOKDOWN_TEST_TEMPLATES"


def begin() -> None:
    """Make the folder that holds them; processes that are started from here on find it by the environment."""
    os.environ[_ROOT] = mkdtemp(prefix="lookdown-templates-")


def end() -> None:
    """Drop it."""
    shutil.rmtree(os.environ.pop(_ROOT), ignore_errors=True)


def template(name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` has filled, in this process or in another worker."""
    folder = Path(os.environ[_ROOT]) / name
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            unfinished = folder.with_name(f"{name}.unfinished")
            make(unfinished)
            unfinished.rename(folder)
    return folder
