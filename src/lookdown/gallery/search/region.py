"""A region of the Earth that filters chips by their footprints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.gallery.store.snapshot import FilterColumns

__all__ = ["Box", "Region", "shapes"]

Box = tuple[float, float, float, float]  # west, south, east, north, in degrees
Mask = NDArray[np.bool_]
Place = Any  # a Region, four numbers, text, or a geometry of shapely, which has no types

_TURN, _POLE = 360.0, 90.0
_FORMS = "give west, south, east and north in degrees, or a WKT polygon"
_FARTHEST = 540.0  # a longitude of 180, and one turn on: no footprint lies beyond
_SHAPES = re.compile(r"\s*(MULTI)?(POINT|LINESTRING|POLYGON)", re.IGNORECASE)
_POLYGONS = re.compile(r"\s*(MULTI)?POLYGON", re.IGNORECASE)


def shapes(texts: Sequence[str | None]) -> NDArray[np.object_]:
    """Read a column of WKT; None where there is nothing, or nothing that can be read and is finite."""
    # The reader recurses into collections until the process dies, and raises for curves: neither is a footprint.
    known = [text if text is not None and text.isascii() and _SHAPES.match(text) else None for text in texts]
    with np.errstate(all="ignore"):  # a coordinate may be NaN or beyond a double
        found: NDArray[np.object_] = shapely.from_wkt(np.array(known, dtype=object), on_invalid="ignore")
    corners, owners = shapely.get_coordinates(found, return_index=True)
    found[owners[~np.isfinite(corners).all(axis=1)]] = None
    return found


@dataclass(frozen=True, slots=True)
class Region:
    """A box, or polygons, in degrees of longitude and latitude."""

    bounds: Box  # east runs on beyond 180 where the region crosses the date line
    polygon: Any = None  # a Polygon or MultiPolygon of shapely; None where the region is all of the box

    @classmethod
    def of(cls, place: Place, field: str = "within") -> Region:
        """Check a region given as a box, or as a polygon of WKT or shapely; `field` is what an error names.

        A box is four numbers or text, `4.1,51.9,4.5,52.1`; one with its west beyond its east crosses the date line.
        A polygon that crosses it has longitudes that run on beyond 180, or is cut in two there.
        """
        if isinstance(place, Region):
            return place
        if isinstance(place, str):
            place = _from_text(place, field)
        if isinstance(place, shapely.Geometry):
            _check_polygon(place, field)
            polygon = shapely.force_2d(place)
            west, south, east, north = (float(edge) for edge in polygon.bounds)
            return cls((west, south, east, north), polygon)
        return cls(_box(place, field))

    def rows(self, columns: FilterColumns, among: Mask) -> Mask:
        """Return which rows of those `among` have a footprint that meets the region, if only in a point.

        Bounds decide nearly all of them; footprints are read for those on the rim.
        """
        _, south, _, north = self.bounds
        near = np.flatnonzero(among & (columns.bounds[:, 1] <= north) & (columns.bounds[:, 3] >= south))
        bounds = np.ascontiguousarray(columns.bounds[near].T)  # each edge in one stretch, for speed
        copies = [*self._copies()]
        meets, rim = np.zeros((2, len(near)), dtype=np.bool_)
        with np.errstate(all="ignore"):  # shapely warns of a footprint that is finite and yet beyond all reason
            for copy in copies:
                inside, crossing = copy._sides(bounds)
                meets |= inside
                rim |= crossing
            rest = np.flatnonzero(rim & ~meets)
            if len(rest):
                footprints = shapes(columns.footprints(near[rest]))
                meets[rest] = np.any([shapely.intersects(copy._prepared(), footprints) for copy in copies], axis=0)
        found = np.zeros(len(columns), dtype=np.bool_)
        found[near[meets]] = True
        return found

    def boxes(self) -> list[Box]:
        """Return boxes that the bounds of every footprint that meets the region touch, one a turn around the Earth."""
        return [copy.bounds for copy in self._copies()]

    def __str__(self) -> str:
        west, south, east, north = self.bounds
        kind = "the box" if self.polygon is None else "a polygon"
        return f"{kind} from {west:.10g} {south:.10g} to {east:.10g} {north:.10g}"

    def _copies(self) -> Iterator[Region]:
        """Yield the region at each turn around the Earth where a footprint may lie, which may run on beyond 180."""
        west, south, east, north = self.bounds
        for turn in (_TURN * times for times in range(-3, 4)):
            if west + turn < _FARTHEST and east + turn > -_FARTHEST:
                yield Region((west + turn, south, east + turn, north), self._polygon_moved(turn))

    def _polygon_moved(self, turn: float) -> Any:
        # Always a new one: what shapely prepares is not safe to share between threads, and regions are shared.
        return None if self.polygon is None else shapely.transform(self.polygon, lambda at: np.add(at, (turn, 0)))

    def _sides(self, bounds: NDArray[np.float64]) -> tuple[Mask, Mask]:
        """Return which bounds lie wholly inside, and which cross the rim, so that their footprint has to tell."""
        west, south, east, north = self.bounds
        left, low, right, high = bounds
        close = (left <= east) & (right >= west)
        if self.polygon is None:
            inside = close & (left >= west) & (right <= east) & (low >= south) & (high <= north)
            return inside, close & ~inside
        close &= np.isfinite(bounds).all(axis=0)  # what is not raises in shapely
        inside, places = np.zeros(len(close), dtype=np.bool_), np.flatnonzero(close)
        boxes, region = shapely.box(*bounds[:, places]), self._prepared()
        close[places] = shapely.intersects(region, boxes)
        inside[places] = shapely.contains_properly(region, boxes)
        return inside, close & ~inside

    def _prepared(self) -> Any:
        # The hull of a box without width or height is the point or the line that it is.
        geometry = shapely.convex_hull(shapely.box(*self.bounds)) if self.polygon is None else self.polygon
        shapely.prepare(geometry)
        return geometry


def _from_text(text: str, field: str) -> Any:
    if _POLYGONS.match(text):
        (polygon,) = shapes([text])
        if polygon is None:
            raise InputError(f"{field} {text[:40]!r} cannot be read as WKT; write POLYGON ((4 51, 5 51, 5 52, 4 51))")
        return polygon
    try:
        return tuple(float(edge) for edge in text.split(","))
    except ValueError:
        raise InputError(f"{field} {text[:40]!r} is neither a box nor a polygon; {_FORMS}") from None


def _check_polygon(polygon: Any, field: str) -> None:
    if polygon.geom_type not in ("Polygon", "MultiPolygon"):
        raise InputError(f"{field} is a {polygon.geom_type}; give a Polygon or a MultiPolygon")
    if polygon.is_empty:
        raise InputError(f"{field} is an empty {polygon.geom_type}; leave it out to search everywhere")
    corners = shapely.get_coordinates(polygon)
    outside = ~(np.abs(corners) <= (_TURN, _POLE)).all(axis=1)  # nor is NaN inside
    for longitude, latitude in corners[outside][:1]:
        _check_corner(float(longitude), float(latitude), field)
    if not polygon.is_valid:
        reason = shapely.is_valid_reason(polygon)
        raise InputError(f"{field} is not a valid polygon: {reason}; correct its rings, or use shapely.make_valid")


def _box(place: Any, field: str) -> Box:
    edges = place.tolist() if isinstance(place, np.ndarray) else place
    four = isinstance(edges, Sequence) and len(edges) == 4
    if not four or not all(isinstance(edge, Real) and not isinstance(edge, bool) for edge in edges):
        raise InputError(f"{field} {place!r:.60} is neither a box nor a polygon; {_FORMS}")
    west, south, east, north = edges
    _check_corner(west, south, field)
    _check_corner(east, north, field)
    if south > north:
        raise InputError(f"{field} has its south {south} beyond its north {north}; {_FORMS}")
    while east < west:
        east += _TURN
    return float(west), float(south), float(east), float(north)


def _check_corner(longitude: float, latitude: float, field: str) -> None:
    if not -_TURN <= longitude <= _TURN:  # nor is NaN
        raise InputError(f"{field} has the longitude {longitude!s:.20}, which is not between -360 and 360; {_FORMS}")
    if not -_POLE <= latitude <= _POLE:
        raise InputError(f"{field} has the latitude {latitude!s:.20}, which is not between -90 and 90; {_FORMS}")
