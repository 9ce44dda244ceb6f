"""GeoTIFF scenes with objects drawn on the map: polygons in GeoJSON, in any coordinate reference system."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.errors import RasterioError

from lookdown.chips.annotations import Annotated, Marked, Scene, Skipped
from lookdown.chips.imagery import TIFF, open_scene, project
from lookdown.errors import ImageError, SourceError

__all__ = ["read"]

# Names are matched here and not handed to GDAL, which would fetch an address or open a file that a name points to.
EPSG = re.compile(r"(?:urn:(?:x-)?ogc:def:crs:)?EPSG:(?:[\d.]*:)?(\d+)", re.IGNORECASE)
EPSG_ADDRESS = re.compile(r"https?://www\.opengis\.net/def/crs/EPSG/[\d.]+/(\d+)", re.IGNORECASE)
CRS84 = re.compile(r"(?:urn:(?:x-)?ogc:def:crs:)?OGC:(?:[\d.]*:)?CRS84", re.IGNORECASE)

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A scene and how its pixels lie in its CRS."""

    scene: Scene
    crs: Any
    to_pixels: Any
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class _Part:
    """One polygon of a feature, its outer ring in the CRS of its file; holes do not matter to a chip."""

    key: str
    label: str | None
    ring: Array  # (corners, 2), not closed


class _MalformedError(ValueError):
    """A feature that cannot be used, and why."""


def read(root: Path, *, boxes: Path | None = None, label: str = "label") -> Annotated:
    """Read the GeoTIFFs below `root` (a folder or one file) and the polygons drawn on them.

    `boxes` is a GeoJSON file or a folder of them; else every FeatureCollection below `root` is read, or for one file
    the GeoJSON of the same name beside it. The property named `label` gives the class. A feature belongs to every scene
    that contains its centroid.
    """
    root = Path(root)
    found = Annotated()
    placed = _scenes(root, found)
    properties: set[str] = set()
    for path, collection in _collections(root, boxes, found):
        crs = _crs(path, collection)
        parts = []
        keys = _keys(collection["features"])
        for key, feature in zip(keys, collection["features"], strict=True):
            try:
                parts += _parts(key, feature, label)
            except _MalformedError as error:
                found.skipped.append(Skipped(f"{path.name}:{key}", str(error)))
            if isinstance(feature, dict) and isinstance(feature.get("properties"), dict):
                properties.update(feature["properties"])
        _assign(path, crs, parts, placed, found)
    if properties and label not in properties and label != "label":
        raise SourceError(
            f"{boxes or root}: no feature has the property {label!r}; choose the one that names the class: "
            f"{', '.join(sorted(properties))}"
        )
    return found


def _scenes(root: Path, found: Annotated) -> list[_Placed]:
    paths = [root] if root.is_file() else sorted(p for p in root.rglob("*") if p.suffix.lower() in TIFF and p.is_file())
    if not paths:
        raise SourceError(f"{root} holds no GeoTIFF (.tif, .tiff); give a scene or a folder of scenes")
    placed = []
    for path in paths:
        name = path.name if path == root else path.relative_to(root).as_posix()
        try:
            with open_scene(path) as reader:
                scene = Scene(name=name, path=path, gsd=reader.gsd)
                crs, transform, size = reader.crs, reader.transform, (reader.width, reader.height)
        except ImageError as error:
            found.skipped.append(Skipped(name, str(error)))
            continue
        if crs is None:
            found.skipped.append(Skipped(name, "the scene does not know its place on Earth; georeference it first"))
            continue
        found.scenes[name] = scene
        placed.append(_Placed(scene, crs, ~transform, *size))
    if not placed:
        raise SourceError(f"{root} holds no scene that can be used; the first: {found.skipped[0].reason}")
    return placed


def _collections(root: Path, boxes: Path | None, found: Annotated) -> list[tuple[Path, dict[str, Any]]]:
    if boxes is not None and not Path(boxes).exists():
        raise SourceError(f"{boxes} does not exist; give a GeoJSON file or a folder of them")
    place = root if boxes is None else Path(boxes)
    if place.is_dir():
        paths = sorted(p for p in place.rglob("*") if p.suffix.lower() in (".geojson", ".json") and p.is_file())
    elif boxes is not None:
        paths = [place]
    else:
        paths = [path for path in (root.with_suffix(".geojson"), root.with_suffix(".json")) if path.exists()]
    collections = []
    for path in paths:
        content = _load(path)
        if isinstance(content, dict) and content.get("type") == "FeatureCollection":
            if not isinstance(content.get("features"), list):
                raise SourceError(f"{path} has no list of features; export it again as a GeoJSON FeatureCollection")
            collections.append((path, content))
        else:
            found.skipped.append(Skipped(path.name, "not a GeoJSON FeatureCollection"))
    if not collections:
        raise SourceError(f"{place}: no GeoJSON FeatureCollection found; name the file with the polygons (boxes)")
    return collections


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
    properties = member.get("properties") if isinstance(member, dict) else None
    name = properties.get("name") if isinstance(properties, dict) else None
    if isinstance(name, str) and CRS84.fullmatch(name):
        return CRS.from_epsg(4326)
    match = (EPSG.fullmatch(name) or EPSG_ADDRESS.fullmatch(name)) if isinstance(name, str) else None
    try:
        if match:
            return CRS.from_epsg(int(match[1]))
    except (RasterioError, ValueError, OverflowError):
        pass  # a number that stands for nothing
    raise SourceError(f"{path} is in the unknown CRS {json.dumps(member)[:100]}; reproject it to EPSG:4326")


