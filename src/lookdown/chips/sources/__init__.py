"""Public data sets and common layouts, one file each; its function `read(root)` returns what the source holds.

That is a `SourceContent`: scenes, what to cut from them as chips, and what had to be left out. A new source is a file
here with such a function, and a line in `SOURCES`.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from lookdown.errors import SourceError
from lookdown.suggestions import did_you_mean

__all__ = [
    "SOURCES", "Crop", "Polygon", "Scene", "SkippedItem", "SourceContent", "box_polygon", "files_below", "polygon_wkt",
    "read_source",
]  # fmt: skip

SOURCES = {  # the name of each source, and what it reads
    "coco": "COCO: a JSON file of images, annotations and categories, or the folder that holds it.",
    "dota": "DOTA: oriented boxes in labelTxt/, beside images/.",
    "fair1m": "FAIR1M: labelXml/ beside images/, or ship chips in class folders with chips.csv.",
    "fgsc23": "FGSC-23: a folder a class, or a CSV of images and classes.",
    "fgsrsi23": "FGSRSI-23: a folder a class, or a CSV of images and classes.",
    "folder": "Images that are chips already: a folder a class, or no classes at all.",
    "geojson": "GeoTIFF scenes, and polygons around the objects as GeoJSON.",
    "mar20": "MAR20 in its original layout.",
    "voc": "Pascal VOC: Annotations/ beside JPEGImages/.",
    "windows": "Scenes without boxes: overlapping windows over all that is not empty.",
}
_MODULES = {"fgsc23": "fgsrsi23", "geojson": "geojson_source"}  # of sources that are not in a module of their name

Polygon = tuple[tuple[float, float], ...]  # corners (x, y) in pixels of the scene, x to the right and y down


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An image that chips are cut from, or that is a chip itself."""

    name: str  # unique within the source
    path: Path  # below the root of the source; a missing file is reported when its chips are cut
    group: str | None = None  # scenes of the same place share it; None if the source does not say
    time: str | None = None  # ISO 8601
    sensor: str | None = None
    gsd: float | None = None  # metres a pixel


@dataclass(frozen=True, slots=True, kw_only=True)
class Crop:
    """One chip to be: an object in a scene, a window of it, or the whole scene."""

    id: str  # unique within the source, the same at every run
    scene: str
    polygon: Polygon | None = None  # None: the whole scene is the chip
    label: str | None = None  # None: unknown
    background: bool = False  # shows none of the objects
    exact: bool = False  # a window, cut to the pixel; the outline of an object gets a margin

    @property
    def is_object(self) -> bool:
        """Whether this is an object in a scene, rather than a window or a whole image."""
        return self.polygon is not None and not self.exact


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """Something that was left out, and why."""

    item: str  # a file, or a file and the object in it
    reason: str


@dataclass(frozen=True, slots=True)
class SourceContent:
    """Everything that a source holds, in a fixed order."""

    scenes: dict[str, Scene] = field(default_factory=dict)
    crops: list[Crop] = field(default_factory=list)
    skipped: list[SkippedItem] = field(default_factory=list)

    def skip(self, item: str, reason: str) -> None:
        """Record something that is left out."""
        self.skipped.append(SkippedItem(item, reason))


def box_polygon(left: float, top: float, right: float, bottom: float) -> Polygon:
    """Return the corners of an upright box."""
    return ((left, top), (right, top), (right, bottom), (left, bottom))


def polygon_wkt(corners: Sequence[tuple[float, float]] | None) -> str | None:
    """Return corners as WKT, closed, to ten significant digits."""
    if corners is None:
        return None
    ring = ", ".join(f"{x:.10g} {y:.10g}" for x, y in (*corners, corners[0]))
    return f"POLYGON (({ring}))"


def read_source(name: str, root: str | Path, **options: Any) -> SourceContent:
    """Read a source.

    name: one of `SOURCES`.
    root: the folder or file of the data.
    options: those of the source; see `read` in its module.
    """
    if name not in SOURCES:
        raise SourceError(f"there is no source {name!r}; {did_you_mean(name, SOURCES)}")
    if not Path(root).exists():
        raise SourceError(f"{root} does not exist; give the folder of the data as `root`")
    read = import_module(f"lookdown.chips.sources.{_MODULES.get(name, name)}").read
    _, *known = inspect.signature(read).parameters
    for option in options:
        if option not in known:
            advice = did_you_mean(option, known) if known else "leave it out"
            raise SourceError(f"the source {name} has no option {option!r}; {advice}")
    return _usable(read(Path(root).absolute(), **options))


def _usable(content: SourceContent) -> SourceContent:
    """Leave out what a manifest cannot hold: an id that is there already, and names that are not valid UTF-8."""
    crops: dict[str, Crop] = {}
    usable = SourceContent(content.scenes, skipped=list(content.skipped))
    for crop in content.crops:
        path = content.scenes[crop.scene].path.as_posix()
        if _as_text(crop.id) != crop.id or _as_text(path) != path:
            usable.skip(_as_text(crop.id), "its file name is not UTF-8; rename the file")
        elif crops.setdefault(crop.id, crop) is not crop:
            usable.skip(crop.id, "an object before it has the same id")
    usable.crops.extend(crops.values())
    return usable


def _as_text(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def files_below(root: Path, suffixes: Collection[str]) -> list[Path]:
    """Return the files below a folder that have one of these suffixes, in order; or `root` alone if it is a file."""
    if root.is_file():
        return [root]
    return sorted(path for path in root.rglob("*") if path.suffix.lower() in suffixes and path.is_file())
