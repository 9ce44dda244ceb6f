"""What a gallery holds, counted."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lookdown.gallery.store.records import Snapshot

__all__ = ["Stats", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What a gallery holds."""

    chips: int
    labelled: int
    marked: int  # label or background said in the gallery
    background: int
    classes: int
    scenes: int
    placed: int  # with a place on Earth
    first_time: str | None
    last_time: str | None
    sensors: tuple[str, ...]
    dimension: int
    embedder: str | None  # its fingerprint
    metric: str
    table: str  # where it is: a path, or s3://bucket/name
    bytes_on_disk: int  # of the folder; a table in a bucket is not among them


def count(snapshot: Snapshot, folder: Path, *, embedder: str | None, metric: str, table: str) -> Stats:
    """Count what the table holds, and the bytes of the folder."""
    columns = snapshot.columns
    times = columns.times[~np.isnat(columns.times)]
    return Stats(
        chips=len(snapshot),
        labelled=int((columns.labels.codes >= 0).sum()),
        marked=int(snapshot.marked.sum()),
        background=int(columns.background.sum()),
        classes=len(columns.labels.values),
        scenes=len(columns.scenes.values),
        placed=int(np.isfinite(columns.bounds[:, 0]).sum()),
        first_time=str(times.min()) if len(times) else None,
        last_time=str(times.max()) if len(times) else None,
        sensors=columns.sensors.values,
        dimension=snapshot.dimension,
        embedder=embedder,
        metric=metric,
        table=table,
        bytes_on_disk=_bytes(folder),
    )


def _bytes(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # a writer tidies up meanwhile
                total += Path(place, name).stat().st_size
    return total
