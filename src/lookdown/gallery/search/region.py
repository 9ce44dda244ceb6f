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
from lookdown.gallery.store.snapshot import FilterColumns, shapes

__all__ = ["Box", "Region"]

Box = tuple[float, float, float, float]  # west, south, east, north, in degrees
Mask = NDArray[np.bool_]

_TURN, _POLE = 360.0, 90.0  # degrees
_BOX_FORM = "give west, south, east and north in degrees, 4.1,51.9,4.5,52.1 say"
_POLYGON_FORM = "give WKT in degrees, POLYGON ((4 51, 5 51, 5 52, 4 51)) say"
_FARTHEST = 540.0  # degrees: a longitude of 180, and one turn on; no footprint lies beyond
_POLYGONS = re.compile(r"\s*(MULTI)?POLYGON", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Region:
    """A box, or polygons, in degrees of longitude and latitude."""

    bounds: Box  # east runs on beyond 180 where the region crosses the date line
    polygon: Any = None  # a Polygon or MultiPolygon of shapely; None where the region is all of the box

    @classmethod
    def of_box(cls, box: Any, field: str = "box") -> Region:
        """Check a box of four numbers, or text such as `4.1,51.9,4.5,52.1`.

        A box with its west beyond its east crosses the date line.

        field: the argument that an error names.
        """
        if isinstance(box, Region):
            return box
        edges = box
        if isinstance(box, str):
            try:
                edges = tuple(float(edge) for edge in box.split(","))
            except ValueError:
                raise InputError(f"`{field}` {box[:40]!r} is not a box; {_BOX_FORM}") from None
        elif isinstance(box, np.ndarray):
            edges = box.tolist()
        four = isinstance(edges, Sequence) and len(edges) == 4
        if not four or not all(isinstance(edge, Real) and not isinstance(edge, bool) for edge in edges):
            raise InputError(f"`{field}` {box!r:.60} is not a box; {_BOX_FORM}")
        west, south, east, north = edges
        _check_corner(west, south, field, _BOX_FORM)
        _check_corner(east, north, field, _BOX_FORM)
        if south > north:
            raise InputError(f"`{field}` has its south {south} beyond its north {north}; {_BOX_FORM}")
        while east < west:
            east += _TURN
        return cls((float(west), float(south), float(east), float(north)))

    @classmethod
    def of_polygon(cls, polygon: Any, field: str = "polygon") -> Region:
        """Check a polygon of WKT or shapely.

        A polygon that crosses the date line has longitudes that run on beyond 180, or is cut in two there.
        """
        if isinstance(polygon, Region):
            return polygon
        if isinstance(polygon, str):
            (geometry,) = shapes([polygon]) if _POLYGONS.match(polygon) else (None,)
        else:
            geometry = polygon if isinstance(polygon, shapely.Geometry) else None
        if geometry is None:
            raise InputError(f"`{field}` {polygon!r:.60} cannot be read as a polygon; {_POLYGON_FORM}")
        _check_polygon(geometry, field)
        geometry = shapely.force_2d(geometry)
        west, south, east, north = (float(edge) for edge in geometry.bounds)
        return cls((west, south, east, north), geometry)

    def rows(self, columns: FilterColumns, among: Mask) -> Mask:
        """Return which of the rows `among` have a footprint that meets the region, if only in a point.

        Bounds decide nearly all of them; footprints are read only for those on the rim.
        """
        _, south, _, north = self.bounds
        near = np.flatnonzero(among & (columns.bounds[:, 1] <= north) & (columns.bounds[:, 3] >= south))
        bounds = np.ascontiguousarray(columns.bounds[near].T)  # contiguous edges are faster
        copies = [*self._copies()]
        meets, rim = np.zeros((2, len(near)), dtype=np.bool_)
        with np.errstate(all="ignore"):  # shapely warns about huge coordinates
            for copy in copies:
                inside, crossing = copy._sides(bounds)
                meets |= inside
                rim |= crossing
            rest = np.flatnonzero(rim & ~meets)
            if len(rest):
                footprints = shapes(columns.footprints(near[rest]))
                meets[rest] = np.any([shapely.intersects(copy._prepared(), footprints) for copy in copies], axis=0)
        rows = np.zeros(len(columns), dtype=np.bool_)
        rows[near[meets]] = True
        return rows

    def boxes(self) -> list[Box]:
        """Return boxes, one per turn around the Earth; the bounds of every footprint in the region touch one."""
        return [copy.bounds for copy in self._copies()]

    def __str__(self) -> str:
        west, south, east, north = self.bounds
        kind = "the box" if self.polygon is None else "a polygon"
        return f"{kind} from {west:.10g} {south:.10g} to {east:.10g} {north:.10g}"

    def _copies(self) -> Iterator[Region]:
        """Yield the region at each turn around the Earth where a footprint may lie, also beyond 180 degrees."""
        west, south, east, north = self.bounds
        for turn in (_TURN * times for times in range(-3, 4)):
            if west + turn < _FARTHEST and east + turn > -_FARTHEST:
                polygon = self.polygon
                if polygon is not None:  # always a new one: prepared geometries must not be shared between threads
                    polygon = shapely.transform(polygon, lambda at, turn=turn: np.add(at, (turn, 0)))
                yield Region((west + turn, south, east + turn, north), polygon)

    def _sides(self, bounds: NDArray[np.float64]) -> tuple[Mask, Mask]:
        """Return which bounds lie wholly inside, and which cross the rim, where the footprint must decide."""
        west, south, east, north = self.bounds
        left, low, right, high = bounds
        close = (left <= east) & (right >= west)
        if self.polygon is None:
            inside = close & (left >= west) & (right <= east) & (low >= south) & (high <= north)
            return inside, close & ~inside
        close &= np.isfinite(bounds).all(axis=0)  # shapely raises otherwise
        inside, near = np.zeros(len(close), dtype=np.bool_), np.flatnonzero(close)
        boxes, region = shapely.box(*bounds[:, near]), self._prepared()
        close[near] = shapely.intersects(region, boxes)
        inside[near] = shapely.contains_properly(region, boxes)
        return inside, close & ~inside

    def _prepared(self) -> Any:
        # The hull of a box without width or height is a point or a line.
        geometry = shapely.convex_hull(shapely.box(*self.bounds)) if self.polygon is None else self.polygon
        shapely.prepare(geometry)
        return geometry


def _check_polygon(polygon: Any, field: str) -> None:
    if polygon.geom_type not in ("Polygon", "MultiPolygon"):
        raise InputError(f"`{field}` is a {polygon.geom_type}; give a Polygon or a MultiPolygon")
    if polygon.is_empty:
        raise InputError(f"`{field}` is an empty {polygon.geom_type}; omit it to search everywhere")
    corners = shapely.get_coordinates(polygon)
    outside = ~(np.abs(corners) <= (_TURN, _POLE)).all(axis=1)  # NaN is outside too
    for longitude, latitude in corners[outside][:1]:
        _check_corner(float(longitude), float(latitude), field, _POLYGON_FORM)
    if not polygon.is_valid:
        reason = shapely.is_valid_reason(polygon)
        raise InputError(f"`{field}` is not a valid polygon: {reason}; correct its rings, or use shapely.make_valid")


def _check_corner(longitude: float, latitude: float, field: str, form: str) -> None:
    for name, value, limit in (("longitude", longitude, _TURN), ("latitude", latitude, _POLE)):
        if not -limit <= value <= limit:  # NaN is not either
            raise InputError(
                f"`{field}` has the {name} {value!s:.20}, which is not between -{limit:g} and {limit:g}; {form}"
            )
