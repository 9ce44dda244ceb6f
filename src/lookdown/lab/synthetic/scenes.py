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

from lookdown.atomic import replacing, write_file
from lookdown.errors import InputError
from lookdown.lab.synthetic.grounds import GROUNDS, Location, Surroundings
from lookdown.lab.synthetic.layouts import Layout, SceneObject, lay_out
from lookdown.lab.synthetic.locations import CRS, footprints, sample_locations
from lookdown.lab.synthetic.parts import SolidPart
from lookdown.lab.synthetic.picture import expose
from lookdown.lab.synthetic.rendering import GroundView, Sun
from lookdown.lab.synthetic.sensors import Sensor, observe
from lookdown.progress import Progress, no_progress

__all__ = ["SceneFiles", "tiles_of", "write_scene"]

_TILE_PIXELS = 512
_BLUR_PIXELS = 8  # how far blur reaches over the edge of a tile
_STREAM = 5  # the stream of random numbers that scenes are drawn from
# Scenes lie on a square grid.
_CORNER_METRES = (200_000.0, 420_000.0)  # the first scene
_APART_METRES = 20_000.0  # from one scene to the next
_SCENES_A_ROW = 20


@dataclass(frozen=True, slots=True)
class SceneFiles:
    """The files of a scene, and the objects in it."""

    image: Path
    boxes: Path
    objects: list[SceneObject]


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
) -> SceneFiles:
    """Write `name`.tif and `name`.geojson: a port with its roads and ships, or an airfield with its aircraft.

    `ground` is harbour, or what an airfield lies in: apron (grass), forest or desert. Only one tile is held at a time.
    """
    if ground not in GROUNDS or ground == "sea":
        raise InputError(f"a scene is of harbour, apron, forest or desert; got {ground!r}")
    location = _location(ground, seed)
    half = size * gsd / 2
    layout = lay_out(ground, half, np.random.default_rng([seed, _STREAM]))
    view = GroundView(-half, half, size, size, gsd)
    folder.mkdir(parents=True, exist_ok=True)
    image, boxes = folder / f"{name}.tif", folder / f"{name}.geojson"
    profile = {
        "driver": "GTiff", "width": size, "height": size, "count": 3, "dtype": "uint8", "crs": CRS, "tiled": True,
        "blockxsize": _TILE_PIXELS, "blockysize": _TILE_PIXELS, "compress": "deflate", "predictor": 2,
        "photometric": "rgb", "transform": from_origin(location.easting - half, location.northing + half, gsd, gsd),
    }  # fmt: skip
    starts = [(row, column) for row in range(0, size, _TILE_PIXELS) for column in range(0, size, _TILE_PIXELS)]
    sun = Sun(location.sun_azimuth, sensor.sun_elevation)
    index = _Index(layout)
    margin = _BLUR_PIXELS + int(
        np.ceil(index.highest / np.tan(np.radians(sun.elevation)) / gsd)
    )  # shadows of what stands beside the tile
    with replacing(image) as temporary, rasterio.open(temporary, "w", **profile) as target:
        target.update_tags(TIFFTAG_DATETIME=location.time, sensor=sensor.name)
        for number, (row, column) in enumerate(starts, start=1):
            rows, columns = min(_TILE_PIXELS, size - row), min(_TILE_PIXELS, size - column)
            noise = np.random.default_rng([seed, _STREAM, row, column])
            window = _around(view, row, column, rows, columns, margin)
            pixels = _draw(window, index, location, sun, sensor, noise)[margin:-margin, margin:-margin]
            target.write(pixels.transpose(2, 0, 1), window=Window(column, row, columns, rows))
            progress(number, len(starts), "tiles")
    write_file(boxes, json.dumps(_collection(layout.objects, location, sensor)) + "\n")
    return SceneFiles(image, boxes, layout.objects)


def tiles_of(size: int) -> int:
    """Return how many tiles a scene has."""
    return int(np.ceil(size / _TILE_PIXELS)) ** 2


def _location(ground: str, seed: int) -> Location:
    """Return a location of the ground for every seed, north of all locations of chips."""
    location = next(location for location in sample_locations(5, seed) if location.ground == ground)
    row, column = divmod(seed % _SCENES_A_ROW**2, _SCENES_A_ROW)
    return replace(
        location,
        name=f"{ground}-scene-{seed}",
        easting=_CORNER_METRES[0] + column * _APART_METRES,
        northing=_CORNER_METRES[1] + row * _APART_METRES,
    )


def _around(whole: GroundView, row: int, column: int, rows: int, columns: int, margin: int) -> GroundView:
    """Return the view of a tile with a margin that will be cut off."""
    west, north = whole.west + (column - margin) * whole.step, whole.north - (row - margin) * whole.step
    return GroundView(west, north, columns + 2 * margin, rows + 2 * margin, whole.step)


def _draw(
    view: GroundView, index: _Index, location: Location, sun: Sun, sensor: Sensor, noise: np.random.Generator
) -> NDArray[np.uint8]:
    surroundings, objects = index.seen_in(view)
    wakes = [wake for wake in index.layout.wakes if _near(view, wake.x, wake.y, 2 * wake.length)]
    return observe(sensor, expose(view, surroundings, objects, wakes, location, sun, factor=2), view.step, noise)


class _Index:
    """Finds the parts of a layout that lie in a tile."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._clutter = _boxes(layout.surroundings.clutter)
        self._objects = [part for item in layout.objects for part in item.parts]
        self._object_boxes = _boxes(self._objects)
        self.highest = max((part.top for part in [*layout.surroundings.clutter, *self._objects]), default=0.0)

    def seen_in(self, view: GroundView) -> tuple[Surroundings, list[SolidPart]]:
        """Return what lies in a window: the ground with its clutter, and the parts of objects."""
        whole = self.layout.surroundings
        clutter = [whole.clutter[number] for number in _overlapping(self._clutter, view)]
        objects = [self._objects[number] for number in _overlapping(self._object_boxes, view)]
        return replace(whole, clutter=clutter), objects


def _boxes(parts: Sequence[SolidPart]) -> NDArray[np.float64]:
    """Return (left, low, right, high) of each part."""
    if not parts:
        return np.empty((0, 4))
    return np.array([[*part.outline.min(axis=0), *part.outline.max(axis=0)] for part in parts])


def _overlapping(boxes: NDArray[np.float64], view: GroundView) -> Iterator[int]:
    east, south = view.west + view.columns * view.step, view.north - view.rows * view.step
    hit = (boxes[:, 0] < east) & (boxes[:, 2] > view.west) & (boxes[:, 1] < view.north) & (boxes[:, 3] > south)
    yield from np.flatnonzero(hit).tolist()


def _near(view: GroundView, x: float, y: float, reach: float) -> bool:
    east, south = view.west + view.columns * view.step, view.north - view.rows * view.step
    return view.west - reach < x < east + reach and south - reach < y < view.north + reach


def _collection(objects: list[SceneObject], location: Location, sensor: Sensor) -> dict[str, object]:
    """Return the boxes as GeoJSON, in longitude and latitude as its standard asks."""
    rings = footprints([np.add(item.outline, (location.easting, location.northing)) for item in objects])
    features = []
    for number, (item, wkt) in enumerate(zip(objects, rings, strict=True)):
        ring = [[float(value) for value in pair.split()] for pair in wkt[len("POLYGON ((") : -2].split(", ")]
        properties = {"label": item.kind, "time": location.time, "sensor": sensor.name}
        geometry = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "id": number, "properties": properties, "geometry": geometry})
    return {"type": "FeatureCollection", "features": features}
