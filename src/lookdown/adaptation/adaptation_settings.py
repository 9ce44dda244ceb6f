"""How a metric is re-estimated on a target domain: by the paper's algorithm, or with departures from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from lookdown.adaptation.ward_tree import LEVELS
from lookdown.errors import InputError
from lookdown.metrics.pair_moments import Weighting

__all__ = ["AUTO", "AUTO_OF_DIFFERENCES", "AUTO_OF_MIXTURES", "CPLFPA", "AdaptationSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptationSettings:
    """Each departure from Algorithm 3 of the paper; the defaults are that algorithm."""

    weighting: Weighting | None = None  # `classes`: each cluster has the same weight; None: as the source metric has it
    indefinite: Literal["clip", "keep"] | None = None  # None: as the source metric has it
    shrinkage: float | Literal["auto"] | None = None  # None: as the source metric has it
    ratio: Literal["differences", "kinds"] = "differences"  # which likelihood ratio is estimated from the clusters
    temperature: float = 8.0  # of the ratio of kinds, for clusters
    levels: tuple[int, ...] = ()  # numbers of clusters that Ward's tree may be cut at; (): K-means
    centred: bool = False  # where the metric normalizes, the tree is of directions from the mean of the target
    rounds: int = 1  # from the second on, clusters are found in the space of the metric so far
    nearest: float = 1.0  # share of each cluster that counts, those nearest to its centre
    softness: float = 0.0  # above 0, chips belong to near clusters in part: temperature, in mean squared distances
    source_chips: float = 0.0  # how many chips of the target the source statistics are worth
    full_rank: float = 0.0  # blend with the distance by same pairs alone, which sees every direction

    def __post_init__(self) -> None:
        if not (isinstance(self.rounds, int) and self.rounds >= 1):
            raise InputError(f"rounds must be a whole number from 1, got {self.rounds!r}")
        if not (0 < self.nearest <= 1 and self.softness >= 0 and self.source_chips >= 0):
            raise InputError("nearest must be above 0 and at most 1, softness and source_chips at least 0")
        if not 0 <= self.full_rank < 1:
            raise InputError(f"full_rank must be at least 0 and below 1, got {self.full_rank}")
        if self.softness and self.nearest < 1:
            raise InputError("softness and nearest exclude one another; choose one of them")
        if self.softness and self.weighting == "classes":
            raise InputError("soft clusters count by pairs; omit weighting='classes'")
        if not all(isinstance(level, int) and level >= 2 for level in self.levels):
            raise InputError(f"levels must be whole numbers from 2, got {self.levels!r}")
        if self.levels and (self.softness or self.nearest < 1):
            raise InputError("softness and nearest are for K-means; omit levels")
        if self.ratio not in ("differences", "kinds"):
            raise InputError(f"ratio must be 'differences' or 'kinds', got {self.ratio!r}")
        if self.ratio == "kinds" and (self.softness or self.source_chips or self.full_rank):
            raise InputError("softness, source_chips and full_rank are of covariances; omit them with ratio='kinds'")
        if self.centred and not self.levels:
            raise InputError("centred is for a tree; give levels, or omit centred")


CPLFPA = AdaptationSettings()
# The best on validation splits, see docs/adaptation.md.
AUTO = AdaptationSettings(ratio="kinds", weighting="classes", levels=LEVELS, centred=True, shrinkage="auto")
AUTO_OF_DIFFERENCES = replace(AUTO, ratio="differences")
AUTO_OF_MIXTURES = AdaptationSettings(rounds=2)  # a mixture is fitted to one set of clusters
