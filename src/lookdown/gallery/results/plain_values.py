"""Results as plain values that every file format can hold: no NaN, no infinity, no broken text."""

from __future__ import annotations

import math
from typing import Any

from lookdown.gallery.results.hit import Results
from lookdown.gallery.results.plain_text import valid
from lookdown.metrics.estimate import Estimate

__all__ = ["estimate_record", "finite", "flat_rows", "search_record", "text"]


def search_record(results: Results) -> dict[str, Any]:
    """Return what the search was, apart from its hits."""
    return {
        "query": valid(results.query),
        "rows_searched": int(results.rows),
        "metric": valid(results.metric),
        "engine": valid(results.engine),
        "prior": finite(results.prior),
        "requested_false_alarm_rate": finite(results.requested_rate),
        "threshold": estimate_record(results.threshold),
        "expected_false_hits": estimate_record(results.expected_false_hits),
        "notes": [valid(note) for note in results.notes],
    }


def flat_rows(results: Results) -> list[dict[str, Any]]:
    """Return a row a hit, of numbers, flags and text only, for formats that know columns; the same keys in each."""
    rows = []
    for rank, hit in enumerate(results.hits, 1):
        rate = hit.false_alarm_rate
        rows.append({
            "rank": rank,
            "id": valid(hit.id),
            "score": finite(hit.score),
            "posterior": finite(hit.posterior),
            "false_alarm_rate": finite(rate),
            "false_alarm_low": None if rate is None else finite(rate.low),
            "false_alarm_high": None if rate is None else finite(rate.high),
            "false_alarm_method": None if rate is None else rate.method,
            "false_alarm_supported": None if rate is None else bool(rate.supported),
            "label": text(hit.label),
            "background": bool(hit.background),
            "scene": valid(hit.scene),
            "time": text(hit.time),
            "sensor": text(hit.sensor),
            "gsd": finite(hit.gsd),
            "source": valid(hit.source),
            "polygon": text(hit.polygon),
            "merged": int(hit.merged),
        })  # fmt: skip
    return rows


def estimate_record(estimate: Estimate | None) -> dict[str, Any] | None:
    """Return a figure with what is known about it."""
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
    """Return a plain number, None where it is none."""
    return float(value) if value is not None and math.isfinite(value) else None


def text(value: str | None) -> str | None:
    """Return text that a file can hold, None where there is none."""
    return None if value is None else valid(value)
