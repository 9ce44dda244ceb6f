"""Write results to a file in the format that its suffix names."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from lookdown.atomic import explained, write_file
from lookdown.errors import InputError, OutputError
from lookdown.gallery.results.hit import Results

__all__ = ["SUFFIXES", "check_path", "write"]

# Where each format is made; imported when needed, since only map layers need shapely and pyarrow.
_FORMATS = {
    ".json": ("json_text", "to_json"),
    ".csv": ("csv_text", "to_csv"),
    ".geojson": ("geojson", "to_geojson"),
    ".parquet": ("geoparquet", "to_geoparquet"),
    ".html": ("contact_sheet", "to_html"),
}
SUFFIXES = tuple(_FORMATS)


def write(
    results: Results,
    path: str | Path,
    *,
    overwrite: bool = False,
    thumbnails: bool = False,
    query_thumbnail: bytes | None = None,
) -> tuple[str, ...]:
    """Write results whole or not at all, and return remarks for the user.

    overwrite: replace a file that exists.
    thumbnails: put the pictures into JSON.
    query_thumbnail: a JPEG of the query, for the head of the HTML page.
    """
    suffix = check_path(path, overwrite=overwrite)
    options: dict[str, dict[str, Any]]
    options = {".json": {"thumbnails": thumbnails}, ".html": {"query_thumbnail": query_thumbnail}}
    module, function = _FORMATS[suffix]
    convert = getattr(import_module(f"lookdown.gallery.results.{module}"), function)
    content = convert(results, **options.get(suffix, {}))
    with explained(path):
        write_file(Path(path), content)
    return _remarks(results, suffix)


def check_path(path: str | Path, *, overwrite: bool = False) -> str:
    """Return the suffix of a file that can be written; call it before a long search to fail early."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path} has no known format; use the suffix {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    folder = Path(path).absolute().parent
    with explained(path):
        missing, exists = not folder.is_dir(), Path(path).exists()
    if missing:
        raise OutputError(f"{path} cannot be written: {folder} is not a folder; make it, or name another file")
    if exists and not overwrite:
        raise OutputError(f"{path} exists; name another file, or pass `overwrite=True`")
    return suffix


def _remarks(results: Results, suffix: str) -> tuple[str, ...]:
    """Say how many hits are not on the map."""
    if suffix not in (".geojson", ".parquet"):
        return ()
    from lookdown.gallery.results.geojson import map_geometry

    missing = sum(map_geometry(hit.footprint) is None for hit in results.hits)
    if not missing:
        return ()
    outcome = "left out of the layer" if suffix == ".geojson" else "in the table without a geometry"
    hits = f"{len(results):,} hit{'' if len(results) == 1 else 's'}"
    return (f"{missing:,} of {hits} {'has' if missing == 1 else 'have'} no known place on Earth: {outcome}",)
