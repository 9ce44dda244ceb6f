"""Timestamps of chips and of filters: ISO 8601 text, dates and datetimes as microseconds UTC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError

__all__ = ["TimeLike", "earliest", "format_time", "latest", "parse_time", "parse_times"]

TimeLike = str | date | np.datetime64  # a datetime is a date; without a zone it is UTC

_EPOCH = datetime(1970, 1, 1)  # of numpy
_PERIOD = re.compile(r"[0-9]{4}(-[0-9]{2}){0,2}")  # a year, a month or a day; numpy takes that as its unit
_DAY = re.compile(r"[0-9]{8}|[0-9]{4}-?W[0-9]{2}-?[0-9]")  # the other ways to write a day
_PERIOD_UNITS = ("Y", "M", "W", "D")  # of numpy; finer units count as an instant


def parse_time(text: str | None) -> np.datetime64:
    """Return the time of ISO 8601 text, the start of a day, month or year; NaT where the text is no time."""
    time = None if text is None else _parse(text)
    return np.datetime64("NaT", "us") if time is None else time.astype("datetime64[us]")


def parse_times(texts: Sequence[str | None]) -> NDArray[np.datetime64]:
    """Return `parse_time` of each text; equal texts are parsed once."""
    return np.array([*map(cache(parse_time), texts)], dtype="datetime64[us]")


def earliest(time: TimeLike, field: str) -> np.datetime64:
    """Return the first microsecond of a day, month or year, or the instant itself; errors name the `field`."""
    first: np.datetime64 = _in_own_unit(time, field).astype("datetime64[us]")
    return first


def latest(time: TimeLike, field: str) -> np.datetime64:
    """Return the last microsecond of a day, month or year, or the instant itself; errors name the `field`."""
    following = _in_own_unit(time, field) + 1  # the next day if the unit is a day, and so on
    last: np.datetime64 = following.astype("datetime64[us]") - 1
    return last


def format_time(instant: np.datetime64, *, ends: bool = False) -> str:
    """Return text for people: the day alone if the instant is its first microsecond, or with `ends` its last."""
    day = instant.astype("datetime64[D]")
    if instant == (day + ends).astype("datetime64[us]") - ends:
        return str(day)
    return str(instant).removesuffix(".000000") + "Z"


def _in_own_unit(time: TimeLike, field: str) -> np.datetime64:
    """Return a time in the unit it is given in: a year, a month, a day, or microseconds."""
    valid = isinstance(time, str | date | np.datetime64)
    if not valid or time != time:  # neither numpy's nor pandas' NaT equals itself
        raise InputError(f"{field} must be ISO 8601 text, a date or a datetime, got {time!r}")
    if isinstance(time, np.datetime64):
        return time if np.datetime_data(time.dtype)[0] in _PERIOD_UNITS else time.astype("datetime64[us]")
    if isinstance(time, datetime):
        return _utc(time)
    if isinstance(time, date):
        return np.datetime64(time, "D")
    parsed = _parse(time)
    if parsed is None:
        raise InputError(f"{field} {time[:40]!r} is not a time in ISO 8601; write 2021-12-31 or 2021-12-31T10:30Z")
    return parsed


def _parse(text: str) -> np.datetime64 | None:
    text = text.upper()  # RFC 3339 also allows t and z
    try:
        if _PERIOD.fullmatch(text):
            return np.datetime64(text)
        if _DAY.fullmatch(text):
            return np.datetime64(date.fromisoformat(text), "D")
        # Python takes any letter between the day and the hour.
        return _utc(datetime.fromisoformat(text)) if "T" in text or " " in text else None
    except ValueError:
        return None


def _utc(time: datetime) -> np.datetime64:
    # Computed as a number: a datetime cannot leave the years 1 to 9999, and a zone may move it out at either end.
    elapsed = time.replace(tzinfo=None) - _EPOCH - (time.utcoffset() or timedelta(0))
    return np.datetime64(elapsed // timedelta(microseconds=1), "us")
