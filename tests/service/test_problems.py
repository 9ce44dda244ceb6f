"""Errors as problem JSON."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from lookdown import errors
from lookdown.service.problems import Problem, body_of, of_error, response_of, sentence_of, without_paths

FOLDER = Path("/srv/archives/north sea")


def test_every_error_of_lookdown_has_a_status() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.LookdownError)]
    for kind in kinds:
        error = kind("a", "b") if kind is errors.MissingExtraError else kind("x")
        assert of_error(error, FOLDER).status_code in {*range(400, 501), 503}
    assert of_error(errors.EngineError("x"), FOLDER).status_code == 503  # it may be back soon
    assert of_error(errors.GalleryBusyError("x"), FOLDER).headers == {"Retry-After": "2"}
    assert of_error(errors.NotCalibratedError("x"), FOLDER).kind == "not-calibrated"


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("/srv/archives/north sea has no chip 'a'", "north sea has no chip 'a'"),
        ("/srv/archives/north sea/metrics/current cannot be read", "north sea/metrics/current cannot be read"),
        ("/tmp/x/y.png: cannot be read", "y.png: cannot be read"),
        ("file '/home/me/secret/a.json' is damaged", "file 'a.json' is damaged"),
        ("see C:\\data\\me\\x.tif", "see x.tif"),
        ("a rate of 1/1000, k or a/b", "a rate of 1/1000, k or a/b"),
        ("chip bars/1/x.png is named twice", "chip bars/1/x.png is named twice"),
        ("give https://tiles.example/a/b", "give https://tiles.example/a/b"),
    ],
)
def test_a_file_goes_by_its_name(told: str, shown: str) -> None:
    assert without_paths(told, FOLDER) == shown


def test_a_problem_says_what_it_is_and_never_too_much() -> None:
    problem = body_of(Problem(404, "unknown", "é" * 2_000 + "\ud800"))
    assert (problem["type"], problem["title"], problem["status"]) == ("urn:lookdown:unknown", "Not Found", 404)
    assert len(problem["detail"]) == 600
    plain = response_of(HTTPException(405, headers={"Allow": "GET"}))
    assert plain.headers["allow"] == "GET"
    assert json.loads(bytes(plain.body))["type"] == "about:blank"
    assert sentence_of([]) == "the request cannot be read"


def test_unknown_addresses_and_methods_are_problems_too(reader: TestClient) -> None:
    for method, path, status in (("GET", "/v2", 404), ("POST", "/healthz", 405), ("GET", "/v1/search", 405)):
        answer = reader.request(method, path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
        assert answer.json()["status"] == status
    assert reader.get("/v1/chips?limit=x").json()["detail"].startswith("limit: ")
    assert reader.get("/docs").status_code == 404
