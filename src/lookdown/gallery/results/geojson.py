"""Results as a map layer: GeoJSON (RFC 7946), longitude and latitude in degrees.

Map readers expect longitudes from -180 to 180, and outer rings counter-clockwise. The library `antimeridian` would do
part of this. It fails on a hole that crosses the date line, takes a polygon wider than 180 degrees for one that crosses
it, and does not cut lines or move points.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry import mapping
from shapely.geometry.polygon import orient

from lookdown.gallery.results.hit import Results, flat_fields, search_fields
from lookdown.gallery.store.snapshot import shapes

__all__ = ["map_geometry", "to_geojson"]

Geometry = Any  # shapely has no types

_DECIMALS = 7  # of a degree: a centimetre
_MANY = (shapely.multipoints, shapely.multilinestrings, shapely.multipolygons)  # by dimension


def to_geojson(results: Results) -> str:
    """Return a feature per hit with its fields as properties; hits without a footprint are counted and left out.

    The fields of the search stand beside the features, in members that map programs ignore.
    """
    features = []
    for hit in results.hits:
        geometry = map_geometry(hit.footprint)
        if geometry is not None:
            properties = flat_fields(hit)
            del properties["footprint"]
            features.append({
                "type": "Feature", "id": properties["id"], "geometry": mapping(geometry), "properties": properties,
            })  # fmt: skip
    layer = {
        "type": "FeatureCollection",
        "without_footprint": len(results) - len(features),
        **search_fields(results),
        "features": features,
    }
    return json.dumps(layer, ensure_ascii=False, allow_nan=False)


def map_geometry(footprint: str | None) -> Geometry | None:
    """Return WKT in degrees as a geometry for a map, None where it is missing, unreadable or not on the Earth.

    A geometry that runs on beyond the date line is cut there.
    """
    (geometry,) = shapes([footprint])
    if geometry is None:
        return None
    degrees = shapely.get_coordinates(geometry)
    if not len(degrees) or (np.abs(degrees) > (360, 90)).any():
        return None
    return _oriented(_between_the_date_lines(shapely.transform(geometry, _rounded)))  # which drops heights


def _between_the_date_lines(geometry: Geometry) -> Geometry | None:
    west, _, east, _ = geometry.bounds
    if west >= -180 and east <= 180:
        return geometry
    if east - west > 360:
        return None
    turns = np.floor((west + 180) / 360)
    geometry = _moved(geometry, -360 * turns)
    if geometry.bounds[2] <= 180:
        return geometry
    whole = shapely.make_valid(geometry)  # a polygon that crosses itself cannot be cut
    halves = [shapely.intersection(whole, shapely.box(west, -90, west + 360, 90)) for west in (-180, 180)]
    parts = shapely.get_parts(shapely.get_parts([halves[0], _moved(halves[1], -360)]))
    return _collected(shapely.transform(parts, _rounded), shapely.get_dimensions(geometry))


def _collected(parts: Sequence[Geometry], dimension: int) -> Geometry | None:
    """Return the parts as one geometry, without parts of no area or length, such as an edge on the date line."""
    size = (lambda part: 1, lambda part: part.length, lambda part: part.area)[dimension]
    kept = [part for part in parts if size(part)]
    return None if not kept else kept[0] if len(kept) == 1 else _MANY[dimension](kept)


def _oriented(geometry: Geometry | None) -> Geometry | None:
    if geometry is None or geometry.geom_type not in ("Polygon", "MultiPolygon"):
        return geometry
    rings = [orient(polygon) for polygon in shapely.get_parts(geometry)]
    return shapely.multipolygons(rings) if geometry.geom_type == "MultiPolygon" else rings[0]


def _moved(geometry: Geometry, degrees: float) -> Geometry:
    return shapely.transform(geometry, lambda corners: _rounded(corners + np.array([degrees, 0])))


def _rounded(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.round(degrees, _DECIMALS) + 0.0  # no minus in front of a zero
