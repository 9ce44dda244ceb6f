"""What a search returns: hits with their scores and what these are worth, and what the search was."""

from __future__ import annotations

import base64
import math
import re
from dataclasses import dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from lookdown.errors import MissingExtraError
from lookdown.metrics.estimate import Estimate

if TYPE_CHECKING:
    import geopandas
    import pandas

__all__ = [
    "FLAT_NAMES", "Hit", "Results", "estimate_fields", "finite", "flat_fields", "hit_fields", "search_fields", "text",
]  # fmt: skip

_CRS = "OGC:CRS84"  # degrees, longitude before latitude


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A chip that a search returns. JSON, HTTP, CSV and map layers use the same field names.

    rank: its place in the list, from 1.
    id: of the chip in the gallery; a search takes it as an example.
    score: a log-likelihood ratio, or the cosine for a gallery without one.
    posterior: the probability that it is of the query's kind; None where the metric cannot tell.
    false_alarm_rate: how often a chip of another kind scores as high; None where the metric cannot tell.
    label: the kind that data or a user gave it, or None.
    kind: the likeliest of the kinds that the metric knows; None for none of these, or where it knows no kinds.
    kind_probability: how probable that kind is, or that it is none of these; None where the metric knows no kinds.
    background: whether it is known to show no object.
    scene, time, sensor, gsd: where it comes from, when it was taken and by what, and metres per pixel.
    source: the file it was read from.
    polygon: WKT in pixels of the scene; None where the chip is the whole image.
    footprint: WKT in degrees of longitude and latitude, or None.
    thumbnail: a small JPEG, or no bytes.
    merged: how many other windows of the scene show the same object.

    >>> import numpy as np
    >>> from lookdown import Gallery
    >>> gallery = Gallery.create("gallery", dimension=2)
    >>> report = gallery.add_embeddings([{"id": "tug", "source": "tug.jpg"}], [[1.0, 0.5]])
    >>> hit = gallery.search(np.array([1.0, 0.4]), k=1).hits[0]
    >>> hit.rank, hit.id, round(hit.score, 2), hit.false_alarm_rate
    (1, 'tug', 1.0, None)
    """

    rank: int
    id: str
    score: float
    posterior: float | None
    false_alarm_rate: Estimate | None
    label: str | None
    kind: str | None = None
    kind_probability: float | None = None
    background: bool
    scene: str
    time: str | None
    sensor: str | None
    gsd: float | None
    source: str
    polygon: str | None
    footprint: str | None
    thumbnail: bytes = field(repr=False)
    merged: int = 0

    def _repr_html_(self) -> str:
        """Return the thumbnail and the fields as a table, for notebooks."""
        rows = "".join(
            f"<tr><th>{name}</th><td>{escape(str(value))}</td></tr>"
            for name, value in flat_fields(self).items()
            if value is not None
        )
        image = f'<img alt="" src="data:image/jpeg;base64,{base64.b64encode(self.thumbnail).decode()}">'
        return f"{image if self.thumbnail else ''}<table>{rows}</table>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Results:
    """Hits, best first, and what the search was. Printed, it is a table; a notebook shows the hits as pictures.

    query: what was searched for, in words.
    hits: best first.
    rows_searched: how many chips were compared with the query.
    metric: its name in the gallery.
    engine: `exact`, `ivf` or `milvus`.
    prior: the share of chips assumed to be of the query's kind.
    requested_false_alarm_rate: the rate of the request, None where it asked for a number of hits.
    threshold: the score that goes with that rate.
    expected_false_hits: the rate at the threshold, or at the last hit, times `rows_searched`.
    accepted: how many hits there are in all. Where not all are returned, windows beyond them are not merged.
    notes: what a reader should know about the figures.

    >>> import numpy as np
    >>> from lookdown import Gallery
    >>> gallery = Gallery.create("gallery", dimension=2)
    >>> report = gallery.add_embeddings([{"id": "tug", "source": "tug.jpg"}], [[1.0, 0.5]])
    >>> results = gallery.search(np.array([1.0, 0.4]), k=1)
    >>> results.rows_searched, len(results), results.hits[0].id
    (1, 1, 'tug')
    """

    query: str
    hits: tuple[Hit, ...]
    rows_searched: int
    metric: str
    engine: str
    prior: float
    requested_false_alarm_rate: float | None
    threshold: Estimate | None
    expected_false_hits: Estimate | None
    accepted: int
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.hits)

    @property
    def truncated(self) -> bool:
        """Whether more hits were accepted than are returned."""
        return self.accepted > len(self.hits)

    def __repr__(self) -> str:
        from lookdown.gallery.results.terminal_table import table

        return table(self)

    def _repr_html_(self) -> str:
        """Return the contact sheet in a frame, which keeps its style apart from the notebook's."""
        from lookdown.gallery.results.contact_sheet import to_html

        frame = 'style="width: 100%; height: 32rem; border: 0" title="hits" sandbox'
        return f'<iframe {frame} srcdoc="{escape(to_html(self), quote=True)}"></iframe>'

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with a row per hit and the columns of the CSV file; needs the extra `frames`."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError("a data frame", "frames") from error
        return pandas.DataFrame(map(flat_fields, self.hits))

    def to_geopandas(self) -> geopandas.GeoDataFrame:
        """Return the same rows with footprints as geometry, in degrees; a hit without a footprint has none."""
        try:
            import geopandas
        except ImportError as error:
            raise MissingExtraError("a data frame with geometry", "frames") from error
        from lookdown.gallery.results.geojson import map_geometry

        frame = self.to_pandas().drop(columns="footprint", errors="ignore")
        return geopandas.GeoDataFrame(frame, geometry=[map_geometry(hit.footprint) for hit in self.hits], crs=_CRS)


