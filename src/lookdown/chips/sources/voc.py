"""Pascal VOC: `Annotations/*.xml` beside `JPEGImages/`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import parse

from lookdown.chips.annotations import Annotated, Marked, Polygon, Scene, Skipped
from lookdown.chips.imagery import SUFFIXES
from lookdown.errors import SourceError

__all__ = ["box", "read", "read_folder", "read_xml"]

IMAGES = (".jpg", *sorted(SUFFIXES - {".jpg"}))  # the usual one first: it is named where no image is found


def read(root: Path) -> Annotated:
    """Read every annotation file below `Annotations`."""
    return read_folder(root / "Annotations", root / "JPEGImages")


def read_folder(
    annotations: Path,
    images: Path,
    groups: dict[str, str] | None = None,
    parse_object: Callable[[Element], tuple[str | None, Polygon]] | None = None,
) -> Annotated:
    """Read the annotation files of one folder; a file that cannot be parsed is skipped by name.

    `parse_object` finds class and corners in an `object` element that is not written as VOC does; its ValueError says
    why there are none.
    """
    parse_object = parse_object or _parse_object
    if not annotations.is_dir():
        raise SourceError(f"{annotations} is missing; give the folder that holds it as ROOT")
    found = Annotated()
    for file in sorted(annotations.glob("*.xml")):
        try:
            tree = read_xml(file)
        except SourceError as error:
            found.skipped.append(Skipped(file.name, str(error)))
            continue
        path = image_of(file.stem, images, tree.findtext("filename"))
        found.scenes[file.stem] = Scene(name=file.stem, path=path, group=(groups or {}).get(file.stem))
        for index, element in enumerate(tree.iter("object")):
            try:
                label, corners = parse_object(element)
            except ValueError as error:
                found.skipped.append(Skipped(f"{file.name}, object {index}", str(error)))
                continue
            found.marked.append(Marked(id=f"{file.stem}_{index:04d}", scene=file.stem, polygon=corners, label=label))
    if not found.scenes and not found.skipped:
        raise SourceError(f"{annotations} holds no .xml file; give the folder that holds `Annotations` as ROOT")
    return found


def read_xml(file: Path) -> Element:
    """Parse an annotation file from a stranger; entity bombs and broken files are refused by name."""
    try:
        root: Element = parse(file, forbid_dtd=True).getroot()
    except (ParseError, DefusedXmlException, ValueError, OSError) as error:
        raise SourceError(f"{file} is not readable XML: {str(error) or type(error).__name__}") from error
    return root


def image_of(stem: str, folder: Path, named: str | None = None) -> Path:
    """Return the image of an annotation file: by its own name first, then by the one it states."""
    candidates = [folder / f"{stem}{suffix}" for suffix in IMAGES]
    if named and Path(named).name == named:
        candidates.append(folder / named)
    return next((path for path in candidates if path.is_file()), candidates[0])


def box(left: float, top: float, right: float, bottom: float) -> Polygon:
    """Return the corners of an upright box."""
    return ((left, top), (right, top), (right, bottom), (left, bottom))


def _parse_object(element: Element) -> tuple[str, Polygon]:
    name = (element.findtext("name") or "").strip()
    if not name:
        raise ValueError("the object has no name")
    return name, _corners(element)


def _corners(element: Element) -> Polygon:
    for tag, names in (
        ("robndbox", ("left_top", "right_top", "right_bottom", "left_bottom")),
        ("bndbox", None),
    ):
        shape = element.find(tag)
        if shape is None:
            continue
        if names is None:
            return box(*(_number(shape, name) for name in ("xmin", "ymin", "xmax", "ymax")))
        return tuple((_number(shape, f"x_{name}"), _number(shape, f"y_{name}")) for name in names)
    raise ValueError("the object has no box")


def _number(element: Element, name: str) -> float:
    text = element.findtext(name)
    try:
        return float(text or "")
    except ValueError:
        raise ValueError(f"{name} is {text!r}, not a number") from None
