"""One experiment in small for all tests of a process, so that nothing is trained twice."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

from lookdown.lab.paper.experiment import Experiment

__all__ = ["smoke"]


@lru_cache
def smoke() -> Experiment:
    """Return the smallest scale, with runs in a folder of its own."""
    return Experiment("smoke", Path(mkdtemp()))
