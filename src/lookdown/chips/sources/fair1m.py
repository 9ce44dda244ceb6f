"""FAIR1M: its XML with four points an object, or ship chips in class folders with `chips.csv`."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree.ElementTree import Element

from lookdown.chips.sources import Polygon, SourceContent, files_below, voc
from lookdown.chips.sources.folder import add_chip, read_columns
from lookdown.errors import SourceError

__all__ = ["read"]


def read(root: Path) -> SourceContent:
    """Read whichever of the two layouts is there."""
    if (root / "chips.csv").is_file():
        return _read_chips(root)
    for folder in (root / name for name in ("labelXml", "labelXmls", "Annotations")):
        if folder.is_dir():
            return voc.read_folder(folder, root / "images", parse_object=_parse_object)
    raise SourceError(f"{root} holds neither chips.csv nor labelXml; give the folder that does")


def _read_chips(root: Path) -> SourceContent:
    content = SourceContent()
    groups: dict[int, str] = {}
    for number, row in enumerate(read_columns(root / "chips.csv", ("chip", "class", "image", "scene_group")), start=2):
        path = root / "chips" / row["chip"]
        if path.is_file() and path.resolve().is_relative_to((root / "chips").resolve()):
            add_chip(content, root, path, row["class"], group=row["scene_group"])
            if row["image"].isdecimal():
                groups[int(row["image"])] = row["scene_group"]
        else:
            content.skip(f"chips.csv, line {number}", f"{row['chip']} is missing, or not below {root / 'chips'}")
    for path in files_below(root / "background", voc.IMAGES):
        add_chip(content, root, path, None, background=True, group=_background_group(path.stem, groups))
    return content


def _background_group(stem: str, groups: dict[int, str]) -> str:
    """Return the group of the image that a background chip was cut from: `bg_01360_2` is of image 1360."""
    number = re.search(r"\d+", stem)
    if number is None:
        return f"background {stem}"
    return groups.get(int(number[0]), f"image {int(number[0])}")


def _parse_object(element: Element) -> tuple[str | None, Polygon]:
    label = (element.findtext("possibleresult/name") or "").strip() or None
    points = [point.text or "" for point in element.iterfind("points/point")]
    try:
        corners = [tuple(float(part) for part in point.split(",")) for point in points]
    except ValueError:
        raise ValueError(f"a point of {points} is not a pair of numbers") from None
    if len(corners) > 1 and corners[0] == corners[-1]:
        corners.pop()  # the ring is closed in the file
    if len(corners) < 3 or any(len(corner) != 2 for corner in corners):
        raise ValueError(f"{len(corners)} points make no polygon")
    return label, tuple((corner[0], corner[1]) for corner in corners)
