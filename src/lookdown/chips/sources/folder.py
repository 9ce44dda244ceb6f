"""Images that are chips already: a folder a class, or no classes at all."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from lookdown.chips.annotations import Annotated, Marked, Scene, Skipped
from lookdown.chips.sources.voc import IMAGES
from lookdown.errors import SourceError

__all__ = ["add_chip", "images_below", "read", "read_columns", "read_table"]


def read(root: Path) -> Annotated:
    """Take the name of the first folder below `root` as the class; images right below it have none.

    A folder called `background` holds chips that show none of the objects.
    """
    if not root.is_dir():
        raise SourceError(f"{root} is not a folder; give one that holds images, or a folder of images a class")
    found = Annotated()
    for path in images_below(root):
        place = path.relative_to(root)
        label = place.parts[0] if len(place.parts) > 1 else None
        add_chip(found, root, path, None if label == "background" else label, background=label == "background")
    if not found.marked:
        raise SourceError(f"{root} holds no image ({', '.join(IMAGES)}); give a folder that does")
    return found


def read_table(file: Path, root: Path) -> Annotated:
    """Read a CSV of two columns, an image and its class, with or without a header."""
    found = Annotated()
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            rows = [row for row in csv.reader(lines) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{file} cannot be read as CSV in UTF-8: {error}; save it so, or name another") from error
    for number, row in enumerate(rows, start=1):
        if len(row) != 2:
            raise SourceError(f"{file}, line {number} has {len(row)} columns, not two: an image and its class")
        path = root / row[0]
        if not path.is_file():
            if number > 1:  # the first line may be a header
                found.skipped.append(Skipped(f"{file.name}, line {number}", f"{row[0]} is missing"))
        elif not path.resolve().is_relative_to(root.resolve()):
            found.skipped.append(Skipped(f"{file.name}, line {number}", f"{row[0]} leads out of {root}"))
        else:
            add_chip(found, root, path, row[1].strip() or None)
    if not found.marked:
        raise SourceError(f"{file} names no image below {root}; its first column should")
    return found


def read_columns(file: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the rows of a CSV with a header, all of `columns` being there."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            rows = csv.DictReader(lines)
            if missing := set(columns) - set(rows.fieldnames or ()):
                raise SourceError(f"{file} has no column {', '.join(sorted(missing))}; it needs {', '.join(columns)}")
            return list(rows)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{file} cannot be read as CSV in UTF-8: {error}") from error


def images_below(root: Path) -> Iterator[Path]:
    """Yield the image files below a folder, in order."""
    return (path for path in sorted(root.rglob("*")) if path.suffix.lower() in IMAGES and path.is_file())


def add_chip(
    found: Annotated, root: Path, path: Path, label: str | None, *, background: bool = False, group: str | None = None
) -> None:
    """Add an image that is a chip as a whole."""
    name = path.relative_to(root).as_posix()
    found.scenes[name] = Scene(name=name, path=path, group=group)
    found.marked.append(Marked(id=name, scene=name, label=label, background=background))
