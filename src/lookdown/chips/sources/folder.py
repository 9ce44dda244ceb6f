"""Images that are chips already: a folder a class, or no classes at all."""

from __future__ import annotations

import csv
from pathlib import Path

from lookdown.chips.sources import Crop, Scene, SourceContent, files_below
from lookdown.chips.sources.voc import IMAGES
from lookdown.errors import SourceError

__all__ = ["add_chip", "read", "read_columns", "read_lines"]


def read(root: Path) -> SourceContent:
    """Take the name of the first folder below `root` as the class; images directly in `root` have none.

    A folder called `background` holds chips that show none of the objects.
    """
    if not root.is_dir():
        raise SourceError(f"{root} is not a folder; give one that holds images, or a folder of images a class")
    content = SourceContent()
    for path in files_below(root, IMAGES):
        first, *deeper = path.relative_to(root).parts
        label = first if deeper else None
        add_chip(content, root, path, None if label == "background" else label, background=label == "background")
    if not content.crops:
        raise SourceError(f"{root} holds no image ({', '.join(IMAGES)}); give a folder that does")
    return content


def add_chip(
    content: SourceContent,
    root: Path,
    path: Path,
    label: str | None,
    *,
    background: bool = False,
    group: str | None = None,
) -> None:
    """Add an image that is a chip as a whole."""
    name = path.relative_to(root).as_posix()
    content.scenes[name] = Scene(name=name, path=path, group=group)
    content.crops.append(Crop(id=name, scene=name, label=label, background=background))


def read_columns(file: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the rows of a CSV whose header has at least these columns."""
    header, *rows = read_lines(file) or [[]]
    if missing := set(columns) - set(header):
        raise SourceError(f"{file} has no column {', '.join(sorted(missing))}; it needs {', '.join(columns)}")
    blanks = [""] * len(header)  # for the fields that a short line lacks
    return [dict(zip(header, row + blanks, strict=False)) for row in rows if row]


def read_lines(file: Path) -> list[list[str]]:
    """Return the lines of a CSV, each as its fields."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            return list(csv.reader(lines))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{file} cannot be read as CSV in UTF-8: {error}; save it so, or name another") from error
