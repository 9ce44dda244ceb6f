"""Pascal VOC: `Annotations/*.xml` beside `JPEGImages/`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import parse

from lookdown.chips.imagery import SUFFIXES
from lookdown.chips.sources import Crop, Polygon, Scene, SourceContent, box_polygon
from lookdown.errors import SourceError

__all__ = ["IMAGES", "image_of", "read", "read_folder"]

IMAGES = (".jpg", *sorted(SUFFIXES - {".jpg"}))  # the usual one first: an error names it if there is no image


def read(root: Path) -> SourceContent:
    """Read every annotation file below `Annotations`."""
    return read_folder(root / "Annotations", root / "JPEGImages")


def read_folder(
    annotations: Path,
    images: Path,
    groups: dict[str, str] | None = None,
    parse_object: Callable[[Element], tuple[str | None, Polygon]] | None = None,
) -> SourceContent:
    """Read the annotation files of one folder; a file that cannot be parsed is skipped by name.

    groups: the scene group of each image, by its name without the suffix.
    parse_object: returns class and corners of an `object` element that is not written as VOC does; it raises ValueError
        if there are none.
    """
    parse_object = parse_object or _parse_object
    if not annotations.is_dir():
        raise SourceError(f"{annotations} is missing; give the folder that holds it as `root`")
    content = SourceContent()
    for file in sorted(annotations.glob("*.xml")):
        try:
            tree = parse(file, forbid_dtd=True).getroot()  # refuses entity bombs
        except (ParseError, DefusedXmlException, ValueError, OSError) as error:
            content.skip(file.name, f"{file} is not readable XML: {str(error) or type(error).__name__}")
            continue
        path = image_of(file.stem, images, tree.findtext("filename"))
        content.scenes[file.stem] = Scene(name=file.stem, path=path, group=(groups or {}).get(file.stem))
        for index, element in enumerate(tree.iter("object")):
            try:
                label, corners = parse_object(element)
            except ValueError as error:
                content.skip(f"{file.name}, object {index}", str(error))
            else:
                key = f"{file.stem}_{index:04d}"
                content.crops.append(Crop(id=key, scene=file.stem, polygon=corners, label=label))
    if not content.scenes and not content.skipped:
        raise SourceError(f"{annotations} holds no .xml file; give the folder that holds `Annotations` as `root`")
    return content


def image_of(stem: str, folder: Path, named: str | None = None) -> Path:
    """Return the image of an annotation file: the one of the same name, else the one that the file names."""
    candidates = [folder / f"{stem}{suffix}" for suffix in IMAGES]
    if named and Path(named).name == named:
        candidates.append(folder / named)
    return next((path for path in candidates if path.is_file()), candidates[0])


def _parse_object(element: Element) -> tuple[str, Polygon]:
    label = (element.findtext("name") or "").strip()
    if not label:
        raise ValueError("the object has no name")
    if (shape := element.find("robndbox")) is not None:
        corners = ("left_top", "right_top", "right_bottom", "left_bottom")
        return label, tuple((_number(shape, f"x_{name}"), _number(shape, f"y_{name}")) for name in corners)
    if (shape := element.find("bndbox")) is not None:
        return label, box_polygon(*(_number(shape, name) for name in ("xmin", "ymin", "xmax", "ymax")))
    raise ValueError("the object has no box")


def _number(element: Element, name: str) -> float:
    text = element.findtext(name)
    try:
        return float(text or "")
    except ValueError:
        raise ValueError(f"{name} is {text!r}, not a number") from None
