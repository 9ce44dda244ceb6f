"""GeoTIFF scenes with objects drawn on the map: polygons in GeoJSON, in any coordinate reference system."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.errors import RasterioError

from lookdown.chips.imagery import TIFF, SceneReader, affine, open_scene, project
from lookdown.chips.sources import Crop, Scene, SourceContent, files_below
from lookdown.errors import ImageError, SourceError

__all__ = ["read"]

# Names of a CRS are matched here. GDAL would download an address, or open a file, that a name points to.
_EPSG = re.compile(r"(?:urn:(?:x-)?ogc:def:crs:)?EPSG:(?:[\d.]*:)?(\d+)", re.IGNORECASE)
_EPSG_ADDRESS = re.compile(r"https?://www\.opengis\.net/def/crs/EPSG/[\d.]+/(\d+)", re.IGNORECASE)
_CRS84 = re.compile(r"(?:urn:(?:x-)?ogc:def:crs:)?OGC:(?:[\d.]*:)?CRS84", re.IGNORECASE)

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Outline:
    """One polygon of a feature: its outer ring in the CRS of its file. Holes do not matter to a chip."""

    key: str
    label: str | None
    ring: Array  # (corners, 2), not closed


def read(root: Path, *, boxes: Path | None = None, label: str = "label") -> SourceContent:
    """Read GeoTIFFs and the polygons drawn on them; a polygon belongs to every scene that contains its centroid.

    root: a scene, or a folder of scenes.
    boxes: a GeoJSON file or a folder of them. By default every FeatureCollection below `root` is read, or the GeoJSON
        with the name of the scene.
    label: the property that names the class.
    """
    root = Path(root)
    content = SourceContent()
    scenes = _scenes(root, content)
    properties: set[str] = set()
    for path, collection in _collections(root, boxes, content):
        outlines = []
        features = [_mapping(feature) for feature in collection["features"]]
        for key, feature in zip(_keys(features), features, strict=True):
            properties.update(_mapping(feature.get("properties")))
            try:
                outlines += _outlines(key, feature, label)
            except ValueError as error:
                content.skip(f"{path.name}:{key}", str(error))
        _assign(path, _crs(path, collection), outlines, scenes, content)
    if properties and label not in properties and label != "label":
        raise SourceError(
            f"{boxes or root}: no feature has the property {label!r}; choose the one that names the class: "
            f"{', '.join(sorted(properties))}"
        )
    return content


def _scenes(root: Path, content: SourceContent) -> dict[str, SceneReader]:
    """Return the scenes that know where they are, by name; they are closed again, as only their position is needed."""
    paths = files_below(root, TIFF)
    if not paths:
        raise SourceError(f"{root} holds no GeoTIFF (.tif, .tiff); give a scene or a folder of scenes")
    scenes: dict[str, SceneReader] = {}
    for path in paths:
        name = path.name if path == root else path.relative_to(root).as_posix()
        try:
            with open_scene(path) as reader:
                if reader.crs is None:
                    content.skip(name, "the scene does not know its place on Earth; georeference it first")
                    continue
                content.scenes[name] = Scene(name=name, path=path, gsd=reader.gsd)
                scenes[name] = reader
        except ImageError as error:
            content.skip(name, str(error))
    if not scenes:
        raise SourceError(f"{root} holds no scene that can be used; the first: {content.skipped[0].reason}")
    return scenes


def _collections(root: Path, boxes: Path | None, content: SourceContent) -> list[tuple[Path, dict[str, Any]]]:
    if boxes is not None and not Path(boxes).exists():
        raise SourceError(f"{boxes} does not exist; give a GeoJSON file or a folder of them")
    source = root if boxes is None else Path(boxes)
    if boxes is None and root.is_file():
        paths = [path for path in (root.with_suffix(".geojson"), root.with_suffix(".json")) if path.exists()]
    else:
        paths = files_below(source, (".geojson", ".json"))
    collections = []
    for path in paths:
        loaded = _load(path)
        if not isinstance(loaded, dict) or loaded.get("type") != "FeatureCollection":
            content.skip(path.name, "not a GeoJSON FeatureCollection")
        elif not isinstance(loaded.get("features"), list):
            raise SourceError(f"{path} has no list of features; export it again as a GeoJSON FeatureCollection")
        else:
            collections.append((path, loaded))
    if not collections:
        raise SourceError(f"{source}: no GeoJSON FeatureCollection found; name the file of the polygons as `boxes`")
    return collections


def _mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object, or an empty one in the place of anything else."""
    return value if isinstance(value, dict) else {}


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(f"{path} is not valid JSON: {error}; export it again") from error