def _keys(features: list[Any]) -> list[str]:
    """Name features by their id where that is unique, else by #index; no id with a # keeps the two kinds apart."""
    ids = [feature.get("id") if isinstance(feature, dict) else None for feature in features]
    usable = [str(i) if isinstance(i, str | int | float) and i != "" and "#" not in str(i) else None for i in ids]
    counts = Counter(usable)
    return [f"#{n}" if key is None or counts[key] > 1 else key for n, key in enumerate(usable)]


def _parts(key: str, feature: Any, label: str) -> list[_Part]:
    geometry = feature.get("geometry") if isinstance(feature, dict) else None
    if not isinstance(geometry, dict):
        raise _MalformedError("no geometry")
    kind, coordinates = geometry.get("type"), geometry.get("coordinates")
    if kind not in ("Polygon", "MultiPolygon"):
        raise _MalformedError(f"a {kind}; only polygons have an extent to cut")
    name = _label(feature.get("properties"), label)
    if kind == "Polygon":
        return [_Part(key, name, _ring(coordinates))]
    if not isinstance(coordinates, list) or not coordinates:
        raise _MalformedError("a MultiPolygon without polygons")
    return [_Part(f"{key}#{n}", name, _ring(polygon)) for n, polygon in enumerate(coordinates)]


def _label(properties: Any, label: str) -> str | None:
    value = properties.get(label) if isinstance(properties, dict) else None
    if isinstance(value, dict | list):
        raise _MalformedError(f"property {label!r} is not one value")
    return None if value is None or value == "" else str(value)


def _ring(polygon: Any) -> Array:
    try:
        ring = np.array([[float(corner[0]), float(corner[1])] for corner in polygon[0]], np.float64)
    except (TypeError, ValueError, IndexError, KeyError, OverflowError) as error:
        raise _MalformedError("malformed coordinates") from error
    if not np.isfinite(ring).all():
        raise _MalformedError("coordinates that are not finite")
    if len(ring) > 1 and (ring[0] == ring[-1]).all():
        ring = ring[:-1]
    if len(ring) < 3:
        raise _MalformedError("fewer than three corners")
    shape = shapely.Polygon(ring)
    if shape.area <= 1e-12 * float(np.ptp(ring, axis=0).max()) ** 2:  # nothing but rounding
        raise _MalformedError("no area")
    if not shape.is_valid:
        raise _MalformedError(f"crosses itself: {shapely.is_valid_reason(shape)}")
    return ring


def _assign(path: Path, crs: Any, parts: list[_Part], placed: list[_Placed], found: Annotated) -> None:
    """Hand each polygon to the scenes that contain its centroid; corners are projected once for each CRS of scenes."""
    if not parts:
        return
    ends = np.cumsum([len(part.ring) for part in parts])
    corners = np.concatenate([part.ring for part in parts])
    homeless = set(range(len(parts)))
    projected: dict[str, tuple[list[Array], Array]] = {}
    for place in placed:
        name = place.crs.to_wkt()
        if name not in projected:
            rings = np.split(_project(crs, place.crs, corners, ends[:-1]), ends[:-1])
            projected[name] = rings, np.array([_centroid(ring) for ring in rings])
        rings, centroids = projected[name]
        x, y = _affine(place.to_pixels, centroids).T  # an affine map takes centroids to centroids
        with np.errstate(invalid="ignore"):
            inside = (x >= 0) & (x < place.width) & (y >= 0) & (y < place.height)
        for n in np.flatnonzero(inside).tolist():
            homeless.discard(n)
            found.marked.append(
                Marked(
                    id=f"{place.scene.name}:{path.name}:{parts[n].key}",
                    scene=place.scene.name,
                    polygon=tuple((float(u), float(v)) for u, v in _affine(place.to_pixels, rings[n])),
                    label=parts[n].label,
                )
            )
    for n in sorted(homeless):
        found.skipped.append(Skipped(f"{path.name}:{parts[n].key}", "outside every scene"))


def _project(source: Any, target: Any, corners: Array, ends: NDArray[np.int64]) -> Array:
    if source == target:
        return corners
    together = project(source, target, corners)
    if np.isfinite(together).all():
        return together
    return np.concatenate([project(source, target, ring) for ring in np.split(corners, ends)])  # one spoils only itself


def _centroid(ring: Array) -> Array:
    if not np.isfinite(ring).all():
        return np.full(2, np.nan)  # beyond what the projection of the scene can show
    centre = shapely.Polygon(ring).centroid
    return np.array([centre.x, centre.y]) if not centre.is_empty else np.full(2, np.nan)


def _affine(t: Any, points: Array) -> Array:
    x, y = points.T
    return np.column_stack([t.a * x + t.b * y + t.c, t.d * x + t.e * y + t.f])
