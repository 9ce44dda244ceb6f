"""Whole scenes of the synthetic world: GeoTIFFs written in tiles, and the boxes of what is in them as GeoJSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.transform import from_origin
from rasterio.windows import Window

from lookdown.errors import InputError
from lookdown.lab.synthetic.grounds import GROUNDS, Place, Setting
from lookdown.lab.synthetic.layouts import Layout, Standing, lay_out
from lookdown.lab.synthetic.parts import Part
from lookdown.lab.synthetic.picture import expose
from lookdown.lab.synthetic.places import CRS, footprints, sample_places
from lookdown.lab.synthetic.rendering import Sun, View
from lookdown.lab.synthetic.sensors import Sensor, observe
from lookdown.progress import Progress, no_progress

__all__ = ["SceneWritten", "tiles_of", "write_scene"]

_TILE = 512  # pixels
_BLUR = 8  # pixels around a tile that blur reaches over
_STREAM = 5  # of random numbers
_CORNER, _APART, _SIDE = (
    (200_000.0, 420_000.0),
    20_000.0,
    20,
)  # metres: where the first scene lies, and how far it is to the next


@dataclass(frozen=True, slots=True)
class SceneWritten:
    """The files of a scene, and what stands in it."""

    image: Path
    boxes: Path
    standing: list[Standing]


def write_scene(
    folder: Path,
    name: str,
    sensor: Sensor,
    *,
    ground: str = "harbour",
    size: int = 4096,
    gsd: float = 1.0,
    seed: int = 0,
    progress: Progress = no_progress,
) -> SceneWritten:
    """Write `name`.tif and `name`.geojson: a port with its roads and ships, or an airfield with its aircraft.

    `ground` is harbour, or what an airfield lies in: apron (grass), forest or desert. Only one tile is held at a time.
    """
    if ground not in GROUNDS or ground == "sea":
        raise InputError(f"a scene is of harbour, apron, forest or desert; got {ground!r}")
    place = _place(ground, seed)
    half = size * gsd / 2
    layout = lay_out(ground, half, np.random.default_rng([seed, _STREAM]))
    view = View(-half, half, size, size, gsd)
    folder.mkdir(parents=True, exist_ok=True)
    image, boxes = folder / f"{name}.tif", folder / f"{name}.geojson"
    beside = folder / f".{name}.part.tif"
    profile = {
        "driver": "GTiff", "width": size, "height": size, "count": 3, "dtype": "uint8", "crs": CRS, "tiled": True,
        "blockxsize": _TILE, "blockysize": _TILE, "compress": "deflate", "predictor": 2, "photometric": "rgb",
        "transform": from_origin(place.easting - half, place.northing + half, gsd, gsd),
    }  # fmt: skip
    starts = [(row, column) for row in range(0, size, _TILE) for column in range(0, size, _TILE)]
    sun = Sun(place.sun_azimuth, sensor.sun_elevation)
    index = _Index(layout)
    margin = _BLUR + int(np.ceil(index.highest / np.tan(np.radians(sun.elevation)) / gsd))  # shadows fall in from there
    beside.unlink(missing_ok=True)  # GDAL would read what a run that was stopped has left
    with rasterio.open(beside, "w", **profile) as target:
        target.update_tags(TIFFTAG_DATETIME=place.time, sensor=sensor.name)
        for number, (row, column) in enumerate(starts, start=1):
            rows, columns = min(_TILE, size - row), min(_TILE, size - column)
            noise = np.random.default_rng([seed, _STREAM, row, column])
            window = _around(view, row, column, rows, columns, margin)
            pixels = _draw(window, index, place, sun, sensor, noise)[margin:-margin, margin:-margin]
            target.write(pixels.transpose(2, 0, 1), window=Window(column, row, columns, rows))
            progress(number, len(starts), "tiles")
    beside.rename(image)
    boxes.write_text(json.dumps(_collection(layout.standing, place, sensor)) + "\n")
    return SceneWritten(image, boxes, layout.standing)


def tiles_of(size: int) -> int:
    """Return how many tiles a scene has."""
    return int(np.ceil(size / _TILE)) ** 2


def _place(ground: str, seed: int) -> Place:
    """Return a place of the ground for every seed, north of all places of chips."""
    place = next(place for place in sample_places(5, seed) if place.ground == ground)
    row, column = divmod(seed % _SIDE**2, _SIDE)
    return replace(
        place,
        name=f"{ground}-scene-{seed}",
        easting=_CORNER[0] + column * _APART,
        northing=_CORNER[1] + row * _APART,
    )


def _around(whole: View, row: int, column: int, rows: int, columns: int, margin: int) -> View:
    """Return the view of a tile with a margin that will be cut off."""
    west, north = whole.west + (column - margin) * whole.step, whole.north - (row - margin) * whole.step
    return View(west, north, columns + 2 * margin, rows + 2 * margin, whole.step)


def _draw(
    view: View, index: _Index, place: Place, sun: Sun, sensor: Sensor, noise: np.random.Generator
) -> NDArray[np.uint8]:
    setting, objects = index.seen_in(view)
    wakes = [wake for wake in index.layout.wakes if _near(view, wake.x, wake.y, 2 * wake.length)]
    return observe(sensor, expose(view, setting, objects, wakes, place, sun, factor=2), view.step, noise)


class _Index:
    """Finds the parts of a layout that a tile can see."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._clutter = _boxes(layout.setting.clutter)
        self._objects = [part for standing in layout.standing for part in standing.parts]
        self._object_boxes = _boxes(self._objects)
        self.highest = max((part.top for part in [*layout.setting.clutter, *self._objects]), default=0.0)

    def seen_in(self, view: View) -> tuple[Setting, list[Part]]:
        """Return what lies in a window: the ground with its clutter, and the parts of objects."""
        whole = self.layout.setting
        clutter = [whole.clutter[number] for number in _overlapping(self._clutter, view)]
        objects = [self._objects[number] for number in _overlapping(self._object_boxes, view)]
        return replace(whole, clutter=clutter), objects


def _boxes(parts: Sequence[Part]) -> NDArray[np.float64]:
    """Return (left, low, right, high) of each part."""
    if not parts:
        return np.empty((0, 4))
    return np.array([[*part.outline.min(axis=0), *part.outline.max(axis=0)] for part in parts])


def _overlapping(boxes: NDArray[np.float64], view: View) -> Iterator[int]:
    east, south = view.west + view.columns * view.step, view.north - view.rows * view.step
    hit = (boxes[:, 0] < east) & (boxes[:, 2] > view.west) & (boxes[:, 1] < view.north) & (boxes[:, 3] > south)
    yield from np.flatnonzero(hit).tolist()


def _near(view: View, x: float, y: float, reach: float) -> bool:
    east, south = view.west + view.columns * view.step, view.north - view.rows * view.step
    return view.west - reach < x < east + reach and south - reach < y < view.north + reach


def _collection(standing: list[Standing], place: Place, sensor: Sensor) -> dict[str, object]:
    """Return the boxes as GeoJSON, in longitude and latitude as its standard asks."""
    rings = footprints([np.add(item.outline, (place.easting, place.northing)) for item in standing])
    features = []
    for number, (item, wkt) in enumerate(zip(standing, rings, strict=True)):
        ring = [[float(value) for value in pair.split()] for pair in wkt[len("POLYGON ((") : -2].split(", ")]
        properties = {"label": item.kind, "time": place.time, "sensor": sensor.name}
        geometry = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "id": number, "properties": properties, "geometry": geometry})
    return {"type": "FeatureCollection", "features": features}
