"""GeoJSON: read back by GDAL, as QGIS does, and held against the letter of RFC 7946, also at the date line."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from tests.gallery.results.found import NAUGHTY, bare, found, hit, measured, naughty

from lookdown.gallery.results.geojson import map_geometry, to_geojson
from lookdown.gallery.results.hit import Results
from lookdown.metrics.estimate import Estimate

ACROSS = "POLYGON ((179.9 -17, 180.2 -17, 180.2 -16.5, 179.9 -16.5, 179.9 -17))"


def opened(results: Results, folder: Path) -> Any:
    file = folder / "hits.geojson"
    file.write_text(to_geojson(results), encoding="utf-8")
    return geopandas.read_file(file, engine="pyogrio")


def test_a_layer_that_was_cut_says_so() -> None:
    cut = json.loads(to_geojson(found(hit(), accepted=8)))
    assert (cut["accepted"], cut["truncated"]) == (8, True)
    whole = json.loads(to_geojson(found(hit())))
    assert (whole["accepted"], whole["truncated"]) == (1, False)


def test_gdal_reads_places_and_figures(tmp_path: Path) -> None:
    layer = opened(found(hit(), hit(id="b", score=-2.5, footprint=ACROSS, merged=3)), tmp_path)
    assert layer.crs.to_epsg() == 4326
    assert layer["id"].tolist() == ["harbour-001-00037", "b"]
    assert layer["rank"].tolist() == [1, 2]
    assert layer["score"].tolist() == [4.25, -2.5]
    assert layer["false_alarm_rate"].tolist() == [0.001, 0.001]
    assert layer["false_alarm_rate_high"].tolist() == [0.002, 0.002]
    assert layer["false_alarm_rate_supported"].tolist() == [True, True]
    assert layer["merged"].tolist() == [0, 3]
    assert layer.geometry.iloc[0].bounds == (10, 50, 10.001, 50.001)


def test_across_the_date_line_there_are_two_polygons_within_the_world(tmp_path: Path) -> None:
    (geometry,) = opened(found(hit(footprint=ACROSS)), tmp_path).geometry
    assert geometry.geom_type == "MultiPolygon"
    assert sorted(part.bounds for part in geometry.geoms) == [(-180, -17, -179.8, -16.5), (179.9, -17, 180, -16.5)]
    assert all(shapely.is_ccw(part.exterior) for part in geometry.geoms)


def test_the_members_are_those_of_the_standard() -> None:
    layer = json.loads(to_geojson(found(hit(), hit(id="b"))))
    assert layer["type"] == "FeatureCollection"
    assert "crs" not in layer  # the standard has done away with it
    assert [feature["id"] for feature in layer["features"]] == ["harbour-001-00037", "b"]
    for feature in layer["features"]:
        assert set(feature) == {"type", "id", "geometry", "properties"}
        assert feature["type"] == "Feature"
        (ring,) = feature["geometry"]["coordinates"]
        assert ring[0] == ring[-1]
        area = sum(x * v - u * y for (x, y), (u, v) in pairwise(ring))
        assert area > 0  # counter-clockwise
        assert not [value for value in feature["properties"].values() if isinstance(value, (dict, list))]


def test_the_search_stands_beside_the_features() -> None:
    layer = json.loads(to_geojson(found(hit(), requested_false_alarm_rate=0.01, threshold=measured(3))))
    assert layer["query"] == "ship.jpg"
    assert layer["rows_searched"] == 3200
    assert layer["threshold"]["value"] == 3


def test_hits_without_a_place_are_left_out_and_counted(tmp_path: Path) -> None:
    results = found(bare(id="a"), hit(id="b"), hit(id="c", footprint="nowhere"))
    layer = opened(results, tmp_path)
    assert layer["id"].tolist() == ["b"]
    assert layer["rank"].tolist() == [2]
    assert json.loads(to_geojson(results))["without_footprint"] == 2


@pytest.mark.parametrize("results", [found(), found(bare()), found(expected_false_hits=None, rows_searched=0)])
def test_a_layer_may_be_empty(results: Results, tmp_path: Path) -> None:
    assert len(opened(results, tmp_path)) == 0
    assert json.loads(to_geojson(results))["without_footprint"] == len(results)


def test_names_come_back_as_they_were(tmp_path: Path) -> None:
    layer = opened(naughty(), tmp_path)
    features = json.loads(to_geojson(naughty()))["features"]
    for name in ("id", "label", "scene", "sensor", "source"):
        assert tuple(feature["properties"][name] for feature in features) == NAUGHTY
        for value, name_given in zip(layer[name], NAUGHTY, strict=True):
            assert (value or "") == name_given.split("\x00")[0]  # text of C ends there


def test_what_is_no_number_or_not_known_is_null(tmp_path: Path) -> None:
    rate = Estimate.of_model(math.nan, "analytic")
    odd = bare(score=math.inf, false_alarm_rate=rate, footprint="POINT (1 2)")
    (feature,) = json.loads(to_geojson(found(odd)))["features"]
    assert [name for name, value in feature["properties"].items() if value is None] == [
        "score", "posterior", "false_alarm_rate", "false_alarm_rate_low", "false_alarm_rate_high", "label", "kind",
            "kind_probability", "time",
        "sensor", "gsd", "polygon",
    ]  # fmt: skip
    assert len(opened(found(odd), tmp_path)) == 1


def test_a_name_that_is_no_text_can_be_written(tmp_path: Path) -> None:
    assert opened(found(hit(id="a\udcff")), tmp_path)["id"].tolist() == ["a\ufffd"]


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
