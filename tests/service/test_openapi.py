"""The description of the API, and the API held against it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient
from tests.service.galleries import make_gallery

from lookdown import Gallery
from lookdown.service import ServiceSettings, create_app

OPERATIONS = 19


def test_the_description_is_whole_and_points_nowhere_else(reader: TestClient) -> None:
    told = reader.get("/openapi.json").json()
    operations = [(path, method) for path, methods in told["paths"].items() for method in methods]
    assert len(operations) == OPERATIONS
    names = set(told["components"]["schemas"])
    for reference in _references(told):
        assert reference.removeprefix("#/components/schemas/") in names
    assert "http://" not in json.dumps(told)
    assert "https://" not in json.dumps(told).replace("https://tiles.example", "")
    examples = told["components"]["schemas"]["SearchBody"]["examples"]
    assert examples[0]["k"] == 20
    assert "securitySchemes" not in told["components"]


def _references(told: Any) -> Iterator[str]:
    if isinstance(told, dict):
        for name, value in told.items():
            if name == "$ref":
                yield value
            yield from _references(value)
    elif isinstance(told, list):
        for value in told:
            yield from _references(value)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    gallery = make_gallery(tmp_path_factory.mktemp("described") / "bars")
    app = create_app(gallery, ServiceSettings(access="write", hosts=("testserver",), requests_a_second=0))
    with TestClient(app):  # its threads run meanwhile
        yield schemathesis.openapi.from_asgi("/openapi.json", app)


@pytest.mark.kill
def test_answers_are_as_described_whatever_is_asked(api: Any) -> None:
    asked = []
    statuses: set[int] = set()
    for operation in (found.ok() for found in api.get_all_operations()):
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try:
                statuses |= _held(operation.as_strategy(generation_mode=mode), 25)
            except Unsatisfiable:
                assert mode is GenerationMode.NEGATIVE  # nothing can be wrong with what takes nothing
        asked.append(operation.label)
    assert len(asked) == OPERATIONS
    assert statuses >= {200, 202, 404, 422}


def _held(cases: Any, examples: int) -> set[int]:
    """Ask, hold the answers against the description, and return their statuses."""
    statuses = set()

    @given(case=cases)
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def each(case: Any) -> None:
        answer = case.call()
        statuses.add(answer.status_code)
        case.validate_response(
            answer,
            checks=[
                not_a_server_error,
                status_code_conformance,
                content_type_conformance,
                response_schema_conformance,
            ],
        )

    each()
    return statuses


def test_the_description_is_made_once(made: Path) -> None:
    app = create_app(Gallery.open(made))
    assert app.openapi() is app.openapi()
