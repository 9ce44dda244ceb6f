"""Results as JSON, for programs."""

from __future__ import annotations

import base64
import json

from lookdown.gallery.results.hit import Results, hit_fields, search_fields

__all__ = ["to_json"]


def to_json(results: Results, *, thumbnails: bool = False) -> str:
    """Return all fields of the search and its hits; NaN and infinity become null.

    thumbnails: include the pictures, as base64 of a JPEG.
    """
    hits = [hit_fields(hit) for hit in results.hits]
    if thumbnails:
        for hit, fields in zip(results.hits, hits, strict=True):
            fields["thumbnail"] = base64.b64encode(hit.thumbnail).decode()
    return json.dumps({**search_fields(results), "hits": hits}, ensure_ascii=False, allow_nan=False)
