"""One search in Python, on the command line and over HTTP: the same names, defaults and types, and the same hits."""

from __future__ import annotations

import csv
import inspect
import io
import json
from dataclasses import MISSING, Field, fields
from typing import Any

import numpy as np
import pytest
import typer
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.gallery.galleries import kinds, rows_of, vector_gallery
from typer.testing import CliRunner

from lookdown import Gallery, Hit, KindLikelihoodRatio, Results, SearchRequest, Where
from lookdown.cli import app as command_line
from lookdown.gallery.results.csv_text import to_csv
from lookdown.gallery.results.geojson import to_geojson
from lookdown.gallery.results.json_text import to_json
from lookdown.service import ServiceSettings, create_app
from lookdown.service.answers import search_answer

RATE_PARTS = ("low", "high", "method", "supported")  # columns of an estimate beside its value
OUTPUT_OPTIONS = {
    "gallery", "engine", "uri", "as_json", "csv", "geojson", "geoparquet", "html", "overwrite", "help",
}  # fmt: skip
EXAMPLE = np.ones((1, 8), np.float32)
JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def default(field: Field[Any]) -> Any:
    assert field.default_factory is MISSING
    return None if field.default is MISSING or field.default == () else field.default


def in_python() -> dict[str, Any]:
    """Every field of a request with its default, the filters among them."""
    request = {field.name: default(field) for field in fields(SearchRequest) if field.name != "where"}
    return request | {field.name: default(field) for field in fields(Where)}


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    gallery, _, _ = vector_gallery(tmp_path_factory.mktemp("contract") / "g", 20)
    service = create_app(gallery, ServiceSettings())
    assert isinstance(service, FastAPI)
    found: dict[str, Any] = service.openapi()["components"]["schemas"]
    return found


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    gallery, X, _ = vector_gallery(tmp_path_factory.mktemp("results") / "g", 60)
    return gallery.search(X[0], false_alarm_rate=0.5)


def test_the_arguments_of_search_are_the_fields_of_the_request() -> None:
    arguments = dict(inspect.signature(Gallery.search).parameters)
    del arguments["self"]
    assert set(arguments) == {field.name for field in fields(SearchRequest)}
    for field in fields(SearchRequest):
        expected = inspect.Parameter.empty if field.default is MISSING else field.default
        assert arguments[field.name].default == expected, field.name
        assert arguments[field.name].annotation == field.type, field.name


def test_the_command_line_has_every_field_under_its_name_with_its_default() -> None:
    command = typer.main.get_command(command_line).get_command(None, "search")  # type: ignore[attr-defined]
    options = {parameter.name: parameter for parameter in command.params if parameter.name not in OUTPUT_OPTIONS}
    assert set(options) == set(in_python())
    for name, wanted in in_python().items():
        assert options[name].default == wanted or (wanted is None and not options[name].default), name
        long = max(options[name].opts, key=len).lstrip("-").replace("-", "_")
        assert long in (name, name.removesuffix("s")), f"{name} is called {long}"


def test_http_has_every_field_under_its_name_with_its_default(schemas: dict[str, Any]) -> None:
    body, where = schemas["SearchBody"]["properties"], schemas["WhereBody"]["properties"]
    assert set(body) == {field.name for field in fields(SearchRequest)}
    assert set(where) == {field.name for field in fields(Where)}
    for name, wanted in in_python().items():
        schema = (body | where)[name]
        assert schema.get("default") == wanted, name
        if wanted is not None:
            assert schema["type"] == JSON_TYPES[type(wanted)], name


def flat(names: list[str]) -> set[str]:
    """The columns of a hit: an estimate takes five, and a table holds no picture."""
    return {name for name in names if name != "thumbnail"} | {f"false_alarm_rate_{part}" for part in RATE_PARTS}


def test_a_hit_has_the_same_fields_in_every_output(results: Results, schemas: dict[str, Any]) -> None:
    names = [field.name for field in fields(Hit)]
    (first, *_) = json.loads(to_json(results, thumbnails=True))["hits"]
    assert set(first) == set(names)
    assert set(schemas["HitAnswer"]["properties"]) == set(names)
    assert set(search_answer(results, EXAMPLE, None, None)["hits"][0]) == set(names)
    assert set(next(csv.DictReader(io.StringIO(to_csv(results))))) == flat(names)
    assert set(results.to_pandas().columns) == flat(names)
    (feature, *_) = json.loads(to_geojson(results))["features"]
    assert set(feature["properties"]) == flat(names) - {"footprint"}  # it is the geometry
    assert set(first["false_alarm_rate"]) == {"value", *RATE_PARTS} == set(schemas["EstimateAnswer"]["properties"])


def test_a_kind_is_searched_for_in_the_same_way_everywhere(tmp_path_factory: pytest.TempPathFactory) -> None:
    X, y = kinds(200)
    folder = tmp_path_factory.mktemp("kinds") / "g"
    metric = KindLikelihoodRatio(temperature=2.0).fit(X, np.array(["F-16", "tug", "it's", "ferry", "x"])[y % 5])
    gallery = Gallery.create(folder, metric=metric, dimension=8)
    gallery.add_embeddings(rows_of(y), X)
    wanted = gallery.search(kind="it's", k=7)
    typed = CliRunner().invoke(command_line, ["search", str(folder), "--kind", "it's", "-k", "7", "--json"])
    with TestClient(create_app(gallery, ServiceSettings()), base_url="http://127.0.0.1:8000") as client:
        answer = client.post("/v1/search", json={"kind": "it's", "k": 7}).json()
    for found in (json.loads(to_json(wanted)), json.loads(typed.stdout), answer):
        assert found["query"] == "kind it's"
        assert [hit["id"] for hit in found["hits"]] == [hit.id for hit in wanted.hits]
        for hit, one in zip(wanted.hits, found["hits"], strict=True):
            assert (one["kind"], one["kind_probability"], one["score"]) == ("it's", hit.kind_probability, hit.score)


def test_results_have_the_same_fields_in_every_output(results: Results, schemas: dict[str, Any]) -> None:
    names = {field.name for field in fields(Results)} | {"truncated"}
    assert set(json.loads(to_json(results))) == names
    assert set(schemas["SearchAnswer"]["properties"]) == names | {"example"}
    assert set(search_answer(results, EXAMPLE, None, None)) == names | {"example"}
    assert set(json.loads(to_geojson(results))) == names - {"hits"} | {"type", "features", "without_footprint"}


def test_values_are_the_same_in_every_output(results: Results) -> None:
    in_json = json.loads(to_json(results))["hits"]
    over_http = search_answer(results, EXAMPLE, None, None)["hits"]
    in_csv = list(csv.DictReader(io.StringIO(to_csv(results))))
    for hit, one, two, row in zip(results.hits, in_json, over_http, in_csv, strict=True):
        for name in ("rank", "score", "posterior", "merged"):
            assert one[name] == two[name] == getattr(hit, name) == float(row[name])
        assert one["false_alarm_rate"] == two["false_alarm_rate"]
        assert float(row["false_alarm_rate"]) == one["false_alarm_rate"]["value"] == hit.false_alarm_rate
