"""One setting in small for all tests of a process, so that nothing is trained twice."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

from lookdown.lab.paper.setting import Setting

__all__ = ["smoke"]


@lru_cache
def smoke() -> Setting:
    """Return the smallest scale, with runs in a folder of its own."""
    return Setting("smoke", Path(mkdtemp()))
