"""FAIR1M: its XML with four points an object, or ship chips in class folders with `chips.csv`."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree.ElementTree import Element

from lookdown.chips.annotations import Annotated, Polygon, Skipped
from lookdown.chips.sources import voc
from lookdown.chips.sources.folder import add_chip, images_below, read_columns
from lookdown.errors import SourceError

__all__ = ["read"]


def read(root: Path) -> Annotated:
    """Read whichever of the two layouts is there."""
    if (root / "chips.csv").is_file():
        return _read_chips(root)
    annotations = next(
        (root / name for name in ("labelXml", "labelXmls", "Annotations") if (root / name).is_dir()), None
    )
    if annotations is None:
        raise SourceError(f"{root} holds neither chips.csv nor labelXml; give the folder that does")
    return voc.read_folder(annotations, root / "images", parse_object=_parse_object)


def _read_chips(root: Path) -> Annotated:
    found = Annotated()
    groups: dict[int, str] = {}
    for number, row in enumerate(read_columns(root / "chips.csv", ("chip", "class", "image", "scene_group")), start=2):
        path = root / "chips" / row["chip"]
        if path.is_file() and path.resolve().is_relative_to((root / "chips").resolve()):
            add_chip(found, root, path, row["class"], group=row["scene_group"])
            if row["image"].isdecimal():
                groups[int(row["image"])] = row["scene_group"]
        else:
            reason = f"{row['chip']} is missing, or not below {root / 'chips'}"
            found.skipped.append(Skipped(f"chips.csv, line {number}", reason))
    for path in images_below(root / "background"):
        add_chip(found, root, path, None, background=True, group=_background_group(path.stem, groups))
    return found


def _background_group(stem: str, groups: dict[int, str]) -> str:
    """Return the group of the image that a background chip was cut from: `bg_01360_2` is of image 1360."""
    number = re.search(r"\d+", stem)
    if number is None:
        return f"background {stem}"
    return groups.get(int(number[0]), f"image {int(number[0])}")


def _parse_object(element: Element) -> tuple[str | None, Polygon]:
    return (element.findtext("possibleresult/name") or "").strip() or None, _corners(element)


def _corners(element: Element) -> Polygon:
    points = [point.text or "" for point in element.iterfind("points/point")]
    try:
        corners = [tuple(float(part) for part in point.split(",")) for point in points]
    except ValueError:
        raise ValueError(f"a point of {points} is not a pair of numbers") from None
    if len(corners) > 1 and corners[0] == corners[-1]:
        corners.pop()  # the ring is closed in the file
    if len(corners) < 3 or any(len(corner) != 2 for corner in corners):
        raise ValueError(f"{len(corners)} points make no polygon")
    return tuple((corner[0], corner[1]) for corner in corners)
