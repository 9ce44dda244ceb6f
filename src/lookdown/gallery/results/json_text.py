"""Results as JSON, for programs."""

from __future__ import annotations

import base64
import json
from typing import Any

from lookdown.gallery.results.hit import Hit, Results
from lookdown.gallery.results.plain_values import estimate_record, flat_rows, search_record, text

__all__ = ["to_json"]


def to_json(results: Results, *, thumbnails: bool = False) -> str:
    """Return everything but the pictures, or those too, as base64 of a JPEG; a figure that is no number is null."""
    hits = [_record(hit, row) for hit, row in zip(results.hits, flat_rows(results), strict=True)]
    if thumbnails:
        for hit, record in zip(results.hits, hits, strict=True):
            record["thumbnail"] = base64.b64encode(hit.thumbnail).decode()
    search = search_record(results)
    return json.dumps({"query": search.pop("query"), "results": hits, **search}, ensure_ascii=False, allow_nan=False)


def _record(hit: Hit, row: dict[str, Any]) -> dict[str, Any]:
    """Return a hit with its false-alarm rate in one piece; the rank is the place in the list."""
    kept = {name: value for name, value in row.items() if name != "rank" and not name.startswith("false_alarm_")}
    return kept | {"false_alarm_rate": estimate_record(hit.false_alarm_rate), "footprint": text(hit.footprint)}
