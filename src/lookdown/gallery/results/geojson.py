"""Results as a map layer: GeoJSON (RFC 7946), longitude and latitude in degrees."""

from __future__ import annotations

import json

from shapely.geometry import mapping

from lookdown.gallery.results.footprints import place
from lookdown.gallery.results.hit import Results
from lookdown.gallery.results.plain_values import flat_rows, search_record

__all__ = ["to_geojson"]


def to_geojson(results: Results) -> str:
    """Return a feature a hit; hits without a place are left out and counted in `without_place`.

    What the search was stands beside the features, in members that map programs pass over.
    """
    features = []
    for hit, row in zip(results.hits, flat_rows(results), strict=True):
        geometry = place(hit.footprint)
        if geometry is not None:
            features.append({"type": "Feature", "id": row["id"], "geometry": mapping(geometry), "properties": row})
    layer = {
        "type": "FeatureCollection",
        "without_place": len(results) - len(features),
        **search_record(results),
        "accepted": len(results) + results.beyond,
        "truncated": results.beyond > 0,
        "features": features,
    }
    return json.dumps(layer, ensure_ascii=False, allow_nan=False)
