"""Plain values for every format."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from tests.gallery.results.found import bare, found, hit, measured

from lookdown.gallery.results.fields import estimate_fields, finite, flat_fields, search_fields, text
from lookdown.gallery.results.hit import Hit
from lookdown.metrics.estimate import Estimate


def test_a_row_has_every_field_of_a_hit_but_the_place_and_the_picture() -> None:
    row = flat_fields(hit())
    assert {field.name for field in fields(Hit)} - set(row) == {"thumbnail"}
    assert row["rank"] == 1
    assert (row["false_alarm_rate"], row["false_alarm_rate_low"], row["false_alarm_rate_high"]) == (
        0.001,
        0.0005,
        0.002,
    )
    assert (row["false_alarm_rate_method"], row["false_alarm_rate_supported"]) == ("empirical", True)


def test_rows_have_the_same_keys_whatever_is_known() -> None:
    first, second = flat_fields(hit()), flat_fields(bare())
    assert list(first) == list(second)
    assert [name for name, value in second.items() if value is None] == [
        "posterior", "false_alarm_rate", "false_alarm_rate_low", "false_alarm_rate_high", "false_alarm_rate_method",
        "false_alarm_rate_supported", "label", "time", "sensor", "gsd", "polygon", "footprint",
    ]  # fmt: skip


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), None])
def test_what_is_no_number_is_none(value: float | None) -> None:
    assert finite(value) is None


def test_numbers_become_plain_ones() -> None:
    values = flat_fields(hit(score=np.float32(0.5), gsd=np.float64(2), merged=np.int64(3)))
    assert [type(values[name]) for name in ("score", "false_alarm_rate", "gsd", "merged")] == [float, float, float, int]


def test_an_estimate_of_a_model_has_no_interval() -> None:
    assert estimate_fields(Estimate.of_model(0.25, "analytic")) == {
        "value": 0.25, "low": None, "high": None, "method": "analytic", "supported": False,
    }  # fmt: skip


def test_the_search_is_told_apart_from_its_hits() -> None:
    record = search_fields(
        found(hit(), query="a\udcff", requested_false_alarm_rate=0.01, threshold=measured(3), notes=("so",))
    )
    assert record["query"] == "a\ufffd"
    assert record["requested_false_alarm_rate"] == 0.01
    assert record["threshold"]["value"] == 3
    assert record["notes"] == ["so"]


def test_bytes_that_were_no_text_become_a_mark() -> None:
    assert text("a\udcffb 🚢") == "a\ufffdb 🚢"
