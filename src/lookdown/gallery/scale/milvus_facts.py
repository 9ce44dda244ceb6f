"""What filters look at, as numbers that a Milvus server keeps beside each vector, and filters as terms over them.

No text of a user stands in a term: texts go by numbers that are made of them, the same in every process and version of
the table. Two texts with one number would let a few rows too many through, which the engine drops by the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.gallery.search.region import Box
from lookdown.gallery.search.where import Where
from lookdown.gallery.store.snapshot import CategoricalColumn, FilterColumns
from lookdown.gallery.store.timestamps import earliest, latest

__all__ = ["FACTS", "Facts", "facts_of", "stamps_of", "term_of"]

Facts = dict[str, NDArray[Any]]  # a column each, a row a chip

FACTS = {"label": "INT64", "scene": "INT64", "sensor": "INT64", "time": "INT64", "background": "BOOL",
         "west": "DOUBLE", "south": "DOUBLE", "east": "DOUBLE", "north": "DOUBLE"}  # fmt: skip
_NO_TEXT = -1
_NO_TIME = -(1 << 62)  # microseconds; no chip is so old
_NOWHERE = (1e9, 1e9, -1e9, -1e9)  # a box that meets none
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplying by it loses nothing


def facts_of(columns: FilterColumns) -> Facts:
    """Return the columns as numbers."""
    times = columns.times.astype("datetime64[us]")
    known = ~np.isnan(columns.bounds)
    bounds = np.where(known.all(axis=1, keepdims=True), columns.bounds, _NOWHERE)
    return {
        "label": _numbers(columns.labels),
        "scene": _numbers(columns.scenes),
        "sensor": _numbers(columns.sensors),
        "time": np.where(np.isnat(times), _NO_TIME, times.astype(np.int64)),
        "background": columns.background,
        **dict(zip(("west", "south", "east", "north"), bounds.T, strict=True)),
    }


def stamps_of(facts: Facts) -> NDArray[np.int64]:
    """Return a number a row that changes with any fact of it, so that what a server has can be told to be old."""
    stamps = np.zeros(len(facts["label"]), np.uint64)
    for column in facts.values():
        wide = column.astype(np.float64 if column.dtype.kind == "f" else np.int64).view(np.uint64)
        stamps = (stamps ^ wide) * _FACTOR
        stamps ^= stamps >> np.uint64(29)
    return stamps.view(np.int64)


def term_of(where: Where) -> str:
    """Return a term that is true of every row that the filter keeps, and of few others."""
    return " and ".join(_conditions(where)) or f"time >= {_NO_TIME}"


def _conditions(where: Where) -> Iterator[str]:
    for field, texts in (("label", where.label), ("scene", where.scene), ("sensor", where.sensor)):
        if texts is not None:
            yield f"{field} in [{', '.join(str(_number(text)) for text in texts)}]"
    if where.labelled is not None:
        yield f"label {'!=' if where.labelled else '=='} {_NO_TEXT}"
    if where.background is not None:
        yield f"background == {'true' if where.background else 'false'}"
    if where.since is not None or where.until is not None:
        yield f"time > {_NO_TIME}"
    if where.since is not None:
        yield f"time >= {int(earliest(where.since, 'since').astype(np.int64))}"
    if where.until is not None:
        yield f"time <= {int(latest(where.until, 'until').astype(np.int64))}"
    for region in where.regions():
        yield f"({' or '.join(_meets(box) for box in region.boxes())})"


def _meets(box: Box) -> str:
    west, south, east, north = (float(edge) for edge in box)
    return f"(west <= {east!r} and east >= {west!r} and south <= {north!r} and north >= {south!r})"


def _numbers(codes: CategoricalColumn) -> NDArray[np.int64]:
    known = np.array([*map(_number, codes.values), _NO_TEXT], np.int64)  # the last is what -1 finds
    return known[codes.codes]


def _number(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # not negative, as the number of no text is
