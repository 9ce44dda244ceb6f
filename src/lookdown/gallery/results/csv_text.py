"""Results as CSV (RFC 4180), for spreadsheets."""

from __future__ import annotations

import csv
import io
import unicodedata
from typing import Any

from lookdown.gallery.results.hit import FLAT_NAMES, Results, flat_fields

__all__ = ["to_csv"]

_FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"  # some programs read the four full-width signs as the plain ones


def to_csv(results: Results) -> str:
    """Return a header and a line per hit; an unknown value is empty.

    Text that a spreadsheet would run as a formula gets an apostrophe in front, since names come from strangers.
    """
    lines = io.StringIO()
    writer = csv.DictWriter(lines, FLAT_NAMES)
    writer.writeheader()
    for hit in results.hits:
        writer.writerow({name: _cell(value) for name, value in flat_fields(hit).items()})
    return lines.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and _is_formula(value) else value


def _is_formula(cell: str) -> bool:
    """Whether a spreadsheet may run the text; it may first drop spaces and invisible characters in front."""
    if cell.startswith(("\t", "\r", "\n")):
        return True
    signs = (sign for sign in cell if not sign.isspace() and unicodedata.category(sign) not in ("Cc", "Cf"))
    return next(signs, " ") in _FORMULA
