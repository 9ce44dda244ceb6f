"""What the gallery says, as the API says it: plain values, places as GeoJSON, files by their names."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from shapely.geometry import mapping

from lookdown.errors import GalleryError
from lookdown.gallery import Gallery, Hit, Results
from lookdown.gallery.results.footprints import place
from lookdown.gallery.results.plain_values import estimate_record, finite, flat_rows, search_record, text
from lookdown.gallery.store.snapshot import Rows, Snapshot
from lookdown.service.service_settings import ServiceSettings

__all__ = ["chips", "metrics", "named", "search_answer", "spread", "stats", "thumbnail_address"]

_OF_A_CHIP = ("id", "label", "background", "scene", "time", "sensor", "gsd", "source", "footprint", "marked")
_OF_A_HIT = ("id", "score", "posterior", "label", "background", "scene", "time", "sensor", "gsd", "source", "merged")


def search_answer(results: Results, embedding: NDArray[np.float32], picture: bytes | None, chip: str | None) -> Any:
    """Return what a search has found."""
    told = search_record(results)
    views = embedding if len(embedding) > 1 else embedding[0]
    url = None if picture is None else f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}"
    return {
        **told,
        "query": {"told": told["query"], "chip": chip, "embedding": views.tolist(), "thumbnail": url},
        "hits": [_hit(hit, row) for hit, row in zip(results.hits, flat_rows(results), strict=True)],
        "accepted": len(results) + results.beyond,
        "truncated": results.beyond > 0,
    }


def named(results: Results) -> Results:
    """Return results in which files go by their names: where they lie on the server is nobody's business."""
    return replace(results, hits=tuple(replace(hit, source=_name(hit.source)) for hit in results.hits))


def chips(snapshot: Snapshot, rows: Rows) -> list[dict[str, Any]]:
    """Return chips by their places in the table."""
    if not len(rows):
        return []
    found = []
    for row in snapshot.read(rows, _OF_A_CHIP):
        plain = {name: text(value) if isinstance(value, str) else value for name, value in row.items()}
        plain |= {"gsd": finite(row["gsd"]), "source": _name(row["source"]), "footprint": _geometry(row["footprint"])}
        found.append(plain | {"thumbnail": thumbnail_address(row["id"])})
    return found


def thumbnail_address(name: str) -> str:
    """Return where the picture of a chip is; an id may hold anything, slashes too."""
    return f"/v1/chips/{quote(name, safe='')}/thumbnail"


def metrics(gallery: Gallery) -> dict[str, Any]:
    """Return the metrics of a gallery, without the chips they were taught by."""
    known = [
        {"name": one.name, "about": one.about, "created": one.created, "calibrated": one.calibrated, "base": one.base}
        for one in gallery.metrics()
    ]
    return {"current": gallery.metric, "metrics": known}


def stats(gallery: Gallery, settings: ServiceSettings) -> dict[str, Any]:
    """Return what a gallery holds, and what may be done with it here."""
    snapshot, current = gallery.snapshot, gallery.metric
    columns = snapshot.columns
    counts = np.bincount(columns.labels.codes[columns.labels.codes >= 0], minlength=len(columns.labels.values))
    times = columns.times[~np.isnat(columns.times)]
    placed = columns.bounds[np.isfinite(columns.bounds).all(axis=1)]
    bounds = [*placed[:, :2].min(axis=0), *placed[:, 2:].max(axis=0)] if len(placed) else None
    return {
        "name": gallery.path.resolve().name,
        "chips": len(snapshot),
        "labels": {text(label): int(n) for label, n in zip(columns.labels.values, counts, strict=True) if n},
        "background": int(columns.background.sum()),
        "unlabelled": int(((columns.labels.codes < 0) & ~columns.background).sum()),
        "times": {
            "first": _moment(times.min()) if len(times) else None,
            "last": _moment(times.max()) if len(times) else None,
        },
        "bounds": None if bounds is None else [float(edge) for edge in bounds],
        "with_place": len(placed),
        "sensors": [text(sensor) for sensor in columns.sensors.values],
        "metric": _in_use(gallery, current),
        "can_embed": gallery.embedder is not None,
        "access": settings.access,
        "limits": {"upload_bytes": settings.upload_bytes, "pixels": settings.pixels, "hits": settings.hits},
        "tile_url": settings.tile_url,
        "lowest_rate": 1 / len(snapshot) if len(snapshot) else None,
    }


def spread(rows: int, offset: int, limit: int) -> Sequence[int]:
    """Return some of all rows, neighbours from far apart and each row once: an archive begins with one kind."""
    step = max(1, round(rows * 0.618))
    while np.gcd(step, max(rows, 1)) != 1:
        step += 1
    return [(place * step) % rows for place in range(offset, min(rows, offset + limit))]


def _in_use(gallery: Gallery, name: str) -> dict[str, Any]:
    """Return what is known of a metric; another process may have dropped it since this one has looked."""
    try:
        used = gallery.about_metric(name)
    except GalleryError:
        return {"name": name, "about": "", "calibrated": False}
    return {"name": used.name, "about": used.about, "calibrated": used.calibrated}


def _hit(hit: Hit, row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in _OF_A_HIT} | {
        "false_alarm_rate": estimate_record(hit.false_alarm_rate),
        "footprint": _geometry(hit.footprint),
        "thumbnail": thumbnail_address(hit.id),
    }


def _geometry(footprint: str | None) -> Any:
    geometry = place(footprint)
    return None if geometry is None else mapping(geometry)


def _name(source: str) -> str:
    return str(text(re.split(r"[\\/]", source)[-1]))


def _moment(time: np.datetime64) -> str:
    return str(time).removesuffix(".000000") + "Z"
