"""Results as a map layer in columns: GeoParquet 1.1, longitude and latitude in degrees (OGC:CRS84, its default)."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import shapely

from lookdown.gallery.results.footprints import place
from lookdown.gallery.results.hit import Results
from lookdown.gallery.results.plain_values import flat_rows, search_record
from lookdown.gallery.whole_file import check_place, write_whole

__all__ = ["to_geoparquet", "write_geoparquet"]

_SCHEMA = pa.schema([
    pa.field("rank", pa.int64(), nullable=False),
    pa.field("id", pa.string(), nullable=False),
    pa.field("score", pa.float64()),
    pa.field("posterior", pa.float64()),
    pa.field("false_alarm_rate", pa.float64()),
    pa.field("false_alarm_low", pa.float64()),
    pa.field("false_alarm_high", pa.float64()),
    pa.field("false_alarm_method", pa.string()),
    pa.field("false_alarm_supported", pa.bool_()),
    pa.field("label", pa.string()),
    pa.field("background", pa.bool_(), nullable=False),
    pa.field("scene", pa.string(), nullable=False),
    pa.field("time", pa.string()),
    pa.field("sensor", pa.string()),
    pa.field("gsd", pa.float64()),  # metres a pixel
    pa.field("source", pa.string(), nullable=False),
    pa.field("polygon", pa.string()),  # WKT, pixels in the scene
    pa.field("merged", pa.int64(), nullable=False),
    pa.field("geometry", pa.binary()),  # WKB, null where the place is not known
])  # fmt: skip


def write_geoparquet(results: Results, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a row a hit; the file is whole or absent."""
    check_place(path, overwrite=overwrite)
    write_whole(path, to_geoparquet(results))


def to_geoparquet(results: Results) -> bytes:
    """Return the content of the file; the key `lookdown.search` of its metadata says what the search was."""
    places = [place(hit.footprint) for hit in results.hits]
    rows = [
        row | {"geometry": None if geometry is None else shapely.to_wkb(geometry)}
        for row, geometry in zip(flat_rows(results), places, strict=True)
    ]
    search = json.dumps(search_record(results), ensure_ascii=False, allow_nan=False)
    metadata = {b"geo": json.dumps(_geo([geometry for geometry in places if geometry is not None]))}
    schema = _SCHEMA.with_metadata(metadata | {b"lookdown.search": search})
    content = io.BytesIO()
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows, schema=schema), content)
    return content.getvalue()


def _geo(places: list[Any]) -> dict[str, Any]:
    column: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": sorted({geometry.geom_type for geometry in places}),
        "orientation": "counterclockwise",
    }
    if places:
        # West is never beyond east, not even across the date line: all readers take the wide box, few the turned one.
        column["bbox"] = np.round(shapely.total_bounds(places), 7).tolist()
    return {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
