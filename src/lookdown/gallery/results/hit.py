"""What a search returns: hits with their score and what it is worth, and what the search was."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from lookdown.metrics.estimate import Estimate

if TYPE_CHECKING:
    import geopandas
    import pandas

__all__ = ["Hit", "Results"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A chip that was found."""

    id: str
    score: float  # a log-likelihood ratio, or the cosine where no ratio was ever estimated
    posterior: float | None  # the probability that it is of the query's kind, None where the metric cannot say
    false_alarm_rate: Estimate | None  # how often a chip of another kind scores as much; None where it cannot say
    label: str | None
    background: bool
    scene: str
    time: str | None
    sensor: str | None
    gsd: float | None  # metres a pixel
    source: str  # the file it comes from
    polygon: str | None  # WKT in pixels of the scene, None where the chip is the whole image
    footprint: str | None  # WKT in degrees of longitude and latitude
    thumbnail: bytes = field(repr=False)  # JPEG
    merged: int = 0  # other windows of the scene that show the same object


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Results:
    """Hits, best first.

    Printed, it is a table; in a notebook, the hits are shown as pictures.

        results = gallery.search("chips/ferry-0001.jpg", k=10)
        results.hits[0].score
        results.to_pandas()
    """

    query: str  # what was searched for, in words
    hits: tuple[Hit, ...]
    rows: int  # chips that were compared with the query
    metric: str  # its name in the gallery
    engine: str  # "exact" or "ivf"
    prior: float  # share of the chips taken to be of the query's kind before any is looked at
    requested_rate: float | None  # the false-alarm rate that was asked for, None where it was a number of hits
    threshold: Estimate | None  # the score that goes with it
    expected_false_hits: Estimate | None  # at the score of the last hit, or at the threshold: rate x rows
    notes: tuple[str, ...] = ()  # what the reader should know of the figures
    beyond: int = 0  # further windows that the rate accepts, left out because no more were asked for; not all merged

    def __len__(self) -> int:
        return len(self.hits)

    def __repr__(self) -> str:
        from lookdown.gallery.results.terminal_table import table

        return table(self)

    def _repr_html_(self) -> str:
        """Return the contact sheet in a frame of its own, which keeps its style from the notebook's."""
        from lookdown.gallery.results.contact_sheet import to_html

        frame = 'style="width: 100%; height: 32rem; border: 0" title="hits" sandbox'
        return f'<iframe {frame} srcdoc="{escape(to_html(self), quote=True)}"></iframe>'

    def to_pandas(self) -> pandas.DataFrame:
        """Return a row a hit, with the columns of the CSV file; it needs the extra `frames`."""
        from lookdown.gallery.results.frames import to_pandas

        return to_pandas(self)

    def to_geopandas(self) -> geopandas.GeoDataFrame:
        """Return the same rows with the footprints as geometry, in degrees of longitude and latitude."""
        from lookdown.gallery.results.frames import to_geopandas

        return to_geopandas(self)
