"""Answers of the API: plain values, footprints as GeoJSON, files without their folders, thumbnails drawn again."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from shapely.geometry import mapping

from lookdown.errors import GalleryError
from lookdown.gallery import Gallery, Results
from lookdown.gallery.results.geojson import map_geometry
from lookdown.gallery.results.hit import finite, hit_fields, search_fields, text
from lookdown.gallery.store.snapshot import Rows, Snapshot
from lookdown.service.service_settings import ServiceSettings

__all__ = ["chips", "metrics", "redrawn", "search_answer", "spread", "stats", "thumbnail_address", "without_folders"]

_CHIP_COLUMNS = ("id", "label", "background", "scene", "time", "sensor", "gsd", "source", "footprint", "marked")
_SIDE_PIXELS = 256  # our own thumbnails have up to 144


def search_answer(
    results: Results, embedding: NDArray[np.float32] | None, thumbnail: bytes | None, chip: str | None
) -> dict[str, Any]:
    """Return the results of a search, and its first example, if any: (views, d) embeddings, a JPEG, and an id."""
    example = None
    if embedding is not None:
        views = embedding if len(embedding) > 1 else embedding[0]
        url = None if thumbnail is None else f"data:image/jpeg;base64,{base64.b64encode(thumbnail).decode()}"
        example = {"chip": chip, "embedding": views.tolist(), "thumbnail": url}
    return {
        **search_fields(results),
        "example": example,
        "hits": [
            hit_fields(hit) | {"footprint": _geometry(hit.footprint), "thumbnail": thumbnail_address(hit.id)}
            for hit in results.hits
        ],
    }


def without_folders(results: Results) -> Results:
    """Return results whose sources are file names: clients should not learn the folders of the server."""
    return replace(results, hits=tuple(replace(hit, source=_name(hit.source)) for hit in results.hits))


def redrawn(content: bytes) -> bytes | None:
    """Draw a JPEG again, without anything else that the file may hold; None if it cannot be read.

    Stored thumbnails came from strangers, too.
    """
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG",)) as image:
            if image.width * image.height > _SIDE_PIXELS * _SIDE_PIXELS:
                return None
            plain = image.convert("L" if image.mode == "L" else "RGB")
    except Exception:  # decoders raise a dozen kinds of error on broken files
        return None
    stream = io.BytesIO()
    Image.frombytes(plain.mode, plain.size, plain.tobytes()).save(stream, "JPEG", quality=88)
    return stream.getvalue()


def chips(snapshot: Snapshot, rows: Rows) -> list[dict[str, Any]]:
    """Return the chips in some rows of the table."""
    records = []
    for row in snapshot.read(rows, _CHIP_COLUMNS):
        plain = {name: text(value) if isinstance(value, str) else value for name, value in row.items()}
        plain |= {"gsd": finite(row["gsd"]), "source": _name(row["source"]), "footprint": _geometry(row["footprint"])}
        records.append(plain | {"thumbnail": thumbnail_address(row["id"])})
    return records


def thumbnail_address(name: str) -> str:
    """Return the path of a thumbnail; an id may hold any character, even a slash."""
    return f"/v1/chips/{quote(name, safe='')}/thumbnail"


def metrics(gallery: Gallery) -> dict[str, Any]:
    """Return the metrics of a gallery, without the chips they were taught by."""
    names = ("name", "about", "created", "calibrated", "base")
    fields = [{name: getattr(metric, name) for name in names} for metric in gallery.metrics()]
    return {"current": gallery.metric, "metrics": fields}


def stats(gallery: Gallery, settings: ServiceSettings) -> dict[str, Any]:
    """Return the content of a gallery, and what this service allows."""
    snapshot = gallery.snapshot
    columns = snapshot.columns
    names, codes = columns.labels.values, columns.labels.codes
    counts = np.bincount(codes[codes >= 0], minlength=len(names)).tolist()
    times = columns.times[~np.isnat(columns.times)]
    located = columns.bounds[np.isfinite(columns.bounds).all(axis=1)]
    return {
        "name": gallery.path.resolve().name,
        "chips": len(snapshot),
        "labels": {text(name): count for name, count in zip(names, counts, strict=True) if count},
        "background": int(columns.background.sum()),
        "unlabelled": int(((codes < 0) & ~columns.background).sum()),
        "times": {
            "first": _moment(times.min()) if len(times) else None,
            "last": _moment(times.max()) if len(times) else None,
        },
        "bounds": [*map(float, (*located[:, :2].min(axis=0), *located[:, 2:].max(axis=0)))] if len(located) else None,
        "with_place": len(located),
        "sensors": [text(sensor) for sensor in columns.sensors.values],
        "metric": _in_use(gallery, gallery.metric),
        "can_embed": gallery.embedder is not None,
        "access": settings.access,
        "limits": {"upload_bytes": settings.upload_bytes, "pixels": settings.pixels, "hits": settings.hits},
        "tile_url": settings.tile_url,
        "lowest_rate": 1 / len(snapshot) if len(snapshot) else None,
    }


def spread(rows: int, offset: int, limit: int) -> Rows:
    """Return rows from all over the table, each row once: neighbouring rows often show one kind."""
    step = max(1, round(rows * 0.618))
    while np.gcd(step, max(rows, 1)) != 1:
        step += 1
    return np.arange(offset, min(rows, offset + limit), dtype=np.intp) * step % max(rows, 1)


def _in_use(gallery: Gallery, name: str) -> dict[str, Any]:
    """Return the metric in use; another process may have dropped it meanwhile."""
    try:
        used = gallery.about_metric(name)
    except GalleryError:
        return {"name": name, "about": "", "calibrated": False}
    return {"name": used.name, "about": used.about, "calibrated": used.calibrated}


def _geometry(footprint: str | None) -> Any:
    geometry = map_geometry(footprint)
    return None if geometry is None else mapping(geometry)


def _name(source: str) -> str:
    return str(text(re.split(r"[\\/]", source)[-1]))


def _moment(time: np.datetime64) -> str:
    return str(time).removesuffix(".000000") + "Z"
