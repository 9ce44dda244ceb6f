"""Does a threshold keep its promise? Requested false-alarm rates, and those realised in places not calibrated on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookdown.adaptation import CPLFPA, adapt
from lookdown.lab.paper.experiment import Experiment
from lookdown.lab.paper.report import Page, PageFigure, Table, percent
from lookdown.lab.paper.rules import base_clusters
from lookdown.lab.paper.tasks import TASKS, Task
from lookdown.lab.paper.trained_network import Case
from lookdown.metrics import Estimate, Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["METRICS", "RATES", "LabelledChips", "RealisedRate", "calibrated_metrics", "halves", "make", "realised"]

RATES = (1e-1, 1e-2, 1e-3)
METRICS = ("source metric, on training chips", "source metric, on the target", "adapted metric, on the target")
_LEAST = 0.1  # ratio that is drawn; an axis in decades has no 0

Array = NDArray[np.float64]
RatesByMetric = Mapping[
    tuple[str, float], "Sequence[RealisedRate]"
]  # metric and requested rate; a value a seed, where supported


class RealisedRate(NamedTuple):
    """A requested false-alarm rate, and what came of it in other places, with an interval over these places."""

    requested: float
    rate: Estimate

    @property
    def covers(self) -> bool:
        """Whether the interval holds the requested rate."""
        return self.rate.low <= self.requested <= self.rate.high


@dataclass(frozen=True, slots=True)
class LabelledChips:
    """Chips that someone has looked at and labelled."""

    embeddings: Array
    labels: NDArray[np.str_]
    groups: NDArray[np.str_]
    background: NDArray[np.bool_]

    @classmethod
    def of(cls, case: Case, rows: NDArray[np.int64]) -> LabelledChips:
        """Return some rows of a domain."""
        domain = case.domain
        return cls(case.embeddings[rows], domain.labels[rows], domain.groups[rows], domain.background[rows])

    def calibrate(self, metric: Metric) -> Metric:
        """Return a copy of the metric that is calibrated on these chips."""
        return deepcopy(metric).calibrate(self.embeddings, self.labels.tolist(), self.groups, self.background)


def make(experiment: Experiment) -> Page:
    """Return realised against requested rates of each task, and where the promise is not kept."""
    rates = {task: _of_task(experiment, task) for task in TASKS}
    captions = "\n".join(experiment.caption(task) for task in TASKS)
    method = (
        "The network was trained by the likelihood ratio. Half of the places of the target are labelled and calibrated "
        "on, background included; rates are realised on all pairs of different kinds in the other half that have an "
        "object in them. Beside that, the source metric calibrated on the chips it was trained on, which hold no "
        "background, is what a user has who never looked at the target. Adaptation is the paper's Algorithm 3; it sees "
        "all of the target, without labels. Intervals are 95 %, from drawing the places of the other half again; rate "
        "and interval are means over seeds. That the threshold is an estimate from the first half is not in them, so a "
        "sound threshold would be covered about 83 times in 100, not 95. A rate is asked for where calibration "
        "supports it, by 20 pairs above the threshold and 10 places."
    )
    tables = [_table(task, values) for task, values in rates.items()]
    legend = (
        "Realised rate over requested rate, with 95 % intervals; on the line the promise is kept. Bars end at a tenth."
    )
    picture = PageFigure("false_alarm_rates", _figure(rates), legend)
    return Page("False-alarm rates", f"{captions}\n\n{method}", (_verdict(rates.values()), *tables, picture))


def _of_task(experiment: Experiment, task: Task) -> RatesByMetric:
    rates: dict[tuple[str, float], list[RealisedRate]] = {(name, rate): [] for name in METRICS for rate in RATES}
    for seed in experiment.each_seed:
        case = experiment.case(task, "glrt", seed)
        seen, held_out = (LabelledChips.of(case, rows) for rows in halves(case, seed))
        for name, metric in calibrated_metrics(case, seen, seed).items():
            for case_of_rate in realised(metric, held_out):
                rates[name, case_of_rate.requested].append(case_of_rate)
    return rates


def halves(case: Case, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Divide the target by whole places: one half to calibrate on, one to see what came of it."""
    target = case.roles.target
    groups = case.domain.groups[target]
    names = np.random.default_rng(seed).permutation(np.unique(groups))
    first = np.isin(groups, names[: len(names) // 2])
    return target[first], target[~first]


def calibrated_metrics(case: Case, seen: LabelledChips, seed: int) -> dict[str, Metric]:
    """Return the source metric without and with a look at the target, and the adapted one with it."""
    adapted = adapt(case.source, case.target, clusters=base_clusters(case), method=CPLFPA, seed=seed)
    after = adapted.recalibrate(seen.embeddings, seen.labels.tolist(), background=seen.background, groups=seen.groups)
    before = LabelledChips.of(case, case.roles.train).calibrate(case.source), seen.calibrate(case.source)
    return dict(zip(METRICS, (*before, after.metric), strict=True))


def realised(metric: Metric, chips: LabelledChips) -> list[RealisedRate]:
    """Return what share of the different pairs of other chips reach the thresholds of a metric, where supported."""
    thresholds = {rate: metric.threshold(rate) for rate in RATES}
    seen = chips.calibrate(metric)  # counts every pair, and draws the places again
    return [
        RealisedRate(rate, seen.false_alarm_rate(threshold))
        for rate, threshold in thresholds.items()
        if threshold.supported
    ]


def _verdict(tasks: Iterable[RatesByMetric]) -> str:
    """Say for each metric how often the interval holds the requested rate, and how far off it is where it does not."""
    of_metric: dict[str, list[RealisedRate]] = {name: [] for name in METRICS}
    for (name, _), values in (item for of_task in tasks for item in of_task.items()):
        of_metric[name] += values
    lines = []
    for name, cases in of_metric.items():
        missed = [case for case in cases if not case.covers]
        said = f"- {name}: the interval covers the requested rate in {len(cases) - len(missed)} of {len(cases)} cases"
        if missed:
            above = sum(case.rate > case.requested for case in missed)
            ratios = sorted(case.rate / case.requested for case in missed)
            times = " to ".join(dict.fromkeys(f"{ratio:.2g}" for ratio in (ratios[0], ratios[-1])))
            said += (
                f"; in the other {len(missed)} the threshold does not keep it: the realised rate is too high in "
                f"{above} and too low in {len(missed) - above}, {times} times the requested one"
            )
        lines.append(f"{said}.")
    return "\n".join(["A case is a task, a seed and a rate. By what calibrates the metric:", "", *lines])


def _table(task: Task, rates: RatesByMetric) -> Table:
    header = ("metric, calibrated on", "requested", "realised", "95 % interval", "interval covers the requested")
    rows = []
    for (name, rate), values in rates.items():
        if not values:
            rows.append((name, f"{rate:g}", percent(None), percent(None), "not supported"))
            continue
        mean, low, high = np.mean([(case.rate, case.rate.low, case.rate.high) for case in values], axis=0)
        kept = sum(case.covers for case in values)
        covers = {len(values): "yes", 0: "no"}.get(kept, f"in {kept} of {len(values)} seeds")
        rows.append((name, f"{rate:g}", f"{mean:.2g}", f"{low:.2g} to {high:.2g}", covers))
    return Table(header, rows, task.name)


def _figure(tasks: Mapping[Task, RatesByMetric]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6.5), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, (task, values) in zip(panels.flat, tasks.items(), strict=True):
        _panel(axes, values)
        axes.set_title(task.name, fontsize=10)
    figure.supxlabel("requested false-alarm rate", fontsize=10)
    figure.supylabel("realised / requested", fontsize=10)
    lines, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=3, frameon=False)
    return figure


def _panel(axes: Axes, rates: RatesByMetric) -> None:
    for index, (name, marker) in enumerate(zip(METRICS, "o^s", strict=True)):
        for rate in RATES:
            if values := rates[name, rate]:
                ratios = np.array([(case.rate, case.rate.low, case.rate.high) for case in values]).mean(axis=0) / rate
                mean, low, high = ratios.clip(_LEAST)
                where = RATES.index(rate) + (index - 1) / 5  # side by side
                label = name if rate == RATES[0] else None
                axes.errorbar(
                    where, mean, [[mean - low], [high - mean]], color=f"C{index}", marker=marker, capsize=3, label=label
                )
    axes.axhline(1, color="grey", linestyle="--", linewidth=1)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlim(-0.5, len(RATES) - 0.5)
    axes.set_xticks(range(len(RATES)), [f"{rate:g}" for rate in RATES])
    axes.grid(alpha=0.3)
