"""Times of chips and of filters: ISO 8601 text, dates and datetimes as microseconds of UTC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError

__all__ = ["Moment", "Times", "earliest", "latest", "parse_time", "parse_times", "shown"]

Moment = str | date | np.datetime64  # a datetime is a date; without a zone it is UTC
Times = NDArray[np.datetime64]

_EPOCH = datetime(1970, 1, 1)  # of numpy
_PERIOD = re.compile(r"[0-9]{4}(-[0-9]{2}){0,2}")  # a year, a month or a day, which numpy reads with that as its unit
_DAY = re.compile(r"[0-9]{8}|[0-9]{4}-?W[0-9]{2}-?[0-9]")  # the other ways to write a day
_PERIODS = ("Y", "M", "W", "D")  # units of numpy that name a stretch of time; finer ones are taken for an instant


def parse_time(text: str | None) -> np.datetime64:
    """Return the time that ISO 8601 text gives, or its start if that is a day; NaT where it gives none."""
    stated = None if text is None else _read(text)
    return np.datetime64("NaT", "us") if stated is None else stated.astype("datetime64[us]")


def parse_times(texts: Sequence[str | None]) -> Times:
    """Return `parse_time` of a column; text that repeats, as the chips of a scene do, is read once."""
    return np.array([*map(cache(parse_time), texts)], dtype="datetime64[us]")


def earliest(moment: Moment, field: str) -> np.datetime64:
    """Return the first microsecond of a day, or the instant itself; `field` is what an error names."""
    first: np.datetime64 = _stated(moment, field).astype("datetime64[us]")
    return first


def latest(moment: Moment, field: str) -> np.datetime64:
    """Return the last microsecond of a day (or a month or a year, where no more is given), or the instant itself."""
    following = _stated(moment, field) + 1  # the next day if a day was given, and so on
    last: np.datetime64 = following.astype("datetime64[us]") - 1
    return last


def shown(instant: np.datetime64, *, ends: bool = False) -> str:
    """Return a time for people: the day alone where the instant begins it, or `ends` it."""
    day = instant.astype("datetime64[D]")
    if instant == (day + ends).astype("datetime64[us]") - ends:
        return str(day)
    return str(instant).removesuffix(".000000") + "Z"


def _stated(moment: Moment, field: str) -> np.datetime64:
    """Return a moment in the unit in which it was given: a year, a month, a day, or microseconds."""
    known = isinstance(moment, str | date | np.datetime64)
    if not known or moment != moment:  # neither numpy's nor pandas' NaT equals itself
        raise InputError(f"{field} must be ISO 8601 text, a date or a datetime, got {moment!r}")
    if isinstance(moment, np.datetime64):
        return moment if np.datetime_data(moment.dtype)[0] in _PERIODS else moment.astype("datetime64[us]")
    if isinstance(moment, datetime):
        return _utc(moment)
    if isinstance(moment, date):
        return np.datetime64(moment, "D")
    stated = _read(moment)
    if stated is None:
        raise InputError(f"{field} {moment[:40]!r} is not a time in ISO 8601; write 2021-12-31 or 2021-12-31T10:30Z")
    return stated


def _read(text: str) -> np.datetime64 | None:
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


def _utc(moment: datetime) -> np.datetime64:
    # As a number, since a datetime cannot leave the years 1 to 9999, which a zone may do at either end.
    elapsed = moment.replace(tzinfo=None) - _EPOCH - (moment.utcoffset() or timedelta(0))
    return np.datetime64(elapsed // timedelta(microseconds=1), "us")
