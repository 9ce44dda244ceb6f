"""Bootstrap intervals of means over queries: whole groups of queries are resampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.metrics import Estimate
from lookdown.metrics.inputs import Array, as_count

__all__ = ["Replicates", "as_estimate", "resample"]


_MIN_GROUPS = 10  # as for a calibrated rate: fewer groups hardly show their spread


@dataclass(frozen=True, slots=True, eq=False)
class Replicates:
    """Means of m measures in each draw: over all queries, and over those of each class (NaN if none was drawn)."""

    overall: Array  # (draws, m)
    by_class: Array  # (draws, classes, m)

    @property
    def class_mean(self) -> Array:
        """Mean over the classes in a draw, (draws, m)."""
        return np.asarray(np.nanmean(self.by_class, axis=1))


def resample(values: Array, classes: NDArray[Any], groups: NDArray[Any], *, resamples: int, seed: int) -> Replicates:
    """Draw as many groups as there are, with replacement, and average `values` (queries, m), `resamples` times.

    A group counts with all of its queries, as often as it is drawn. The draws depend only on `seed` and the number of
    groups, so two sets of values of the same queries get the same draws. Memory is that of the result and of a few
    copies of `values`.
    """
    resamples = as_count(resamples, "resamples", least=100)
    order = np.argsort(classes, kind="stable")
    starts = np.unique(np.asarray(classes)[order], return_index=True)[1]
    ordered = np.column_stack([np.ones(len(values)), values])[order]  # the first column counts
    members = np.unique(groups, return_inverse=True)[1]
    size = int(members.max()) + 1
    members = members[order]
    rng = np.random.default_rng(seed)
    sums = np.empty((resamples, len(starts), ordered.shape[1]))
    for draw in sums:
        times = np.bincount(rng.integers(size, size=size), minlength=size)
        np.add.reduceat(ordered * times[members, None], starts, axis=0, out=draw)
    whole = sums.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return Replicates(whole[:, 1:] / whole[:, :1], sums[:, :, 1:] / sums[:, :, :1])


def as_estimate(value: float, replicates: Array, *, level: float, groups: int) -> Estimate:
    """Return `value` with the interval that holds the middle `level` of its replicates; NaN for a single group."""
    if not isinstance(level, int | float | np.floating) or not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, both excluded; got {level!r}")
    low = high = np.nan
    if groups > 1:
        tail = (1 - level) / 2
        low, high = np.nanquantile(replicates, [tail, 1 - tail])
        low, high = min(low, value), max(high, value)  # skewed or rounded replicates may leave the value outside
    return Estimate(value, method="empirical", low=float(low), high=float(high), supported=groups >= _MIN_GROUPS)
