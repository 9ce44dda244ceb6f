"""GeoJSON: read back by GDAL, as QGIS does, and held against the letter of RFC 7946."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import geopandas
import pytest
import shapely
from tests.gallery.results.found import NAUGHTY, bare, found, hit, measured, naughty

from lookdown.gallery.results.geojson import to_geojson
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
        for value, given in zip(layer[name], NAUGHTY, strict=True):
            assert (value or "") == given.split("\x00")[0]  # text of C ends there


def test_what_is_no_number_or_not_known_is_null(tmp_path: Path) -> None:
    rate = Estimate.of_model(math.nan, "analytic")
    odd = bare(score=math.inf, false_alarm_rate=rate, footprint="POINT (1 2)")
    (feature,) = json.loads(to_geojson(found(odd)))["features"]
    assert [name for name, value in feature["properties"].items() if value is None] == [
        "score", "posterior", "false_alarm_rate", "false_alarm_rate_low", "false_alarm_rate_high", "label", "time",
        "sensor", "gsd", "polygon",
    ]  # fmt: skip
    assert len(opened(found(odd), tmp_path)) == 1


def test_a_name_that_is_no_text_can_be_written(tmp_path: Path) -> None:
    assert opened(found(hit(id="a\udcff")), tmp_path)["id"].tolist() == ["a\ufffd"]
