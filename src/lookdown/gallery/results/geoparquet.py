"""Results as a map layer in columns: GeoParquet 1.1, longitude and latitude in degrees (OGC:CRS84, its default)."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import shapely

from lookdown.gallery.results.geojson import map_geometry
from lookdown.gallery.results.hit import Results, flat_fields, search_fields

__all__ = ["to_geoparquet"]

_SCHEMA = pa.schema([
    pa.field("rank", pa.int64(), nullable=False),
    pa.field("id", pa.string(), nullable=False),
    pa.field("score", pa.float64()),
    pa.field("posterior", pa.float64()),
    pa.field("false_alarm_rate", pa.float64()),
    pa.field("false_alarm_rate_low", pa.float64()),
    pa.field("false_alarm_rate_high", pa.float64()),
    pa.field("false_alarm_rate_method", pa.string()),
    pa.field("false_alarm_rate_supported", pa.bool_()),
    pa.field("label", pa.string()),
    pa.field("background", pa.bool_(), nullable=False),
    pa.field("scene", pa.string(), nullable=False),
    pa.field("time", pa.string()),
    pa.field("sensor", pa.string()),
    pa.field("gsd", pa.float64()),  # metres per pixel
    pa.field("source", pa.string(), nullable=False),
    pa.field("polygon", pa.string()),  # WKT, pixels in the scene
    pa.field("merged", pa.int64(), nullable=False),
    pa.field("geometry", pa.binary()),  # WKB, null where it is not known
])  # fmt: skip


def to_geoparquet(results: Results) -> bytes:
    """Return the content of the file; the key `lookdown.search` of its metadata holds the fields of the search."""
    geometries = [map_geometry(hit.footprint) for hit in results.hits]
    rows = [
        flat_fields(hit) | {"geometry": None if geometry is None else shapely.to_wkb(geometry)}
        for hit, geometry in zip(results.hits, geometries, strict=True)
    ]
    search = json.dumps(search_fields(results), ensure_ascii=False, allow_nan=False)
    metadata = {b"geo": json.dumps(_geo([geometry for geometry in geometries if geometry is not None]))}
    schema = _SCHEMA.with_metadata(metadata | {b"lookdown.search": search})
    content = io.BytesIO()
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows, schema=schema), content)
    return content.getvalue()


def _geo(geometries: list[Any]) -> dict[str, Any]:
    column: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": sorted({geometry.geom_type for geometry in geometries}),
        "orientation": "counterclockwise",
    }
    if geometries:
        # West is never beyond east, not even across the date line: every reader takes the wide box, few the other.
        column["bbox"] = np.round(shapely.total_bounds(geometries), 7).tolist()
    return {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
