"""Results as other programs and people read them, one file a format."""

from __future__ import annotations

from pathlib import Path

from lookdown.errors import InputError
from lookdown.gallery.results.hit import Results
from lookdown.gallery.whole_file import check_place, write_whole

__all__ = ["SUFFIXES", "check_path", "write"]

SUFFIXES = (".json", ".csv", ".geojson", ".parquet", ".html")


def write(
    results: Results,
    path: str | Path,
    *,
    overwrite: bool = False,
    thumbnails: bool = False,
    query_thumbnail: bytes | None = None,
) -> tuple[str, ...]:
    """Write results in the format that the suffix names, whole or not at all; return what the user should be told.

    `thumbnails` puts the pictures into JSON; `query_thumbnail`, a JPEG, stands at the head of the HTML page.
    """
    suffix = check_path(path, overwrite=overwrite)
    content = _content(results, suffix, thumbnails, query_thumbnail)
    write_whole(path, content)
    return _remarks(results, suffix)


def check_path(path: str | Path, *, overwrite: bool = False) -> str:
    """Return the suffix of a file that can be written, and refuse another; worth asking before a long search."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path} names no known format; let it end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    check_place(path, overwrite=overwrite)
    return suffix


def _content(results: Results, suffix: str, thumbnails: bool, query_thumbnail: bytes | None) -> str | bytes:
    # Each format is imported when it is wanted: only the maps need shapely and pyarrow.
    if suffix == ".json":
        from lookdown.gallery.results.json_text import to_json

        return to_json(results, thumbnails=thumbnails)
    if suffix == ".csv":
        from lookdown.gallery.results.csv_text import to_csv

        return to_csv(results)
    if suffix == ".geojson":
        from lookdown.gallery.results.geojson import to_geojson

        return to_geojson(results)
    if suffix == ".parquet":
        from lookdown.gallery.results.geoparquet import to_geoparquet

        return to_geoparquet(results)
    from lookdown.gallery.results.contact_sheet import to_html

    return to_html(results, query_thumbnail)


def _remarks(results: Results, suffix: str) -> tuple[str, ...]:
    if suffix not in (".geojson", ".parquet"):
        return ()
    from lookdown.gallery.results.footprints import without_place

    missing = without_place(results)
    if not missing:
        return ()
    fate = "left out of the layer" if suffix == ".geojson" else "in the table without a geometry"
    hits = f"{len(results):,} hit{'' if len(results) == 1 else 's'}"
    return (f"{missing:,} of {hits} {'has' if missing == 1 else 'have'} no known place on Earth: {fate}",)
