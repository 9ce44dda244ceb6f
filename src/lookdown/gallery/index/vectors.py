"""Chips that come with their vectors, into the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lookdown.errors import InputError
from lookdown.gallery.index.sources import Row
from lookdown.gallery.index.writer import AddReport, ChipRegistry, as_text
from lookdown.gallery.store.table import ChipTable
from lookdown.gallery.store.timestamps import parse_time

__all__ = ["add_vectors"]

_STEP_VECTORS = 65_536  # vectors that are added in one step
_TYPES: dict[str, Any] = {
    **dict.fromkeys(("id", "source", "scene", "scene_group", "polygon", "footprint", "time", "sensor", "label"), str),
    "gsd": int | float | np.number,
    "background": bool | np.bool_,
    "thumbnail": bytes,
}


def add_vectors(records: ChipTable, rows: Sequence[Row], embeddings: ArrayLike, dimension: int) -> AddReport:
    """Add chips that come with their vectors and are not in the table."""
    vectors = np.asarray(embeddings, np.float32)
    if vectors.shape != (len(rows), dimension):
        raise InputError(f"embeddings must be ({len(rows)}, {dimension}), one row for each chip; got {vectors.shape}")
    if not (np.isfinite(vectors).all() and (np.linalg.norm(vectors, axis=1) > 0).all()):
        raise InputError("embeddings must be finite and not zero")
    registry = ChipRegistry(records)
    complete = [_completed(row, number) for number, row in enumerate(rows)]
    new = [number for number, row in enumerate(complete) if registry.add_id(row)]
    for begin in range(0, len(new), _STEP_VECTORS):
        step = new[begin : begin + _STEP_VECTORS]
        records.append([complete[number] for number in step], vectors[step], first_key=registry.next_key)
        registry.next_key += len(step)
    if new:
        records.tidy()
    return AddReport(added=len(new), present=len(rows) - len(new))


def _completed(row: Row, number: int) -> Row:
    """Return the row of a chip that comes with its vector, with defaults for what it lacks."""
    if not (isinstance(row.get("id"), str) and row["id"]):
        raise InputError(f"row {number} has no id; give each chip an id of its own")
    for name, kind in _TYPES.items():
        if row.get(name) is not None and not isinstance(row[name], kind):
            raise InputError(f"row {number} ({row['id']}): {name} is {row[name]!r}; it must be of type {kind}")
        if isinstance(row.get(name), str) and as_text(row[name]) != row[name]:
            raise InputError(f"row {number} ({as_text(row['id'])}): {name} is no Unicode text")
    if row.get("time") is not None and np.isnat(parse_time(row["time"])):
        raise InputError(f"row {number} ({row['id']}): time {row['time']!r} is not ISO 8601")
    scene = row.get("scene") or row["id"]
    defaults = {"source": "", "scene": scene, "scene_group": scene, "background": False, "thumbnail": b""}
    return defaults | {name: value for name, value in row.items() if value is not None}
