"""Results as plain values that every file format can hold: no NaN, no infinity, no broken text."""

from __future__ import annotations

import math
import re
from typing import Any

from lookdown.gallery.results.hit import Hit, Results
from lookdown.metrics.estimate import Estimate

__all__ = ["estimate_fields", "finite", "flat_fields", "hit_fields", "search_fields", "text"]

_SURROGATES = re.compile("[\ud800-\udfff]")


def search_fields(results: Results) -> dict[str, Any]:
    """Return every field of the results but the hits."""
    return {
        "query": text(results.query),
        "rows_searched": int(results.rows_searched),
        "metric": text(results.metric),
        "engine": text(results.engine),
        "prior": finite(results.prior),
        "requested_false_alarm_rate": finite(results.requested_false_alarm_rate),
        "threshold": estimate_fields(results.threshold),
        "expected_false_hits": estimate_fields(results.expected_false_hits),
        "accepted": int(results.accepted),
        "truncated": bool(results.truncated),
        "notes": [text(note) for note in results.notes],
    }


def hit_fields(hit: Hit) -> dict[str, Any]:
    """Return every field of a hit but its thumbnail."""
    return {
        "rank": int(hit.rank),
        "id": text(hit.id),
        "score": finite(hit.score),
        "posterior": finite(hit.posterior),
        "false_alarm_rate": estimate_fields(hit.false_alarm_rate),
        "label": text(hit.label),
        "background": bool(hit.background),
        "scene": text(hit.scene),
        "time": text(hit.time),
        "sensor": text(hit.sensor),
        "gsd": finite(hit.gsd),
        "source": text(hit.source),
        "polygon": text(hit.polygon),
        "footprint": text(hit.footprint),
        "merged": int(hit.merged),
    }


def flat_fields(hit: Hit) -> dict[str, Any]:
    """Return the same fields for formats with columns: the false-alarm rate takes five of them."""
    flat: dict[str, Any] = {}
    for name, value in hit_fields(hit).items():
        if name == "false_alarm_rate":
            rate = value or dict.fromkeys(("value", "low", "high", "method", "supported"))
            flat |= {name: rate.pop("value")} | {f"{name}_{part}": figure for part, figure in rate.items()}
        else:
            flat[name] = value
    return flat


def estimate_fields(estimate: Estimate | None) -> dict[str, Any] | None:
    """Return a figure, its interval, and what it rests on."""
    if estimate is None:
        return None
    return {
        "value": finite(estimate),
        "low": finite(estimate.low),
        "high": finite(estimate.high),
        "method": estimate.method,
        "supported": bool(estimate.supported),
    }


def finite(value: float | None) -> float | None:
    """Return a plain number, or None for NaN and infinity."""
    return float(value) if value is not None and math.isfinite(value) else None


def text(value: str | None) -> Any:
    """Return text that UTF-8 can hold; undecodable bytes of a file name become a replacement character."""
    return None if value is None else _SURROGATES.sub("\ufffd", value)
