"""The numbers that describe a gallery."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lookdown.gallery.store.snapshot import Snapshot

__all__ = ["GalleryStats", "gallery_stats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryStats:
    """What a gallery holds."""

    chips: int
    labelled: int
    marked: int  # label or background set by a user of the gallery
    background: int
    classes: int
    scenes: int
    placed: int  # with a footprint on Earth
    first_time: str | None
    last_time: str | None
    sensors: tuple[str, ...]
    dimension: int
    embedder: str | None  # its fingerprint
    metric: str
    table: str  # a path, or s3://bucket/name/...
    bytes_on_disk: int  # of the folder, without a table in a bucket


def gallery_stats(snapshot: Snapshot, folder: Path, *, embedder: str | None, metric: str, table: str) -> GalleryStats:
    """Count the rows of the table by what they hold, and the bytes of the folder."""
    columns = snapshot.columns
    times = columns.times[~np.isnat(columns.times)]
    return GalleryStats(
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
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # a writer may tidy up meanwhile
                total += Path(parent, name).stat().st_size
    return total
