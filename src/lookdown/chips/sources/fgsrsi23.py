"""FGSRSI-23, the paper's ships: chips in a folder a class, or an image and its class a line in a CSV.

The layout of the published archive is not known to us, so both are taken, and `lookdown prepare` shows the classes and
their counts before anything is done.
"""

from __future__ import annotations

from pathlib import Path

from lookdown.chips.annotations import Annotated
from lookdown.chips.sources import folder

__all__ = ["read"]


def read(root: Path) -> Annotated:
    """Read the CSV in `root` if there is one, else its folders."""
    tables = sorted(root.glob("*.csv"))
    return folder.read_table(tables[0], root) if tables else folder.read(root)
