"""The result of an evaluation: means, intervals and a table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.evaluation.query_scores import MEASURES, Label, QueryScores, Replicates, as_estimate, resample
from lookdown.metrics import Estimate
from lookdown.metrics.inputs import as_count
from lookdown.suggestions import did_you_mean

__all__ = ["ClassScores", "Evaluation", "Measure"]

Measure = Literal["mean_average_precision", "class_mean_average_precision", "recall", "precision", "hit_rate"]
_FORMAT = {"format": "lookdown evaluation", "version": 1}


@dataclass(frozen=True, slots=True)
class ClassScores:
    """Means over the queries of one class, with intervals."""

    label: Label
    queries: int  # with a relevant item
    left_out: int  # without one
    groups: int  # of the queries with a relevant item
    relevant: float  # relevant items in the gallery, mean over these queries
    mean_average_precision: Estimate
    recall: Estimate
    precision: Estimate
    hit_rate: Estimate


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """How well queries find what is relevant to them in a gallery; all numbers are shares, from 0 to 1.

    Means are over the queries that have a relevant item; `left_out` counts the others. Intervals describe other
    queries, from other scenes of the same kind, put to the same gallery. `lookdown.evaluate` makes one.

    queries: `QueryScores`, one entry a query: label, group, id and the measures.
    k: the number of results that recall and precision count.
    gallery_size: rows of the gallery, background included.
    background_count: rows that are background.

    Properties: `mean_average_precision`, `class_mean_average_precision`, `recall`, `precision`, `hit_rate`, `left_out`
    and `unlabelled`.

    >>> import lookdown
    >>> scores = [[0.9, 0.1, 0.8], [0.2, 0.6, 0.7]]
    >>> result = lookdown.evaluate(scores, None, ["ship", "jet"], None, ["ship", "jet", "ship"], k=2)
    >>> result
    Evaluation(mAP 0.7500, R@2 1.0000, P@2 0.7500, hit@1 0.5000; 2 queries of 2 classes; gallery of 3)
    >>> lookdown.Evaluation.from_json(result.to_json()) == result
    True
    """

    queries: QueryScores
    k: int
    gallery_size: int
    background_count: int

    def __post_init__(self) -> None:
        as_count(self.k, "k")
        sizes = self.gallery_size, self.background_count
        if not all(isinstance(size, int) for size in sizes) or not 0 <= self.background_count < self.gallery_size:
            raise InputError(f"a gallery of {sizes[0]!r} rows with {sizes[1]!r} of background cannot be searched")

    @property
    def mean_average_precision(self) -> float:
        """Mean of the average precision over queries."""
        return self._mean("mean_average_precision")

    @property
    def class_mean_average_precision(self) -> float:
        """Mean over classes of the mean over their queries: every class counts the same."""
        return self._mean("class_mean_average_precision")

    @property
    def recall(self) -> float:
        """Relevant among the first k / all relevant in the gallery, mean over queries."""
        return self._mean("recall")

    @property
    def precision(self) -> float:
        """Relevant among the first k / k, mean over queries."""
        return self._mean("precision")

    @property
    def hit_rate(self) -> float:
        """Share of queries whose first result is relevant."""
        return self._mean("hit_rate")

    @property
    def left_out(self) -> int:
        """Queries without a relevant item, which no mean counts; the unlabelled ones are among them."""
        return int((~self.queries.scored).sum())

    @property
    def unlabelled(self) -> int:
        """Queries without a label."""
        return self.queries.labels.count(None)

    def interval(
        self, measure: Measure = "mean_average_precision", *, level: float = 0.95, resamples: int = 1000, seed: int = 0
    ) -> Estimate:
        """Return a mean with its bootstrap interval.

        measure: which mean.
        level: share of the resampled means that the interval holds.
        resamples: how often the groups of queries are drawn again.
        seed: of these draws.

        `supported` is true from ten groups on. A single group gives no interval: `low` and `high` are NaN.
        """
        value = self._mean(measure)
        draws = _select(self._replicates(resamples, seed), measure)
        return as_estimate(value, draws, level=level, groups=self._group_count)

    def difference(
        self,
        other: Evaluation,
        measure: Measure = "mean_average_precision",
        *,
        level: float = 0.95,
        resamples: int = 1000,
        seed: int = 0,
    ) -> Estimate:
        """Return by how much this mean is higher than that of another evaluation of the same queries and gallery.

        The arguments are those of `interval`. Both means are taken over the same draws of groups, so what makes a
        scene hard for both cancels, and the interval is usually much narrower than those of the two means suggest. If
        it excludes zero, one evaluation is better.
        """
        if not isinstance(other, Evaluation):
            raise InputError(f"other must be an Evaluation, got {type(other).__name__}")
        if differs := self._differs_from(other):
            raise InputError(
                f"the two evaluations differ in their {differs}, so they cannot be compared query by query; evaluate "
                "both on the same queries and gallery, with the same k"
            )
        value = self._mean(measure) - other._mean(measure)
        mine, theirs = (_select(one._replicates(resamples, seed), measure) for one in (self, other))
        return as_estimate(value, mine - theirs, level=level, groups=self._group_count)

    def per_class(self, *, level: float = 0.95, resamples: int = 1000, seed: int = 0) -> tuple[ClassScores, ...]:
        """Return a row for each class among the queries, in the order of their labels."""
        draws = self._replicates(resamples, seed).by_class
        scored, groups, values = self.queries.scored_classes, self.queries.scored_groups, self.queries.values
        relevant = self.queries.relevant[self.queries.scored]
        column_of = {label: i for i, label in enumerate(np.unique(scored).tolist())}
        rows = []
        for label in sorted({label for label in self.queries.labels if label is not None}):
            own = scored == label
            count, spread = int(own.sum()), len(np.unique(groups[own]))
            means = values[own].mean(axis=0) if count else np.full(len(MEASURES), np.nan)
            columns = draws[:, column_of[label]] if count else draws[:, 0]
            estimates = [
                as_estimate(float(mean), column, level=level, groups=spread)
                for mean, column in zip(means, columns.T, strict=True)
            ]
            items = float(relevant[own].mean()) if count else 0.0
            rows.append(ClassScores(label, count, self.queries.labels.count(label) - count, spread, items, *estimates))
        return tuple(rows)

    def table(self) -> str:
        """Return a row a class and the means with their 95 % intervals, as text in aligned columns."""
        measures: tuple[Measure, ...] = ("mean_average_precision", "recall", "precision", "hit_rate")
        lines = [["class", "queries", "relevant", "mAP", f"R@{self.k}", f"P@{self.k}", "hit@1"]]
        for row in self.per_class():
            cells = [_share(getattr(row, measure)) for measure in measures]
            lines.append([str(row.label), f"{row.queries:,}", f"{row.relevant:,.1f}", *cells])
        means = [self.interval(measure) for measure in measures]
        by_class = _class_means(self.queries.scored_classes, self.queries.values).mean(axis=0)
        queries = f"{int(self.queries.scored.sum()):,}"
        lines.append(["mean of classes", "", "", *(_share(mean) for mean in by_class)])
        lines.append(["mean of queries", queries, "", *(_share(mean) for mean in means)])
        lines.append(["95 % from", "", "", *(_share(mean.low) for mean in means)])
        lines.append(["95 % to", "", "", *(_share(mean.high) for mean in means)])
        return f"{_aligned(lines)}\n{self._circumstances()}"

    def to_json(self) -> str:
        """Return everything as JSON text, which `from_json` reads without loss."""
        content = {"k": self.k, "gallery_size": self.gallery_size, "background_count": self.background_count}
        return json.dumps(_FORMAT | content | {"queries": self.queries.to_columns()}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        try:
            content = json.loads(text)
            if {name: content.pop(name, None) for name in _FORMAT} != _FORMAT:
                raise InputError("it does not begin as `Evaluation.to_json` writes it, in version 1")
            return cls(**(content | {"queries": QueryScores.from_columns(content["queries"])}))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise InputError(f"the text is not a stored evaluation ({error}); write it again with to_json") from error

    def __repr__(self) -> str:
        shares = f"mAP {self.mean_average_precision:.4f}, R@{self.k} {self.recall:.4f}, P@{self.k} {self.precision:.4f}"
        return f"Evaluation({shares}, hit@1 {self.hit_rate:.4f}; {self._circumstances()})"

    @property
    def _group_count(self) -> int:
        return int(self.queries.scored_groups.max()) + 1

    def _mean(self, measure: Measure) -> float:
        if measure not in get_args(Measure):
            raise InputError(f"there is no measure {measure!r}; {did_you_mean(measure, get_args(Measure))}")
        values = self.queries.values
        if measure == "class_mean_average_precision":
            values = _class_means(self.queries.scored_classes, values)
        return float(values[:, _column(measure)].mean())

    def _replicates(self, resamples: int, seed: int) -> Replicates:
        queries = self.queries
        return resample(queries.values, queries.scored_classes, queries.scored_groups, resamples=resamples, seed=seed)

    def _differs_from(self, other: Evaluation) -> str | None:
        for name in ("k", "gallery_size", "background_count"):
            if getattr(self, name) != getattr(other, name):
                return name
        return self.queries.difference_in_queries(other.queries)

    def _circumstances(self) -> str:
        queries, classes = int(self.queries.scored.sum()), len(np.unique(self.queries.scored_classes))
        groups = "" if self.queries.groups is None else f" in {self._group_count:,} groups"
        left = f", {self.left_out:,} left out" if self.left_out else ""
        background = f" of which {self.background_count:,} background" if self.background_count else ""
        return f"{queries:,} queries of {classes:,} classes{groups}{left}; gallery of {self.gallery_size:,}{background}"


def _column(measure: str) -> int:
    return 0 if measure.endswith("average_precision") else MEASURES.index(measure)


def _select(replicates: Replicates, measure: Measure) -> NDArray[np.float64]:
    means = replicates.class_mean if measure == "class_mean_average_precision" else replicates.overall
    return means[:, _column(measure)]


def _class_means(classes: NDArray[Any], values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([values[classes == label].mean(axis=0) for label in np.unique(classes)])


def _share(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}"


def _aligned(lines: list[list[str]]) -> str:
    """Put cells below each other: the first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = ([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in lines)
    return "\n".join(map("  ".join, rows))
