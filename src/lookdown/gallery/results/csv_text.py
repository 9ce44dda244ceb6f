"""Results as CSV (RFC 4180), for spreadsheets."""

from __future__ import annotations

import csv
import io
import unicodedata
from typing import Any

from lookdown.gallery.results.hit import Results
from lookdown.gallery.results.plain_values import flat_rows, text

__all__ = ["to_csv"]

_COLUMNS = (
    "rank", "id", "score", "posterior", "false_alarm_rate", "false_alarm_low", "false_alarm_high",
    "false_alarm_method", "false_alarm_supported", "label", "background", "scene", "time", "sensor", "gsd", "source",
    "polygon", "footprint", "merged",
)  # fmt: skip
_FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"  # some programs take the four wide signs for the narrow ones


def to_csv(results: Results) -> str:
    """Return a line a hit below the names of the columns; what is not known is empty.

    Text that a spreadsheet would run as a formula has an apostrophe in front: names come from strangers.
    """
    lines = io.StringIO()
    writer = csv.DictWriter(lines, _COLUMNS)
    writer.writeheader()
    for hit, row in zip(results.hits, flat_rows(results), strict=True):
        writer.writerow({name: _cell(value) for name, value in (row | {"footprint": text(hit.footprint)}).items()})
    return lines.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and _runs(value) else value


def _runs(cell: str) -> bool:
    """Whether a spreadsheet may take text for a formula: it may drop spaces and invisible signs in front first."""
    if cell.startswith(("\t", "\r", "\n")):
        return True
    signs = (sign for sign in cell if not sign.isspace() and unicodedata.category(sign) not in ("Cc", "Cf"))
    return next(signs, " ") in _FORMULA
