"""Footprints on the map: cut at the date line, outer rings counter-clockwise, nonsense is no place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from lookdown.gallery.results.footprints import map_geometry


def rectangle(west: float, south: float, east: float, north: float) -> str:
    corners = f"{west} {south}, {west} {north}, {east} {north}, {east} {south}, {west} {south}"  # clockwise
    return f"POLYGON (({corners}))"


def put(footprint: str) -> Any:
    """A place that is one."""
    geometry = map_geometry(footprint)
    assert geometry is not None
    return geometry


def bounds(footprint: str) -> list[tuple[float, ...]]:
    return sorted(part.bounds for part in shapely.get_parts(put(footprint)))


def test_an_ordinary_footprint_stays_where_it_is_and_keeps_its_first_corner() -> None:
    square = put(rectangle(10, 50, 10.001, 50.001))
    assert square.geom_type == "Polygon"
    assert square.bounds == (10, 50, 10.001, 50.001)
    assert square.exterior.coords[0] == (10, 50)


@pytest.mark.parametrize(
    ("west", "east", "expected"),
    [
        (179.5, 180.25, [(-180, -179.75), (179.5, 180)]),
        (-180.25, -179.5, [(-180, -179.5), (179.75, 180)]),
        (179.5, 180, [(179.5, 180)]),
        (-180, -179.5, [(-180, -179.5)]),
        (180, 180.5, [(-180, -179.5)]),
        (185, 186, [(-175, -174)]),
        (-190, -185, [(170, 175)]),
        (359, 360, [(-1, 0)]),
    ],
)
def test_beyond_the_date_line_it_is_cut_or_moved(west: float, east: float, expected: list[tuple[float, float]]) -> None:
    found_bounds = bounds(rectangle(west, -17, east, -16))
    assert [(part[0], part[2]) for part in found_bounds] == expected
    assert all((part[1], part[3]) == (-17, -16) for part in found_bounds)


@given(
    st.floats(-180, 180), st.floats(-89, 88), st.floats(1e-4, 20), st.floats(1e-4, 1), st.sampled_from([-360, 0, 360])
)
def test_it_lies_within_the_world_with_its_area_and_its_turn(
    west: float, south: float, width: float, height: float, turn: float
) -> None:
    east, north = west + width, south + height
    if max(abs(west + turn), abs(east + turn)) > 360:
        turn = 0
    geometry = put(rectangle(west + turn, south, east + turn, north))
    assert geometry.is_valid
    low, _, high, _ = geometry.bounds
    assert -180 <= low <= high <= 180
    assert geometry.area == pytest.approx(width * height, rel=3e-3)
    for polygon in shapely.get_parts(geometry):
        assert shapely.is_ccw(polygon.exterior)
    assert (geometry.geom_type == "MultiPolygon") == (round(east, 7) > 180 > round(west, 7))


def test_holes_turn_the_other_way_and_are_cut_too() -> None:
    ring = "POLYGON ((170 0, 170 10, 190 10, 190 0, 170 0), (175 2, 185 2, 185 8, 175 8, 175 2))"
    cut = put(ring)
    assert cut.area == pytest.approx(200 - 60)
    whole = put("POLYGON ((0 0, 0 9, 9 9, 9 0, 0 0), (1 1, 2 1, 2 2, 1 2, 1 1))")
    assert shapely.is_ccw(whole.exterior)
    assert not shapely.is_ccw(whole.interiors[0])


def test_many_polygons_a_point_and_a_line_are_places_too() -> None:
    assert put("MULTIPOLYGON (((0 0, 0 1, 1 1, 0 0)), ((181 0, 182 1, 181 1, 181 0)))").geom_type == "MultiPolygon"
    assert put("POINT (181 3)").wkt == "POINT (-179 3)"
    assert put("POINT (180 3)").wkt == "POINT (180 3)"
    line = put("LINESTRING (179 0, 181 2)")
    assert line.geom_type == "MultiLineString"
    assert sorted(part.bounds for part in line.geoms) == [(-180, 1, -179, 2), (179, 0, 180, 1)]


def test_a_polygon_that_crosses_itself_can_be_cut() -> None:
    bow_tie = put("POLYGON ((179 0, 181 2, 181 0, 179 2, 179 0))")
    assert bow_tie.is_valid
    assert bow_tie.area == pytest.approx(2)


def test_seven_decimals_and_no_height() -> None:
    geometry = put("POLYGON Z ((10.123456789 50 7, 11 50 7, 11 51 7, 10.123456789 50 7))")
    assert not geometry.has_z
    assert geometry.bounds[0] == 10.1234568
    corners = shapely.get_coordinates(put(rectangle(-1e-9, -1e-9, 1, 1)))
    assert not np.signbit(corners).any()


def test_what_reaches_over_by_less_than_a_centimetre_is_not_cut() -> None:
    assert bounds(rectangle(179, 0, 180.00000001, 1)) == [(179, 0, 180, 1)]


def test_a_corner_too_small_to_keep_leaves_the_rest() -> None:
    geometry = put("POLYGON ((179 0, 180.0000001 0.5, 179 1, 179 0))")
    assert geometry.is_valid
    assert geometry.geom_type == "Polygon"
    assert geometry.bounds == (179, 0, 180, 1)


@pytest.mark.parametrize(
    "footprint",
    [
        None, "", "nowhere", "POLYGON EMPTY", "POINT EMPTY", "POLYGON ((0 0, 1 1))", "POLYGON ((0 0, 1 0, 1 1, 0 1))",
        "POLYGON ((nan 0, 0 1, 1 1, nan 0))", "POLYGON ((0 0, 1e400 0, 1 1, 0 0))",
        "POLYGON ((inf 0, 0 1, 1 1, inf 0))", rectangle(500000, 4000000, 500100, 4000100), rectangle(0, 80, 1, 91),
        rectangle(-200, 0, 200, 1), "LINEARRING (0 0, 1 1, 1 0, 0 0)", "GEOMETRYCOLLECTION (POINT (1 2))",
        "=1+1", "a\udcff",
    ],
)  # fmt: skip
def test_what_names_no_place_is_none(footprint: str | None) -> None:
    assert map_geometry(footprint) is None
