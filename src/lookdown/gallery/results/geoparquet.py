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
from lookdown.gallery.results.hit import FLAT_NAMES, Results, flat_fields, search_fields

__all__ = ["to_geoparquet"]

_TYPES = {
    **dict.fromkeys(("rank", "merged"), pa.int64()),
    **dict.fromkeys(("background", "false_alarm_rate_supported"), pa.bool_()),
    **dict.fromkeys(("score", "posterior", "kind_probability", "gsd"), pa.float64()),
    **dict.fromkeys(("false_alarm_rate", "false_alarm_rate_low", "false_alarm_rate_high"), pa.float64()),
    "geometry": pa.binary(),  # WKB, null where it is not known
}
_KNOWN = ("rank", "id", "background", "scene", "source", "merged")  # of every hit
_NAMES = [*(name for name in FLAT_NAMES if name != "footprint"), "geometry"]
_SCHEMA = pa.schema([pa.field(name, _TYPES.get(name, pa.string()), nullable=name not in _KNOWN) for name in _NAMES])


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
