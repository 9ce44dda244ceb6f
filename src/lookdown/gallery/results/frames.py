"""Results as data frames, for notebooks and scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lookdown.errors import MissingExtraError
from lookdown.gallery.results.hit import Results
from lookdown.gallery.results.plain_values import flat_rows

if TYPE_CHECKING:
    import geopandas
    import pandas

__all__ = ["to_geopandas", "to_pandas"]

_DEGREES = "OGC:CRS84"  # longitude before latitude


def to_pandas(results: Results) -> pandas.DataFrame:
    """Return a row a hit, best first; the footprint is WKT, None where it is not known."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError("a data frame", "frames") from error
    rows = [row | {"footprint": hit.footprint} for row, hit in zip(flat_rows(results), results.hits, strict=True)]
    return pandas.DataFrame(rows)


def to_geopandas(results: Results) -> geopandas.GeoDataFrame:
    """Return a row a hit, best first, with its footprint as geometry; a hit without a place has none."""
    try:
        import geopandas
    except ImportError as error:
        raise MissingExtraError("a data frame with geometry", "frames") from error
    from lookdown.gallery.results.footprints import place

    frame = to_pandas(results).drop(columns="footprint", errors="ignore")
    return geopandas.GeoDataFrame(frame, geometry=[place(hit.footprint) for hit in results.hits], crs=_DEGREES)
