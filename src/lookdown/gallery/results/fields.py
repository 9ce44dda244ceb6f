"""Results as plain values that every file format can hold: no NaN, no infinity, no broken text."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from typing import Any

import numpy as np

from lookdown.gallery.results.hit import Hit, Results
from lookdown.metrics.estimate import Estimate

__all__ = ["FLAT_NAMES", "estimate_fields", "finite", "flat_fields", "hit_fields", "search_fields", "text"]

_SURROGATES = re.compile("[\ud800-\udfff]")
_RATE, _PARTS = "false_alarm_rate", ("value", "low", "high", "method", "supported")
_RATE_NAMES = [_RATE, *(f"{_RATE}_{part}" for part in _PARTS[1:])]
_HIT_NAMES = [field.name for field in fields(Hit) if field.name != "thumbnail"]
FLAT_NAMES = [flat for name in _HIT_NAMES for flat in (_RATE_NAMES if name == _RATE else [name])]


def search_fields(results: Results) -> dict[str, Any]:
    """Return every field of the results but the hits."""
    names = [field.name for field in fields(Results) if field.name != "hits"]
    return {name: _plain(getattr(results, name)) for name in [*names, "truncated"]}


def hit_fields(hit: Hit) -> dict[str, Any]:
    """Return every field of a hit but its thumbnail."""
    return {name: _plain(getattr(hit, name)) for name in _HIT_NAMES}


def flat_fields(hit: Hit) -> dict[str, Any]:
    """Return the same fields for formats with columns: the false-alarm rate takes five of them."""
    plain = hit_fields(hit)
    rate = plain.pop(_RATE) or dict.fromkeys(_PARTS)
    plain |= {name: rate[part] for name, part in zip(_RATE_NAMES, _PARTS, strict=True)}
    return {name: plain[name] for name in FLAT_NAMES}


def estimate_fields(estimate: Estimate | None) -> dict[str, Any] | None:
    """Return a figure, its interval, and what it rests on."""
    if estimate is None:
        return None
    figures = {"value": finite(estimate), "low": finite(estimate.low), "high": finite(estimate.high)}
    return {**figures, "method": estimate.method, "supported": bool(estimate.supported)}


def finite(value: float | None) -> float | None:
    """Return a plain number, or None for NaN and infinity."""
    return float(value) if value is not None and math.isfinite(value) else None


def text(value: str | None) -> Any:
    """Return text that UTF-8 can hold; undecodable bytes of a file name become a replacement character."""
    return None if value is None else _SURROGATES.sub("\ufffd", value)


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return estimate_fields(value)
    if isinstance(value, float | np.floating):
        return finite(float(value))
    if isinstance(value, str):
        return text(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