def _crs(path: Path, collection: dict[str, Any]) -> Any:
    """Return the CRS that the file names (the "crs" member of GeoJSON 2008), else WGS84."""
    member = collection.get("crs")
    if member is None:
        return CRS.from_epsg(4326)
    name = str(_mapping(_mapping(member).get("properties")).get("name"))
    if _CRS84.fullmatch(name):
        return CRS.from_epsg(4326)
    try:
        if match := _EPSG.fullmatch(name) or _EPSG_ADDRESS.fullmatch(name):
            return CRS.from_epsg(int(match[1]))
    except (RasterioError, ValueError, OverflowError):
        pass  # a number without a CRS
    raise SourceError(f"{path} is in the unknown CRS {json.dumps(member)[:100]}; reproject it to EPSG:4326")


def _keys(features: list[dict[str, Any]]) -> list[str]:
    """Name features by their id where it is unique, else by #index; an id with a # could be taken for an index."""
    ids = [feature.get("id") for feature in features]
    usable = [str(i) if isinstance(i, str | int | float) and i != "" and "#" not in str(i) else None for i in ids]
    counts = Counter(usable)
    return [f"#{n}" if key is None or counts[key] > 1 else key for n, key in enumerate(usable)]


def _outlines(key: str, feature: dict[str, Any], label: str) -> list[_Outline]:
    """Return the polygons of a feature; raise ValueError with the reason if it cannot be used."""
    geometry = feature.get("geometry")
    if not isinstance(geometry, dict):
        raise ValueError("no geometry")
    kind, coordinates = geometry.get("type"), geometry.get("coordinates")
    if kind not in ("Polygon", "MultiPolygon"):
        raise ValueError(f"a {kind}; only polygons have an extent to cut")
    value = _mapping(feature.get("properties")).get(label)
    if isinstance(value, dict | list):
        raise ValueError(f"property {label!r} is not one value")
    name = None if value is None or value == "" else str(value)
    if kind == "Polygon":
        return [_Outline(key, name, _ring(coordinates))]
    if not isinstance(coordinates, list) or not coordinates:
        raise ValueError("a MultiPolygon without polygons")
    return [_Outline(f"{key}#{n}", name, _ring(polygon)) for n, polygon in enumerate(coordinates)]


def _ring(polygon: Any) -> Array:
    try:
        ring = np.array([[float(corner[0]), float(corner[1])] for corner in polygon[0]], np.float64)
    except (TypeError, ValueError, IndexError, KeyError, OverflowError) as error:
        raise ValueError("malformed coordinates") from error
    if not np.isfinite(ring).all():
        raise ValueError("coordinates that are not finite")
    if len(ring) > 1 and (ring[0] == ring[-1]).all():
        ring = ring[:-1]
    if len(ring) < 3:
        raise ValueError("fewer than three corners")
    shape = shapely.Polygon(ring)
    if shape.area <= 1e-12 * float(np.ptp(ring, axis=0).max()) ** 2:  # only rounding errors
        raise ValueError("no area")
    if not shape.is_valid:
        raise ValueError(f"crosses itself: {shapely.is_valid_reason(shape)}")
    return ring


def _assign(
    path: Path, crs: Any, outlines: list[_Outline], scenes: dict[str, SceneReader], content: SourceContent
) -> None:
    """Give each outline to the scenes that contain its centroid; corners are projected once for each CRS of scenes."""
    projected: dict[str, tuple[list[Array], Array]] = {}
    outside = set(range(len(outlines)))
    for name, scene in scenes.items() if outlines else ():
        wkt = scene.crs.to_wkt()
        if wkt not in projected:
            rings = list(_project(crs, scene.crs, [outline.ring for outline in outlines]))
            projected[wkt] = rings, np.array([_centroid(ring) for ring in rings])
        rings, centroids = projected[wkt]
        to_pixels = ~scene.transform
        x, y = affine(to_pixels, centroids).T  # an affine map takes centroids to centroids
        for n in np.flatnonzero((x >= 0) & (x < scene.width) & (y >= 0) & (y < scene.height)).tolist():
            outside.discard(n)
            polygon = tuple((float(u), float(v)) for u, v in affine(to_pixels, rings[n]))
            key = f"{name}:{path.name}:{outlines[n].key}"
            content.crops.append(Crop(id=key, scene=name, polygon=polygon, label=outlines[n].label))
    for n in sorted(outside):
        content.skip(f"{path.name}:{outlines[n].key}", "outside every scene")


def _project(source: Any, target: Any, rings: list[Array]) -> Iterator[Array]:
    if source == target:
        yield from rings
        return
    together = project(source, target, np.concatenate(rings))
    if np.isfinite(together).all():
        yield from np.split(together, np.cumsum([len(ring) for ring in rings])[:-1])
    else:
        yield from (project(source, target, ring) for ring in rings)  # one bad ring spoils only itself


def _centroid(ring: Array) -> tuple[float, float]:
    """Return the centroid, NaN for a ring beyond what the projection of the scene can show."""
    centre = shapely.Polygon(ring if np.isfinite(ring).all() else None).centroid
    return (np.nan, np.nan) if centre.is_empty else (centre.x, centre.y)
