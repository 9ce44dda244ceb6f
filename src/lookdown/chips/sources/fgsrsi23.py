"""FGSRSI-23, the paper's ships, and FGSC-23: chips in a folder a class, or a CSV with an image and its class a line.

We do not know the layout of the published archives, so both layouts are read; `lookdown prepare --dry-run` shows the
classes and their counts.
"""

from __future__ import annotations

from pathlib import Path

from lookdown.chips.sources import SourceContent, folder
from lookdown.errors import SourceError

__all__ = ["read"]


def read(root: Path) -> SourceContent:
    """Read the CSV in `root` if there is one, else its folders."""
    tables = sorted(root.glob("*.csv"))
    return _read_table(tables[0], root) if tables else folder.read(root)


def _read_table(file: Path, root: Path) -> SourceContent:
    """Read a CSV of two columns, an image and its class, with or without a header."""
    content = SourceContent()
    rows = [row for row in folder.read_lines(file) if row]
    for number, row in enumerate(rows, start=1):
        if len(row) != 2:
            raise SourceError(f"{file}, line {number} has {len(row)} columns, not two: an image and its class")
        path = root / row[0]
        if not path.is_file():
            if number > 1:  # the first line may be a header
                content.skip(f"{file.name}, line {number}", f"{row[0]} is missing")
        elif not path.resolve().is_relative_to(root.resolve()):
            content.skip(f"{file.name}, line {number}", f"{row[0]} is not below {root}")
        else:
            folder.add_chip(content, root, path, row[1].strip() or None)
    if not content.crops:
        raise SourceError(f"{file} names no image below {root}; its first column should")
    return content
