"""CSV: read back by the standard reader and by Arrow; no cell runs in a spreadsheet."""

from __future__ import annotations

import csv
import io
import math

import pyarrow.csv
import pytest
from tests.gallery.results.found import NAUGHTY, SQUARE, bare, found, hit, named, naughty

from lookdown.gallery.results.csv_text import to_csv
from lookdown.gallery.results.hit import Results
from lookdown.metrics.estimate import Estimate

FORMULAS = (
    "=1",
    "+1",
    "-1",
    "@A1",
    "\t=1",
    "\r=1",
    "\n=1",
    "   =1",
    "\u00a0=1",
    "\ufeff=1",
    "\u200b@A1",
    "\uff1d1",
    "\tx",
)


def read(results: Results) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(results), newline=""), strict=True))


def test_every_column_has_its_value() -> None:
    (row,) = read(found(hit(merged=2)))
    assert row == {
        "rank": "1",
        "id": "harbour-001-00037",
        "score": "4.25",
        "posterior": "0.93",
        "false_alarm_rate": "0.001",
        "false_alarm_rate_low": "0.0005",
        "false_alarm_rate_high": "0.002",
        "false_alarm_rate_method": "empirical",
        "false_alarm_rate_supported": "true",
        "label": "cargo ship",
        "kind": "",
        "kind_probability": "",
        "background": "false",
        "scene": "harbour-001",
        "time": "2025-03-04T10:12:00Z",
        "sensor": "Sentinel-2",
        "gsd": "10.0",
        "source": "archive/harbour-001.tif",
        "polygon": "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0))",
        "footprint": SQUARE,
        "merged": "2",
    }


def test_the_kind_that_a_hit_is_taken_for_has_two_columns() -> None:
    known, none = read(found(hit(kind="F-16", kind_probability=0.93), hit(kind_probability=0.62)))
    assert (known["kind"], known["kind_probability"]) == ("F-16", "0.93")
    assert (none["kind"], none["kind_probability"]) == ("", "0.62")


def test_lines_end_as_the_standard_says() -> None:
    text = to_csv(found(hit(), bare()))
    assert text.count("\r\n") == 3
    assert text.replace("\r\n", "").isprintable()


def test_names_come_back_as_they_were_but_for_the_apostrophe() -> None:
    for name in ("id", "label", "kind", "scene", "time", "sensor", "source"):
        for row, given in zip(read(naughty()), NAUGHTY, strict=True):
            assert row[name] in (given, f"'{given}")


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_text_runs_as_a_formula(formula: str) -> None:
    row = read(found(named(formula, polygon=formula, footprint=formula)))[0]
    for name in ("id", "label", "kind", "scene", "time", "sensor", "source", "polygon", "footprint"):
        assert row[name] == f"'{formula}"


@pytest.mark.parametrize("name", ["ship", "a=b", "1-2", "'=1", "", " ", "سفينة", "_-", "2025-01-01"])
def test_other_text_is_left_alone(name: str) -> None:
    assert read(found(hit(label=name)))[0]["label"] == name


def test_numbers_stay_numbers_even_below_zero() -> None:
    text = to_csv(found(hit(score=-3.5), hit(score=-1e-9, posterior=None)))
    table = pyarrow.csv.read_csv(io.BytesIO(text.encode()))
    assert table["score"].to_pylist() == [-3.5, -1e-9]
    assert table["posterior"].to_pylist() == [0.93, None]
    assert table["background"].to_pylist() == [False, False]


def test_what_is_no_number_or_not_known_is_empty() -> None:
    odd = bare(score=math.nan, false_alarm_rate=Estimate.of_model(math.inf, "analytic"))
    (row,) = read(found(odd))
    empty = {name for name, value in row.items() if value == ""}
    assert empty == {
        "score", "posterior", "false_alarm_rate", "false_alarm_rate_low", "false_alarm_rate_high", "label",
        "kind", "kind_probability", "time", "sensor", "gsd", "polygon", "footprint",
    }  # fmt: skip


def test_nothing_found_is_a_header() -> None:
    assert read(found()) == []
    assert to_csv(found()) == to_csv(found(hit())).split("\r\n")[0] + "\r\n"


def test_a_name_that_is_no_text_can_be_written() -> None:
    assert "a\ufffd" in to_csv(found(hit(id="a\udcff"))).encode().decode()
