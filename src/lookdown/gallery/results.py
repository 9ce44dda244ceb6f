"""What a search returns: hits with their score and what it is worth, and what the search was."""

from __future__ import annotations

from dataclasses import dataclass

from lookdown.metrics.estimate import Estimate

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
    thumbnail: bytes  # JPEG
    merged: int = 0  # other windows of the scene that show the same object


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Hits, best first."""

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
