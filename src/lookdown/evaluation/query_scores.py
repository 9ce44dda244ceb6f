"""The measures of each query, the rows behind every mean and figure; and bootstrap intervals of their means."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.metrics import Estimate
from lookdown.metrics.inputs import Array, as_count

__all__ = ["MEASURES", "Label", "QueryScores", "Replicates", "as_estimate", "resample"]

Label = str | int | float
MEASURES = ("average_precision", "recall", "precision", "hit_rate")
_MIN_GROUPS = 10  # as for a calibrated rate: fewer groups hardly show their spread
_SLACK = 1e-9  # by which rounding may carry a mean over orders above 1


@dataclass(frozen=True, slots=True, eq=False)
class QueryScores:
    """One entry a query, in their order; a query without relevant items has NaN for every measure.

    groups: the scene group of each query; None where each query is its own group.
    ids: the chip of each query, None without ids.
    """

    labels: tuple[Label | None, ...]
    groups: tuple[Label, ...] | None
    ids: tuple[Label, ...] | None
    relevant: NDArray[np.int64]  # relevant items in the gallery
    average_precision: Array
    recall: Array  # at k
    precision: Array  # at k
    hit_rate: Array  # at 1

    def __post_init__(self) -> None:
        for name, dtype in (("relevant", np.int64), *((measure, np.float64) for measure in MEASURES)):
            column = np.array(getattr(self, name), dtype=dtype)
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        sizes = {
            field.name: np.shape(value) for field in fields(self) if (value := getattr(self, field.name)) is not None
        }
        wrong = [name for name, size in sizes.items() if size != (len(self.labels),)]
        if wrong:
            raise InputError(f"{wrong[0]} has shape {sizes[wrong[0]]} for {len(self.labels)} queries; give one a query")
        for measure in MEASURES:
            values = getattr(self, measure)
            inside = (values >= 0) & (values <= 1 + _SLACK)
            if not np.where(self.scored, inside, np.isnan(values)).all():
                raise InputError(
                    f"{measure} must lie between 0 and 1, and be NaN just where a query has no relevant items"
                )
        if not self.scored.any():
            raise InputError(
                f"none of the {len(self)} queries has a relevant item in the gallery; check that queries and gallery "
                "name their classes alike and that not all of the gallery is background"
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which queries have a relevant item; every mean leaves out the others."""
        return self.relevant > 0

    @property
    def values(self) -> Array:
        """Scores of the queries that have them, (scored queries, measures)."""
        return np.column_stack([getattr(self, measure)[self.scored] for measure in MEASURES])

    @property
    def scored_classes(self) -> NDArray[Any]:
        """Labels of the queries that have scores."""
        return np.array([label for label, scored in zip(self.labels, self.scored, strict=True) if scored])

    @property
    def scored_groups(self) -> NDArray[np.intp]:
        """Groups of the queries that have scores, numbered."""
        if self.groups is None:
            return np.arange(int(self.scored.sum()))
        chosen = [group for group, scored in zip(self.groups, self.scored, strict=True) if scored]
        return np.unique(np.array(chosen), return_inverse=True)[1]

    def difference_in_queries(self, other: Self) -> str | None:
        """Name the first column other than measures in which two differ, or return None."""
        for name in ("labels", "groups", "ids"):
            if getattr(self, name) != getattr(other, name):
                return name
        return None if np.array_equal(self.relevant, other.relevant) else "numbers of relevant items"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QueryScores):
            return NotImplemented
        return self.difference_in_queries(other) is None and all(
            np.array_equal(getattr(self, measure), getattr(other, measure), equal_nan=True) for measure in MEASURES
        )

    __hash__ = None  # type: ignore[assignment]

    def to_columns(self) -> dict[str, list[Any] | None]:
        """Return plain lists for JSON, with None for NaN."""
        columns: dict[str, list[Any] | None] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            listed = value.tolist() if isinstance(value, np.ndarray) else value
            columns[field.name] = None if listed is None else [None if v != v else v for v in listed]
        return columns

    @classmethod
    def from_columns(cls, columns: dict[str, Any]) -> Self:
        """Read what `to_columns` returned."""
        plain: dict[str, Any] = {name: value if value is None else tuple(value) for name, value in columns.items()}
        scores = {name: [np.nan if v is None else v for v in plain[name] or ()] for name in MEASURES}
        return cls(**(plain | scores))


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