# Results as plain values that every file format can hold: no NaN, no infinity, no broken text.
_SURROGATES = re.compile("[\ud800-\udfff]")
_RATE, _PARTS = "false_alarm_rate", ("value", "low", "high", "method", "supported")
_RATE_NAMES = [_RATE, *(f"{_RATE}_{part}" for part in _PARTS[1:])]
_HIT_NAMES = [field.name for field in fields(Hit) if field.name != "thumbnail"]
FLAT_NAMES = [flat for name in _HIT_NAMES for flat in (_RATE_NAMES if name == _RATE else [name])]


def search_fields(results: Results) -> dict[str, Any]:
    """Return every field of the results but the hits."""
    names = [field.name for field in fields(Results) if field.name != "hits"]
    return {name: _plain(getattr(results, name)) for name in [*names, "truncated"]}


def hit_fields(hit: Hit) -> dict[str, Any]:
    """Return every field of a hit but its thumbnail."""
    return {name: _plain(getattr(hit, name)) for name in _HIT_NAMES}


def flat_fields(hit: Hit) -> dict[str, Any]:
    """Return the same fields for formats with columns: the false-alarm rate takes five of them."""
    plain = hit_fields(hit)
    rate = plain.pop(_RATE) or dict.fromkeys(_PARTS)
    plain |= {name: rate[part] for name, part in zip(_RATE_NAMES, _PARTS, strict=True)}
    return {name: plain[name] for name in FLAT_NAMES}


def estimate_fields(estimate: Estimate | None) -> dict[str, Any] | None:
    """Return a figure, its interval, and what it rests on."""
    if estimate is None:
        return None
    figures = {"value": finite(estimate), "low": finite(estimate.low), "high": finite(estimate.high)}
    return {**figures, "method": estimate.method, "supported": bool(estimate.supported)}


def finite(value: float | None) -> float | None:
    """Return a plain number, or None for NaN and infinity."""
    return float(value) if value is not None and math.isfinite(value) else None


def text(value: str | None) -> Any:
    """Return text that UTF-8 can hold; undecodable bytes of a file name become a replacement character."""
    return None if value is None else _SURROGATES.sub("\ufffd", value)


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return estimate_fields(value)
    if isinstance(value, float | np.floating):
        return finite(float(value))
    if isinstance(value, str):
        return text(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
