"""Which chips of a gallery to search, as a typed value: no text of a user reaches an engine's language."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.gallery.search.region import Region
from lookdown.gallery.store.snapshot import FilterColumns
from lookdown.gallery.store.timestamps import TimeLike, earliest, format_time, latest

__all__ = ["Where"]

_SHOWN = 5  # texts of a condition that are told one by one
_WORD = re.compile(r"(?!or$)[\w./:+-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Conditions that a chip must meet, all of them; several texts in one condition are alternatives.

    A condition that is None asks for nothing. Text is compared as it is. Once built, texts are a tuple, times are
    microseconds of UTC and `within` is a `Region`; a chip without a time or a footprint never meets a condition on it.
    """

    label: str | Collection[str] | None = None
    labelled: bool | None = None  # with a label, or without
    background: bool | None = None
    scene: str | Collection[str] | None = None
    sensor: str | Collection[str] | None = None
    since: TimeLike | None = None  # inclusive, as is `until`; without a zone it is UTC
    until: TimeLike | None = None  # a day, a month or a year is included to its end
    within: Any = None  # a footprint meets it: (west, south, east, north) in degrees, WKT or a polygon of shapely

    def __post_init__(self) -> None:
        for field in ("label", "scene", "sensor"):
            self._settle(field, _texts)
        for field in ("labelled", "background"):
            self._settle(field, _flag)
        self._settle("since", earliest)
        self._settle("until", latest)
        self._settle("within", Region.of)
        if self.since is not None and self.until is not None:
            _check_order(earliest(self.since, "since"), latest(self.until, "until"))

    @property
    def everything(self) -> bool:
        """Whether there is no condition at all."""
        return all(getattr(self, field.name) is None for field in fields(self))

    def rows(self, columns: FilterColumns) -> NDArray[np.bool_]:
        """Return which rows meet the conditions."""
        keep = np.ones(len(columns), dtype=np.bool_)
        texts = ((self.label, columns.labels), (self.scene, columns.scenes), (self.sensor, columns.sensors))
        for wanted, codes in texts:
            if wanted is not None:
                keep &= codes.is_in(wanted)
        if self.labelled is not None:
            keep &= (columns.labels.codes >= 0) == self.labelled
        if self.background is not None:
            keep &= columns.background == self.background
        if self.since is not None:
            keep &= columns.times >= earliest(self.since, "since")
        if self.until is not None:
            keep &= columns.times <= latest(self.until, "until")
        return keep if self.within is None else Region.of(self.within).rows(columns, among=keep)

    def describe(self) -> str:
        """Return the conditions in words, on one line."""
        told = [
            f"{field} {_alternatives(wanted)}"
            for field, wanted in (("label", self.label), ("scene", self.scene), ("sensor", self.sensor))
            if wanted is not None
        ]
        if self.labelled is not None:
            told.append("with a label" if self.labelled else "without a label")
        if self.background is not None:
            told.append("background only" if self.background else "no background")
        if self.since is not None or self.until is not None:
            since = "" if self.since is None else f"from {format_time(earliest(self.since, 'since'))} "
            until = "" if self.until is None else f"until {format_time(latest(self.until, 'until'), ends=True)}"
            told.append((since + until).strip())
        if self.within is not None:
            told.append(f"within {self.within}")
        return ", ".join(told) or "every chip"

    def _settle(self, field: str, read: Callable[[Any, str], object]) -> None:
        """Put a condition into the form in which it is compared, so that equal ones are equal however given."""
        value = getattr(self, field)
        if value is not None:
            object.__setattr__(self, field, read(value, field))


def _texts(value: Any, field: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Mapping) or not isinstance(value, Collection):
        raise InputError(f"{field} must be text or a list of texts, got {value!r:.60}")
    for text in value:
        if not isinstance(text, str):
            raise InputError(f"{field} must be text or a list of texts, but the list holds {text!r:.60}")
    return tuple(dict.fromkeys(sorted(value) if isinstance(value, Set) else value))  # a set has an order of its own


def _flag(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{field} must be True, False or None, got {value!r:.60}")
    return value


def _check_order(since: np.datetime64, until: np.datetime64) -> None:
    if since > until:
        raise InputError(
            f"since {format_time(since)} is after until {format_time(until, ends=True)}; swap them, or omit one"
        )


def _alternatives(texts: Collection[str]) -> str:
    told = [_quoted(text) for text in [*texts][:_SHOWN]]
    more = [f"{len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return " or ".join(told + more) or "out of none"


def _quoted(text: str) -> str:
    """Return a word as it is, other text between quotes with what cannot be printed escaped."""
    if _WORD.fullmatch(text):
        return text
    printed = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return "'" + printed.replace("'", "''") + "'"
