"""One ship, one hit: windows overlap, so an object is found in several, and only the best of them is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import shapely
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.gallery.store.snapshot import CategoricalColumn, Rows

__all__ = ["Suppressed", "suppress"]

_POLYGONS = (3, 6)  # type numbers of Polygon and MultiPolygon in shapely
_FARTHEST = 2.0**31  # pixels: rasters are counted in 32 bits, so what lies beyond is no place in a scene
_SMALLEST = 1e-6  # square pixels: GEOS cannot cut what is as thin as numbers get
_ROWS = 32  # hits whose neighbours are asked for at a time: few, for hits may be copies, each a neighbour of all


class Suppressed(NamedTuple):
    """The hits that are left, as places in the list that was given."""

    kept: Rows  # rising, so best first as the list was
    merged: NDArray[np.intp]  # for each of them, how many worse hits it stands for


def suppress(scenes: Sequence[str], polygons: Sequence[str | None], overlap: float) -> Suppressed:
    """Merge hits, given best first, into the best hit of the same scene that they overlap.

    A hit goes where its `polygon` (WKT in pixels of the scene) shares with that of a better hit which was kept more
    than `overlap` of the area of the smaller of the two: windows of several sizes nest, and a share of the union would
    never see that. Windows at half a stride share a half, diagonal neighbours a quarter, so 0.2 merges both, and 1
    merges nothing. A hit that overlaps several counts for the best of them. What is no polygon with an area, be it
    missing (the whole image), unreadable or crossing itself, merges with nothing.

    A hit is judged by better ones alone, so hits added to the end change nothing about those before, but for what they
    merge: a search that needs more hits calls this again with a longer list, and there is no state to keep.
    """
    if len(scenes) != len(polygons):
        raise InputError(f"{len(scenes)} scenes for {len(polygons)} polygons; give one of each a hit, or None")
    if not 0 <= overlap <= 1:
        raise InputError(f"overlap is a share of an area, from 0 to 1; got {overlap}")
    windows = _Windows.read(scenes, polygons)
    owners = np.arange(len(scenes))
    owners[windows.hits] = windows.hits[_owners(windows, overlap)]
    counts = np.bincount(owners, minlength=len(owners))
    kept = np.flatnonzero(counts)
    return Suppressed(kept, counts[kept] - 1)


@dataclass(frozen=True, slots=True)
class _Windows:
    """The hits that have a polygon, and what is asked of it again and again."""

    hits: Rows  # places in the list
    scenes: NDArray[np.int32]
    shapes: NDArray[Any]
    areas: NDArray[np.float64]
    bounds: NDArray[np.float64]  # (n, 4) left, top, right, bottom
    upright: NDArray[np.bool_]  # the polygon is the rectangle of its bounds, as most windows are

    @classmethod
    def read(cls, scenes: Sequence[str], polygons: Sequence[str | None]) -> Self:
        with np.errstate(all="ignore"):  # a text may hold NaN, and numbers too large to be multiplied
            shapes = np.asarray(shapely.from_wkt(np.array(polygons, dtype=object), on_invalid="ignore"))
            areas, bounds = shapely.area(shapes), shapely.bounds(shapes)
            usable = np.isin(shapely.get_type_id(shapes), _POLYGONS) & shapely.is_valid(shapes)
            usable &= (areas >= _SMALLEST) & (np.abs(bounds) <= _FARTHEST).all(axis=1)
        hits = np.flatnonzero(usable)
        shapes, areas, bounds = shapes[hits], areas[hits], bounds[hits]
        upright = (bounds[:, 2:] - bounds[:, :2]).prod(axis=1) == areas
        return cls(hits, CategoricalColumn.from_texts(scenes).codes[hits], shapes, areas, bounds, upright)

    def side_by_side(self) -> NDArray[Any]:
        """Return the bounds as rectangles on one plane, on which each scene has a strip of its own.

        One tree then serves a thousand scenes of two hits as well as one of two thousand. Places on the plane are
        rounded, but what touches in a scene touches there, for rounding keeps order.
        """
        left, top, right, bottom = self.bounds.T
        strip = (right.max(initial=0) - left.min(initial=0)) * self.scenes
        return np.asarray(shapely.box(left + strip, top, right + strip, bottom))

    def overlapping(self, first: Rows, second: Rows, overlap: float) -> NDArray[np.bool_]:
        """Return which pairs are of one scene and share more than `overlap` of the smaller area.

        The bounds share at least as much as the polygons do and, of two upright windows, just as much. Only what they
        leave open is cut, which takes far longer.
        """
        least = overlap * np.minimum(self.areas[first], self.areas[second])
        low = np.maximum(self.bounds[first, :2], self.bounds[second, :2])
        high = np.minimum(self.bounds[first, 2:], self.bounds[second, 2:])
        shared = (high - low).clip(min=0).prod(axis=1)
        shared[self.scenes[first] != self.scenes[second]] = 0
        unsure = np.flatnonzero((shared > least) & ~(self.upright[first] & self.upright[second]))
        cut = shapely.intersection(self.shapes[first[unsure]], self.shapes[second[unsure]])
        shared[unsure] = shapely.area(cut)
        return np.asarray(shared > least)


def _owners(windows: _Windows, overlap: float) -> Rows:
    """Return for each window the best kept one that it overlaps: itself where it is kept.

    Only windows that nobody owns yet are looked at, and the tree is planted anew when it has returned as many others
    as it holds, so that a window with many neighbours meets each of them once and not once for every window kept.
    """
    boxes = windows.side_by_side()
    owners = np.full(len(boxes), -1)
    planted, tree, wasted = np.arange(len(boxes)), shapely.STRtree(boxes), 0
    for begin in range(0, len(boxes), _ROWS):
        rows = begin + np.flatnonzero(owners[begin : begin + _ROWS] < 0)
        places, found = tree.query(boxes[rows])
        first, second = rows[places], planted[found]
        useful = (second > first) & (owners[second] < 0)
        first, second = first[useful], second[useful]
        over = windows.overlapping(first, second, overlap)
        _settle(owners, rows, first[over], second[over])
        wasted += len(useful) - len(first)
        if wasted > len(planted):
            planted = np.flatnonzero(owners < 0)
            tree, wasted = shapely.STRtree(boxes[planted]), 0
    return owners


def _settle(owners: Rows, rows: Rows, first: Rows, second: Rows) -> None:
    """Keep the rows that are still without owner, in their order, and give them what they overlap; `first` rises."""
    begins, ends = np.searchsorted(first, rows), np.searchsorted(first, rows, side="right")
    for row, begin, end in zip(rows.tolist(), begins.tolist(), ends.tolist(), strict=True):
        if owners[row] < 0:
            owners[row] = row
            others = second[begin:end]
            owners[others[owners[others] < 0]] = row
