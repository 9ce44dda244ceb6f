"""JSON: strict, whole, and read back by the standard reader."""

from __future__ import annotations

import base64
import json
import math
from typing import Any, NoReturn

import pytest
from tests.gallery.results.found import JPEG, NAUGHTY, SQUARE, bare, found, hit, measured, naughty

from lookdown.gallery.results.hit import Results
from lookdown.gallery.results.json_text import to_json
from lookdown.metrics.estimate import Estimate


def read(results: Results, *, thumbnails: bool = False) -> dict[str, Any]:
    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f"{constant} is no JSON")

    content: dict[str, Any] = json.loads(to_json(results, thumbnails=thumbnails), parse_constant=refuse)
    return content


def test_everything_is_there() -> None:
    content = read(found(hit(merged=2), requested_false_alarm_rate=0.01, threshold=measured(3), notes=("so",)))
    assert set(content) == {
        "query", "hits", "rows_searched", "metric", "engine", "prior", "requested_false_alarm_rate", "threshold",
        "expected_false_hits", "notes", "accepted", "truncated",
    }  # fmt: skip
    assert content["rows_searched"] == 3200
    assert content["threshold"] == {"value": 3, "low": 1.5, "high": 6, "method": "empirical", "supported": True}
    assert content["hits"] == [
        {
            "rank": 1,
            "id": "harbour-001-00037",
            "score": 4.25,
            "posterior": 0.93,
            "false_alarm_rate": {
                "value": 0.001, "low": 0.0005, "high": 0.002, "method": "empirical", "supported": True,
            },
            "label": "cargo ship",
            "kind": None,
            "kind_probability": None,
            "background": False,
            "scene": "harbour-001",
            "time": "2025-03-04T10:12:00Z",
            "sensor": "Sentinel-2",
            "gsd": 10.0,
            "source": "archive/harbour-001.tif",
            "polygon": "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0))",
            "footprint": SQUARE,
            "merged": 2,
        }
    ]  # fmt: skip


def test_pictures_come_when_asked() -> None:
    (record,) = read(found(hit()), thumbnails=True)["hits"]
    assert base64.b64decode(record["thumbnail"]) == JPEG
    assert "thumbnail" not in read(found(hit()))["hits"][0]
    assert read(found(bare()), thumbnails=True)["hits"][0]["thumbnail"] == ""


def test_names_come_back_as_they_were() -> None:
    content = read(naughty())
    for name in ("id", "label", "scene", "time", "sensor", "source"):
        assert tuple(record[name] for record in content["hits"]) == NAUGHTY
    assert content["notes"] == list(NAUGHTY)
    assert "🚢" in to_json(naughty())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(value: float) -> None:
    rate = Estimate.of_model(value, "analytic")
    odd = hit(score=value, posterior=value, gsd=value, false_alarm_rate=rate)
    content = read(found(odd, prior=value, threshold=rate, expected_false_hits=rate, requested_false_alarm_rate=value))
    (record,) = content["hits"]
    assert [record[name] for name in ("score", "posterior", "gsd")] == [None] * 3
    assert record["false_alarm_rate"] == {
        "value": None, "low": None, "high": None, "method": "analytic", "supported": False,
    }  # fmt: skip
    assert (content["prior"], content["requested_false_alarm_rate"]) == (None, None)


def test_what_is_not_known_is_null_and_nothing_found_is_an_empty_list() -> None:
    (record,) = read(found(bare()))["hits"]
    assert [name for name, value in record.items() if value is None] == [
        "posterior", "false_alarm_rate", "label", "kind", "kind_probability", "time", "sensor", "gsd", "polygon",
        "footprint",
    ]  # fmt: skip
    assert read(found(expected_false_hits=None)) | {"hits": []} == read(found(expected_false_hits=None))


def test_a_name_that_is_no_text_can_be_written() -> None:
    assert json.loads(to_json(found(hit(id="a\udcff"))).encode())["hits"][0]["id"] == "a\ufffd"
