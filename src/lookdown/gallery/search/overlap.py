"""One hit per object: windows overlap, so an object is found in several, and only the best of them is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import shapely
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.gallery.store.snapshot import CategoricalColumn, Rows, shapes

__all__ = ["merge_overlapping"]

_POLYGONS = (3, 6)  # type numbers of Polygon and MultiPolygon in shapely
_FARTHEST = 2.0**31  # pixels: rasters are counted in 32 bits, so nothing in a scene lies beyond
_SMALLEST = 1e-6  # square pixels: GEOS cannot intersect thinner polygons
_BATCH_HITS = 32  # whose neighbours are looked up at a time: few, since copies are all neighbours of each other


def merge_overlapping(
    scenes: Sequence[str], polygons: Sequence[str | None], overlap: float
) -> tuple[Rows, NDArray[np.intp]]:
    """Merge hits, ordered best first, into the best hit of the same scene that they overlap.

    Returns the positions of the hits that are kept, in rising order, and how many worse hits each stands for.

    polygons: WKT in pixels of the scene. A hit whose polygon is missing (the whole image), unreadable, invalid or
        without area is merged with nothing.
    overlap: a hit is merged if it shares more than this part of the smaller of two areas with a better hit that was
        kept. Windows of several sizes nest, which a share of the union would not notice. Windows at half a stride
        share a half and diagonal neighbours a quarter, so 0.2 merges both; 1 merges nothing.

    A hit that overlaps several is counted for the best of them. Hits added to the end do not change which of those
    before are kept, so a search that needs more hits calls this again with a longer list.
    """
    if len(scenes) != len(polygons):
        raise InputError(f"{len(scenes)} scenes for {len(polygons)} polygons; give one of each per hit, or None")
    if not 0 <= overlap <= 1:
        raise InputError(f"overlap is a share of an area, from 0 to 1; got {overlap}")
    windows = _Windows.read(scenes, polygons)
    owners = np.arange(len(scenes))
    owners[windows.hits] = windows.hits[_owners(windows, overlap)]
    counts = np.bincount(owners, minlength=len(owners))
    kept = np.flatnonzero(counts)
    return kept, counts[kept] - 1


@dataclass(frozen=True, slots=True)
class _Windows:
    """The hits that have a usable polygon, with its area and bounds."""

    hits: Rows  # positions in the list
    scenes: NDArray[np.int32]
    shapes: NDArray[Any]
    areas: NDArray[np.float64]
    bounds: NDArray[np.float64]  # (n, 4) left, top, right, bottom
    upright: NDArray[np.bool_]  # the polygon is the rectangle of its bounds, as most windows are

    @classmethod
    def read(cls, scenes: Sequence[str], polygons: Sequence[str | None]) -> Self:
        with np.errstate(all="ignore"):  # coordinates may be huge
            windows = shapes(polygons)
            areas, bounds = shapely.area(windows), shapely.bounds(windows)
            usable = np.isin(shapely.get_type_id(windows), _POLYGONS) & shapely.is_valid(windows)
            usable &= (areas >= _SMALLEST) & (np.abs(bounds) <= _FARTHEST).all(axis=1)
        hits = np.flatnonzero(usable)
        windows, areas, bounds = windows[hits], areas[hits], bounds[hits]
        upright = (bounds[:, 2:] - bounds[:, :2]).prod(axis=1) == areas
        return cls(hits, CategoricalColumn.from_texts(scenes).codes[hits], windows, areas, bounds, upright)

    def side_by_side(self) -> NDArray[Any]:
        """Return the bounds as rectangles on one plane, on which each scene has a strip of its own.

        One tree then serves many scenes with few hits as well as one scene with many. Coordinates on the plane are
        rounded, but rectangles that touch in a scene still touch there, because rounding keeps the order.
        """
        left, top, right, bottom = self.bounds.T
        strip = (right.max(initial=0) - left.min(initial=0)) * self.scenes
        return np.asarray(shapely.box(left + strip, top, right + strip, bottom))

    def overlapping(self, first: Rows, second: Rows, overlap: float) -> NDArray[np.bool_]:
        """Return which pairs are of one scene and share more than `overlap` of the smaller area.

        The bounds share at least as much as the polygons and, for two upright windows, exactly as much. Polygons are
        intersected only where the bounds do not decide, because that takes far longer.
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

    Only windows without an owner are looked at. The tree is rebuilt once it has returned as many useless neighbours as
    it has members, so that a window is not compared again and again with neighbours that are already owned.
    """
    boxes = windows.side_by_side()
    owners = np.full(len(boxes), -1)
    members, tree, wasted = np.arange(len(boxes)), shapely.STRtree(boxes), 0
    for begin in range(0, len(boxes), _BATCH_HITS):
        rows = begin + np.flatnonzero(owners[begin : begin + _BATCH_HITS] < 0)
        queries, neighbours = tree.query(boxes[rows])
        first, second = rows[queries], members[neighbours]
        useful = (second > first) & (owners[second] < 0)
        first, second = first[useful], second[useful]
        over = windows.overlapping(first, second, overlap)
        _settle(owners, rows, first[over], second[over])
        wasted += len(useful) - len(first)
        if wasted > len(members):
            members = np.flatnonzero(owners < 0)
            tree, wasted = shapely.STRtree(boxes[members]), 0
    return owners


def _settle(owners: Rows, rows: Rows, first: Rows, second: Rows) -> None:
    """Make each row that has no owner yet, in order, the owner of what it overlaps; `first` is sorted."""
    begins, ends = np.searchsorted(first, rows), np.searchsorted(first, rows, side="right")
    for row, begin, end in zip(rows.tolist(), begins.tolist(), ends.tolist(), strict=True):
        if owners[row] < 0:
            owners[row] = row
            others = second[begin:end]
            owners[others[owners[others] < 0]] = row
