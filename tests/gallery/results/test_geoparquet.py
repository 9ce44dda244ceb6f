"""GeoParquet: read back by geopandas, and its metadata held against version 1.1 of the specification."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import geopandas
import pyarrow.parquet
import pytest
import shapely
from tests.gallery.results.found import NAUGHTY, bare, found, hit, naughty

from lookdown.gallery.results.geoparquet import to_geoparquet
from lookdown.gallery.results.hit import Results, flat_fields
from lookdown.metrics.estimate import Estimate

ACROSS = "POLYGON ((179.9 -17, 180.2 -17, 180.2 -16.5, 179.9 -16.5, 179.9 -17))"


def opened(results: Results, folder: Path) -> Any:
    (folder / "hits.parquet").write_bytes(to_geoparquet(results))
    return geopandas.read_parquet(folder / "hits.parquet")


def metadata(results: Results) -> dict[str, Any]:
    found_metadata = pyarrow.parquet.read_schema(pyarrow.BufferReader(to_geoparquet(results))).metadata
    content: dict[str, Any] = json.loads(found_metadata[b"geo"])
    return content


def test_geopandas_reads_places_and_figures(tmp_path: Path) -> None:
    layer = opened(found(hit(), hit(id="b", score=-2.5, footprint=ACROSS), bare(id="c")), tmp_path)
    assert layer.crs.equals("OGC:CRS84")
    assert layer["id"].tolist() == ["harbour-001-00037", "b", "c"]
    assert layer["score"].tolist() == [4.25, -2.5, 4.25]
    assert layer["false_alarm_rate"].isna().tolist() == [False, False, True]
    assert layer.geometry.iloc[0].bounds == (10, 50, 10.001, 50.001)
    assert [part.bounds for part in layer.geometry.iloc[1].geoms] == [
        (179.9, -17, 180, -16.5),
        (-180, -17, -179.8, -16.5),
    ]
    assert layer.geometry.iloc[2] is None


def test_the_metadata_are_those_of_the_specification() -> None:
    geo = metadata(found(hit(), hit(footprint=ACROSS), bare()))
    assert geo == {
        "version": "1.1.0",
        "primary_column": "geometry",
        "columns": {
            "geometry": {
                "encoding": "WKB",
                "geometry_types": ["MultiPolygon", "Polygon"],
                "orientation": "counterclockwise",
                "bbox": [-180, -17, 180, 50.001],
            }
        },
    }


def test_rings_turn_as_the_metadata_say() -> None:
    clockwise = "POLYGON ((0 0, 0 1, 1 1, 1 0, 0 0))"
    table = pyarrow.parquet.read_table(pyarrow.BufferReader(to_geoparquet(found(hit(footprint=clockwise)))))
    assert shapely.is_ccw(shapely.from_wkb(table["geometry"][0].as_py()).exterior)


def test_the_columns_are_those_of_every_format_and_the_search_is_kept() -> None:
    table = pyarrow.parquet.read_table(pyarrow.BufferReader(to_geoparquet(found(hit(merged=2)))))
    expected = flat_fields(hit(merged=2))
    del expected["footprint"]  # it is the geometry
    assert table.drop(["geometry"]).to_pylist() == [expected]
    assert json.loads(table.schema.metadata[b"lookdown.search"])["query"] == "ship.jpg"


@pytest.mark.parametrize("results", [found(), found(bare())])
def test_a_layer_may_be_empty(results: Results, tmp_path: Path) -> None:
    layer = opened(results, tmp_path)
    assert len(layer) == len(results)
    assert layer.geometry.notna().sum() == 0
    geometry = metadata(results)["columns"]["geometry"]
    assert geometry["geometry_types"] == []
    assert "bbox" not in geometry
    assert opened_types(to_geoparquet(results)) == opened_types(to_geoparquet(found(hit())))


def opened_types(content: bytes) -> dict[str, str]:
    schema = pyarrow.parquet.read_schema(pyarrow.BufferReader(content))
    return {field.name: str(field.type) for field in schema}


def test_names_come_back_as_they_were(tmp_path: Path) -> None:
    layer = opened(naughty(), tmp_path)
    for name in ("id", "label", "scene", "time", "sensor", "source"):
        assert tuple(layer[name]) == NAUGHTY


def test_what_is_no_number_is_null() -> None:
    odd = hit(id="a\udcff", score=math.nan, false_alarm_rate=Estimate.of_model(math.inf, "analytic"))
    (row,) = pyarrow.parquet.read_table(pyarrow.BufferReader(to_geoparquet(found(odd)))).to_pylist()
    assert row["id"] == "a\ufffd"
    assert [row[name] for name in ("score", "false_alarm_rate", "false_alarm_rate_low")] == [None] * 3
