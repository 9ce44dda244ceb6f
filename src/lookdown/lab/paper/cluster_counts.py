"""Table V: what a wrong number of clusters costs when the metric is adapted to the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lookdown.adaptation import CPLFPA, adapt
from lookdown.lab.paper.experiment import Experiment
from lookdown.lab.paper.paper_values import BASE_CLUSTERS, CLUSTERS
from lookdown.lab.paper.report import Page, PageFigure, Table, half_width, percent, span, spread
from lookdown.lab.paper.rules import base_clusters
from lookdown.lab.paper.tasks import TASKS, Task
from lookdown.lab.paper.trained_network import Case

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["OFFSETS", "make", "sweep"]

OFFSETS = (-3, -2, -1, 0, 1, 2, 3)

Sweep = Mapping[int, float]  # offset to mAP in percent


def make(experiment: Experiment) -> Page:
    """Return the table of each task, and all four as curves."""
    sweeps, tables = {}, []
    for task in TASKS:
        cases = [experiment.case(task, "glrt", seed) for seed in experiment.each_seed]
        sweeps[task] = [sweep(case, seed) for seed, case in enumerate(cases)]
        tables.append(_table(task, sweeps[task], [base_clusters(case) for case in cases]))
    captions = "\n".join(experiment.caption(task) for task in TASKS)
    method = (
        "mAP in percent after adaptation by the paper's Algorithm 3, of the network that was trained by the likelihood "
        "ratio. The base number of clusters is that of the classes searched and one for the background, counted in "
        "our data and, beside it, in the paper's. The change is that from the base number, seed by seed."
    )
    legend = "Change of mAP from that with the base number of clusters; bars are 95 % intervals over seeds."
    picture = PageFigure("cluster_counts", _figure(sweeps), legend)
    return Page("Table V: the number of clusters", f"{captions}\n\n{method}", (*tables, picture))


def sweep(case: Case, seed: int) -> dict[int, float]:
    """Return the mAP for numbers of clusters around the base, in percent; fewer than 2 are left out."""
    scores = {}
    for offset in OFFSETS:
        if (clusters := base_clusters(case) + offset) >= 2:
            adapted = adapt(case.source, case.target, clusters=clusters, method=CPLFPA, seed=seed)
            scores[offset] = case.mean_average_precision(adapted.metric)
    return scores


def _table(task: Task, sweeps: Sequence[Sweep], bases: Sequence[int]) -> Table:
    header = ("clusters less the base", "K", "mAP", "change", "K in the paper", "mAP in the paper")
    rows = []
    for offset, paper in zip(OFFSETS, CLUSTERS[task.name], strict=True):
        values = [of_seed[offset] for of_seed in sweeps if offset in of_seed]
        ours = [percent(None)] * 3
        if values:
            counts = span([base + offset for base in bases if base + offset >= 2])
            ours = [counts, spread(values), spread(_changes(sweeps, offset), sign=True) if offset else percent(None)]
        rows.append((f"{offset:+d}", *ours, f"{BASE_CLUSTERS[task.name] + offset}", percent(paper)))
    return Table(header, rows, task.name)


def _changes(sweeps: Sequence[Sweep], offset: int) -> list[float]:
    return [of_seed[offset] - of_seed[0] for of_seed in sweeps if offset in of_seed]


def _figure(sweeps: Mapping[Task, Sequence[Sweep]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True).flat
    for panel, (task, values) in zip(panels, sweeps.items(), strict=True):
        _panel(panel, task, values)
    figure.supxlabel("clusters less the base number", fontsize=10)
    figure.supylabel("change of mAP, percentage points", fontsize=10)
    lines, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=2, frameon=False)
    return figure


def _panel(axes: Axes, task: Task, sweeps: Sequence[Sweep]) -> None:
    changes = {offset: values for offset in OFFSETS if (values := _changes(sweeps, offset))}
    means = [float(np.mean(values)) for values in changes.values()]
    bars = [float(np.nan_to_num(half_width(values))) for values in changes.values()]  # one seed has no interval
    paper = np.array(CLUSTERS[task.name])
    axes.plot(OFFSETS, paper - paper[OFFSETS.index(0)], "s--", color="grey", markersize=4, label="paper")
    axes.errorbar(list(changes), means, bars, marker="o", capsize=3, label="ours")
    axes.set_title(task.name, fontsize=10)
    axes.set_xticks(OFFSETS)
    axes.grid(alpha=0.3)
