"""Results to write: ordinary ones, and names that try to be more than names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lookdown.gallery.results.hit import Hit, Results
from lookdown.metrics.estimate import Estimate

JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffd9")
NAUGHTY = (
    "<script>alert(1)</script>",
    '"onload="alert(1)',
    "' onclick='alert(1)",
    "--></style><img src=x onerror=alert(1)>",
    "&lt;b&gt; &amp;",
    '=HYPERLINK("http://evil.example","click")',
    "  =1+1",
    "+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "[red]not red[/red]",
    "[/]",
    "{0.__class__}",
    "%s %n",
    'a,b;"c"',
    "two\nlines\r\nand three",
    "\x1b[31mred\x1b[0m\x07",
    "nul\x00byte",
    "سفينة שלום",
    "\u202egpj.exe",
    "🚢👩\u200d🚀",
    "フェリー船",
    "e\u0301" * 40,
    "line\u2028separator",
    "null",
    "NaN",
    "",
    " ",
    "x" * 500,
)
SQUARE = "POLYGON ((10 50, 10.001 50, 10.001 50.001, 10 50.001, 10 50))"


def measured(value: float, *, supported: bool = True, spread: float = 2.0) -> Estimate:
    return Estimate(value, method="empirical", low=value / spread, high=value * spread, supported=supported)


def hit(**changes: Any) -> Hit:
    values: dict[str, Any] = {
        "rank": 1,
        "id": "harbour-001-00037",
        "score": 4.25,
        "posterior": 0.93,
        "false_alarm_rate": measured(0.001),
        "label": "cargo ship",
        "background": False,
        "scene": "harbour-001",
        "time": "2025-03-04T10:12:00Z",
        "sensor": "Sentinel-2",
        "gsd": 10.0,
        "source": "archive/harbour-001.tif",
        "polygon": "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0))",
        "footprint": SQUARE,
        "thumbnail": JPEG,
    }
    return Hit(**(values | changes))


def bare(**changes: Any) -> Hit:
    """A hit of which nothing is known that need not be."""
    nothing = ("posterior", "false_alarm_rate", "label", "time", "sensor", "gsd", "polygon", "footprint")
    return hit(**(dict.fromkeys(nothing) | {"thumbnail": b""} | changes))


def found(*hits: Hit, **changes: Any) -> Results:
    values: dict[str, Any] = {
        "query": "ship.jpg",
        "hits": tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits, 1)),
        "rows_searched": 3200,
        "metric": "glrt",
        "engine": "exact",
        "prior": 0.001,
        "requested_false_alarm_rate": None,
        "threshold": None,
        "expected_false_hits": measured(0.4),
        "accepted": len(hits),
    }
    return Results(**(values | changes))


def named(name: str, **changes: Any) -> Hit:
    """A hit that bears a name wherever it can."""
    names = dict.fromkeys(("id", "label", "kind", "scene", "time", "sensor", "source"), name)
    return hit(**(names | {"kind_probability": 0.8} | changes))


def naughty() -> Results:
    """A search in which every name that a user or a file may give is one of the naughty ones."""
    everywhere = " ".join(NAUGHTY)
    hits = tuple(named(name) for name in NAUGHTY)
    return found(*hits, query=everywhere, metric=everywhere, engine=everywhere, notes=NAUGHTY)
