"""Results as a map layer: GeoJSON (RFC 7946), longitude and latitude in degrees."""

from __future__ import annotations

import json

from shapely.geometry import mapping

from lookdown.gallery.results.fields import flat_fields, search_fields
from lookdown.gallery.results.footprints import map_geometry
from lookdown.gallery.results.hit import Results

__all__ = ["to_geojson"]


def to_geojson(results: Results) -> str:
    """Return a feature per hit with its fields as properties; hits without a footprint are counted and left out.

    The fields of the search stand beside the features, in members that map programs ignore.
    """
    features = []
    for hit in results.hits:
        geometry = map_geometry(hit.footprint)
        if geometry is not None:
            properties = flat_fields(hit)
            del properties["footprint"]
            features.append({
                "type": "Feature", "id": properties["id"], "geometry": mapping(geometry), "properties": properties,
            })  # fmt: skip
    layer = {
        "type": "FeatureCollection",
        "without_footprint": len(results) - len(features),
        **search_fields(results),
        "features": features,
    }
    return json.dumps(layer, ensure_ascii=False, allow_nan=False)
