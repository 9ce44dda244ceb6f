"""How a metric is re-estimated on a target domain: the paper's way, and what can be better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lookdown.adaptation.hierarchy import LEVELS
from lookdown.errors import InputError
from lookdown.metrics.pair_moments import Weighting

__all__ = ["AUTO", "AUTO_OF_MIXTURES", "CPLFPA", "Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each departure from Algorithm 3 of the paper; the defaults are that algorithm."""

    weighting: Weighting | None = None  # `classes` lets each cluster count alike; None: as the source metric has it
    indefinite: Literal["clip", "keep"] | None = None  # None: as the source metric has it
    shrinkage: float | Literal["auto"] | None = None  # None: as the source metric has it
    levels: tuple[int, ...] = ()  # numbers of clusters that Ward's tree may be cut at; (): K-means
    centred: bool = False  # on the sphere, the tree is of directions from the mean of the target
    rounds: int = 1  # from the second on, clusters are found in the space of the metric so far
    nearest: float = 1.0  # share of each cluster that counts, those nearest to its centre
    softness: float = 0.0  # above 0, a chip belongs to near clusters in part: temperature, in mean squared distances
    source_chips: float = 0.0  # how many chips of the target the source statistics are worth
    full_rank: float = 0.0  # blend with the distance by same pairs alone, which sees every direction

    def __post_init__(self) -> None:
        if not (isinstance(self.rounds, int) and self.rounds >= 1):
            raise InputError(f"rounds is a whole number from 1, got {self.rounds!r}")
        if not (0 < self.nearest <= 1 and self.softness >= 0 and self.source_chips >= 0):
            raise InputError("nearest is above 0 and at most 1, softness and source_chips are at least 0")
        if not 0 <= self.full_rank < 1:
            raise InputError(f"full_rank is at least 0 and below 1, got {self.full_rank}")
        if self.softness and self.nearest < 1:
            raise InputError("softness and nearest exclude one another; choose one of them")
        if self.softness and self.weighting == "classes":
            raise InputError("soft clusters count by pairs; leave weighting='classes' away")
        if not all(isinstance(level, int) and level >= 2 for level in self.levels):
            raise InputError(f"levels are whole numbers from 2, got {self.levels!r}")
        if self.levels and (self.softness or self.nearest < 1):
            raise InputError("softness and nearest are for K-means; leave levels away with them")
        if self.centred and not self.levels:
            raise InputError("centred is for the tree of levels; K-means clusters images where they lie")


CPLFPA = Settings()
# The best on validation splits, see docs/adaptation.md.
AUTO = Settings(weighting="classes", levels=LEVELS, centred=True, shrinkage="auto")
AUTO_OF_MIXTURES = Settings(rounds=2)  # their densities are fitted to one set of labels
