"""Public data sets and common layouts, one file each; its function `read(root)` returns what the source holds.

A new source is a file here with such a function, and a line in `SOURCES`.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

from lookdown.chips.source_content import Crop, SourceContent
from lookdown.errors import SourceError
from lookdown.suggestions import did_you_mean

__all__ = ["SOURCES", "read_source"]

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
        if _as_text(crop.id) != crop.id or not _is_text(content.scenes[crop.scene].path):
            usable.skip(_as_text(crop.id), "its file name is not UTF-8; rename the file")
        elif crops.setdefault(crop.id, crop) is not crop:
            usable.skip(crop.id, "an object before it has the same id")
    usable.crops.extend(crops.values())
    return usable


def _is_text(path: Path) -> bool:
    return _as_text(path.as_posix()) == path.as_posix()


def _as_text(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()
