"""Public data sets and common layouts, one file each; `read(root)` in it returns what the source knows.

A new source is a file here with such a function, and its name in `SOURCES`.
"""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from lookdown.chips.annotations import Annotated, Marked, Skipped
from lookdown.errors import SourceError

__all__ = ["SOURCES", "read_source"]

SOURCES = ("coco", "dota", "fair1m", "fgsc23", "fgsrsi23", "folder", "geojson", "mar20", "voc", "windows")


def read_source(name: str, root: Path, **options: Any) -> Annotated:
    """Read a source by name; options that are None are left to their defaults, and one that it lacks is refused."""
    if name not in SOURCES:
        close = get_close_matches(name, [*SOURCES, "synthetic"], n=1)
        guess = f"; did you mean {close[0]}?" if close else ""
        raise SourceError(f"there is no source {name!r}; known are {', '.join(SOURCES)} and synthetic{guess}")
    if not root.exists():
        raise SourceError(f"{root} does not exist; give the folder of the data as ROOT")
    read = import_module(f"lookdown.chips.sources.{name}").read
    given = {option: value for option, value in options.items() if value is not None}
    if strange := set(given) - set(inspect.signature(read).parameters):
        raise SourceError(f"{', '.join(sorted(strange))} means nothing to the source {name}; leave it out")
    return _usable(read(root.absolute(), **given))


def _usable(found: Annotated) -> Annotated:
    """Leave out what the manifest could not hold: ids that stand twice, and names that are no text."""
    kept: dict[str, Marked] = {}
    skipped = list(found.skipped)
    for marked in found.marked:
        shown = marked.id.encode("utf-8", "backslashreplace").decode()
        if shown != marked.id or not _is_text(found.scenes[marked.scene].path.as_posix()):
            skipped.append(Skipped(shown, "its file name is not UTF-8; rename the file"))
        elif marked.id in kept:
            skipped.append(Skipped(marked.id, "an object before it has the same id"))
        else:
            kept[marked.id] = marked
    return Annotated(found.scenes, list(kept.values()), skipped)


def _is_text(name: str) -> bool:
    return name.encode("utf-8", "backslashreplace").decode() == name
