"""Times: every way of ISO 8601 to write one gives the same instant, and what is not a time is said or left out."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from lookdown.errors import InputError
from lookdown.gallery.store.timestamps import TimeLike, earliest, format_time, latest, parse_time, parse_times


def instant(text: str) -> np.datetime64:
    return np.datetime64(text, "us")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2021-07-04T10:30:00Z", "2021-07-04T10:30:00"),
        ("2021-07-04t10:30:00z", "2021-07-04T10:30:00"),
        ("2021-07-04 10:30", "2021-07-04T10:30:00"),
        ("2021-07-04T10", "2021-07-04T10:00:00"),
        ("20210704T103000,25+0530", "2021-07-04T05:00:00.25"),
        ("2021-07-04T10:30:00.123456789-08:00", "2021-07-04T18:30:00.123456"),
        ("2021-07-04", "2021-07-04"),
        ("20210704", "2021-07-04"),
        ("2021-W26-7", "2021-07-04"),
        ("2021W267T12:00Z", "2021-07-04T12:00:00"),
        ("2021-07", "2021-07-01"),
        ("2021", "2021-01-01"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999"),
        ("0001-01-01T00:00+05:00", "0000-12-31T19:00:00"),
        ("9999-12-31T23:00-05:00", "10000-01-01T04:00:00"),
    ],
)
def test_iso_8601_is_read(text: str, expected: str) -> None:
    found = parse_time(text)
    assert found == instant(expected)
    assert found.dtype == np.dtype("datetime64[us]")


@pytest.mark.parametrize(
    "text",
    [
        None, "", " ", "now", "today", "NaT", "nan", "0", "12", "2021-13", "2021-02-30", "2021-7-4", "04/07/2021",
        "2021-07-04T25:00", "2021-07-04T10:30+25:00", "2021-07-04x10:30", "2021-W27", "٢٠٢١-07-04", "2021-07-04\n",
        "' OR 1=1 --", "\ud800", "🛰", "-2021-01-01", "2021-07-04T",
    ],
)  # fmt: skip
def test_what_is_no_time_is_not_one(text: str | None) -> None:
    assert np.isnat(parse_time(text))
    if text is not None:
        with pytest.raises(InputError, match=r"since .* is not a time in ISO 8601; write 2021-12-31"):
            earliest(text, "since")


def test_a_column_is_read_as_its_texts_are() -> None:
    texts = ["2021-07-04T10:30Z", None, "noon", "2021-07-04T12:30+02:00", "2021-07-04T10:30Z", "2021"]
    found = parse_times(texts)
    assert found.dtype == np.dtype("datetime64[us]")
    np.testing.assert_array_equal(found, np.array([parse_time(text) for text in texts]))
    assert found[0] == found[3] == found[4]
    assert parse_times([]).dtype == found.dtype


def test_text_that_repeats_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str | None] = []

    def noted(text: str | None) -> np.datetime64:
        read.append(text)
        return parse_time(text)

    monkeypatch.setattr("lookdown.gallery.store.timestamps.parse_time", noted)
    parse_times(["2021", None, "2022", "2021", None] * 100)
    assert read == ["2021", None, "2022"]


def test_any_time_in_any_zone_comes_back() -> None:
    random.seed(0)
    for _ in range(2000):
        zone = timezone(timedelta(minutes=random.randint(-14 * 60, 14 * 60)))
        time = datetime(1960, 1, 1, tzinfo=UTC) + timedelta(microseconds=random.randrange(10**15, 3 * 10**15))
        expected = (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        for moment in (time, time.astimezone(zone), time.replace(tzinfo=None)):
            assert earliest(moment, "since").astype(np.int64) == expected
            assert parse_time(moment.isoformat(sep=random.choice("T "))).astype(np.int64) == expected


@pytest.mark.parametrize(
    ("moment", "first", "last"),
    [
        ("2021-12-31", "2021-12-31", "2021-12-31T23:59:59.999999"),
        ("20211231", "2021-12-31", "2021-12-31T23:59:59.999999"),
        (date(2021, 12, 31), "2021-12-31", "2021-12-31T23:59:59.999999"),
        (np.datetime64("2021-12-31"), "2021-12-31", "2021-12-31T23:59:59.999999"),
        (date.max, "9999-12-31", "9999-12-31T23:59:59.999999"),
        ("2020-02", "2020-02-01", "2020-02-29T23:59:59.999999"),
        ("2021", "2021-01-01", "2021-12-31T23:59:59.999999"),
        ("2021-12-31T00:00", "2021-12-31", "2021-12-31"),
        (datetime(2021, 12, 31), "2021-12-31", "2021-12-31"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=5))), "0000-12-31T19:00", "0000-12-31T19:00"),
        (np.datetime64("2021-12-31T10", "h"), "2021-12-31T10:00", "2021-12-31T10:00"),
        (np.datetime64("2021-12-31T10:00:00.000000999", "ns"), "2021-12-31T10:00", "2021-12-31T10:00"),
    ],
)
def test_a_day_lasts_to_its_end_and_an_instant_does_not(moment: TimeLike, first: str, last: str) -> None:
    assert earliest(moment, "since") == instant(first)
    assert latest(moment, "until") == instant(last)
    for settled in (earliest(moment, "since"), latest(moment, "until")):
        assert earliest(settled, "since") == latest(settled, "until") == settled


@pytest.mark.parametrize("moment", [5, True, 1.6e9, b"2021", ["2021"], np.datetime64("NaT"), timedelta(1), object()])
def test_what_cannot_be_a_time_is_refused_by_the_name_of_its_field(moment: Any) -> None:
    with pytest.raises(InputError, match=r"^until must be ISO 8601 text, a date or a datetime, got "):
        latest(moment, "until")


@pytest.mark.parametrize(
    ("text", "ends", "expected"),
    [
        ("2021-12-31", False, "2021-12-31"),
        ("2021-12-31", True, "2021-12-31T00:00:00Z"),
        ("2021-12-31T23:59:59.999999", True, "2021-12-31"),
        ("2021-12-31T23:59:59.999999", False, "2021-12-31T23:59:59.999999Z"),
        ("1969-12-31T23:59:59.999999", True, "1969-12-31"),
        ("2021-12-31T10:30:00", False, "2021-12-31T10:30:00Z"),
    ],
)
def test_a_time_is_shown_as_a_day_where_it_is_one(text: str, ends: bool, expected: str) -> None:
    assert format_time(instant(text), ends=ends) == expected
    assert (latest if ends else earliest)(expected, "time") == instant(text)
