"""Which chips of a gallery to search, as a typed value: a user's text never becomes part of an engine's language."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.gallery.search.region import Region
from lookdown.gallery.store.snapshot import FilterColumns
from lookdown.gallery.store.timestamps import TimeLike, earliest, format_time, latest

__all__ = ["Where"]

_LISTED_TEXTS = 5  # of a condition; the others are counted
_WORD = re.compile(r"(?!or$)[\w./:+-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Which chips to search: all conditions must hold, and several texts in one condition are alternatives.

    A condition that is None is not checked. A chip without a time or a footprint never meets a condition on it.

    label: of the chip.
    labelled: True for chips with a label, False for those without.
    background: True for chips that are known to show no object, False for all others.
    scene, sensor: that the chip comes from.
    since, until: ISO 8601 or datetime, both inclusive, in UTC unless they say otherwise. A day, month or year as
        `until` is included to its end.
    box: (west, south, east, north) in degrees, or such text; it meets the footprint, if only in a point. West may be
        beyond east: the box then crosses the date line.
    polygon: the same for a polygon: WKT in degrees, or a Polygon or MultiPolygon of shapely.

    >>> from lookdown import Where
    >>> print(Where(sensor=["Sentinel-2", "Landsat 9"], since="2025-03", box=(3.9, 51.8, 4.6, 52.2)).describe())
    sensor Sentinel-2 or 'Landsat 9', from 2025-03-01, within the box from 3.9 51.8 to 4.6 52.2
    """

    label: str | Collection[str] | None = None
    labelled: bool | None = None
    background: bool | None = None
    scene: str | Collection[str] | None = None
    sensor: str | Collection[str] | None = None
    since: TimeLike | None = None
    until: TimeLike | None = None
    box: str | Sequence[float] | Region | None = None
    polygon: Any = None

    def __post_init__(self) -> None:
        readers: dict[str, Callable[[Any, str], object]] = {
            **dict.fromkeys(("label", "scene", "sensor"), _texts),
            **dict.fromkeys(("labelled", "background"), _flag),
            **{"since": earliest, "until": latest, "box": Region.of_box, "polygon": Region.of_polygon},
        }
        for field, read in readers.items():
            value = getattr(self, field)
            if value is not None:  # in the form that is compared, so that equal conditions are equal in whatever form
                object.__setattr__(self, field, read(value, field))
        if self.since is not None and self.until is not None:
            since, until = earliest(self.since, "since"), latest(self.until, "until")
            if since > until:
                raise InputError(
                    f"`since` {format_time(since)} is after `until` {format_time(until, ends=True)}; exchange them, or "
                    "omit one"
                )

    @property
    def everything(self) -> bool:
        """Whether there is no condition at all."""
        return all(getattr(self, field.name) is None for field in fields(self))

    def rows(self, columns: FilterColumns) -> NDArray[np.bool_]:
        """Return which rows meet the conditions."""
        keep = np.ones(len(columns), dtype=np.bool_)
        texts = ((self.label, columns.labels), (self.scene, columns.scenes), (self.sensor, columns.sensors))
        for wanted, column in texts:
            if wanted is not None:
                keep &= column.is_in(wanted)
        if self.labelled is not None:
            keep &= (columns.labels.codes >= 0) == self.labelled
        if self.background is not None:
            keep &= columns.background == self.background
        if self.since is not None:
            keep &= columns.times >= earliest(self.since, "since")
        if self.until is not None:
            keep &= columns.times <= latest(self.until, "until")
        for region in self.regions():
            keep = region.rows(columns, among=keep)
        return keep

    def regions(self) -> list[Region]:
        """Return the box and the polygon, those of them that are given."""
        return [region for region in (self.box, self.polygon) if isinstance(region, Region)]

    def describe(self) -> str:
        """Return the conditions in words, on one line."""
        conditions = [
            f"{field} {_alternatives(wanted)}"
            for field, wanted in (("label", self.label), ("scene", self.scene), ("sensor", self.sensor))
            if wanted is not None
        ]
        if self.labelled is not None:
            conditions.append("with a label" if self.labelled else "without a label")
        if self.background is not None:
            conditions.append("background only" if self.background else "no background")
        if self.since is not None or self.until is not None:
            since = "" if self.since is None else f"from {format_time(earliest(self.since, 'since'))} "
            until = "" if self.until is None else f"until {format_time(latest(self.until, 'until'), ends=True)}"
            conditions.append((since + until).strip())
        conditions += [f"within {region}" for region in self.regions()]
        return ", ".join(conditions) or "every chip"


def _texts(value: Any, field: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Mapping) or not isinstance(value, Collection):
        raise InputError(f"`{field}` must be text or a list of texts, got {value!r:.60}")
    for text in value:
        if not isinstance(text, str):
            raise InputError(f"`{field}` must be text or a list of texts, but the list holds {text!r:.60}")
    return tuple(dict.fromkeys(sorted(value) if isinstance(value, Set) else value))  # a set has an order of its own


def _flag(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"`{field}` must be True, False or None, got {value!r:.60}")
    return value


def _alternatives(texts: Collection[str]) -> str:
    listed = [_quoted(text) for text in [*texts][:_LISTED_TEXTS]]
    more = [f"{len(texts) - _LISTED_TEXTS} more"] if len(texts) > _LISTED_TEXTS else []
    return " or ".join(listed + more) or "out of none"


def _quoted(text: str) -> str:
    """Return a word as it is, and other text in quotes, with unprintable characters escaped."""
    if _WORD.fullmatch(text):
        return text
    printed = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return "'" + printed.replace("'", "''") + "'"
