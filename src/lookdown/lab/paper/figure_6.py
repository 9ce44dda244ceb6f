"""Figure 6 of the paper: the first ten results of four methods for a few queries of every task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lookdown.adaptation import adapt
from lookdown.chips.pixels import letterbox, read_chip
from lookdown.lab.paper.domains import Domain, Rows
from lookdown.lab.paper.experiment import Experiment
from lookdown.lab.paper.report import Page, PageFigure, Table
from lookdown.lab.paper.rules import base_clusters
from lookdown.lab.paper.tasks import TASKS, Task
from lookdown.lab.paper.trained_network import Case
from lookdown.metrics import Cosine, Metric, top_k

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIRST", "METHODS", "RIGHT", "WRONG", "FirstResults", "make", "results", "sample_queries"]

METHODS = ("identity, cosine", "unified, cosine", "GLRT", "GLRT + CPLFPA")
FIRST = 10
RIGHT, WRONG = ("#0072B2", "solid"), ("#D55E00", "dashed")  # a colour and a line, for eyes and printers without colour
_QUERIES = 3
_PIXELS = 72
_GAP = 0.4  # between queries
_RESULTS = 3.4  # where the middle of the first result is
_WIDE = _RESULTS + FIRST - 0.3


@dataclass(frozen=True, slots=True)
class FirstResults:
    """The first results of every query by one method, as rows of the domain, best first."""

    rows: Rows  # (queries, FIRST)
    right: NDArray[np.bool_]  # (queries, FIRST)


def make(experiment: Experiment) -> Page:
    """Draw every task for the first seed."""
    one = replace(experiment, seeds=1)
    pictures, means = [], []
    for letter, task in zip("abcd", TASKS, strict=True):
        results_of_task = results(one, task)
        domain, asked = one.domain(task), one.roles(task, 0).query
        chosen = sample_queries(domain.labels[asked])
        name = f"figure_6_{task.name.lower()}"
        figure = _draw(domain, asked, chosen, results_of_task, f"({letter}) {task.name}")
        legend = f"({letter}) {task.name}: first {FIRST} results of queries drawn by chance, no two of a class."
        pictures.append(PageFigure(name, figure, legend, shows_chips=experiment.research_only(task)))
        means.append(
            [float(one_method.right.sum(axis=1).mean()) for one_method in results_of_task] + [_most(one, task)]
        )
    legend = (
        "Results of the query's class have a solid blue frame, others, background among them, a dashed orange one. "
        "Two methods score by cosine; GLRT is the likelihood ratio of the training chips; CPLFPA takes it anew from "
        "the target, with one cluster for each class there and one for the background."
    )
    caption = "\n\n".join([*(one.caption(task) for task in TASKS), legend])
    return Page("Figure 6: the first ten results", caption, (_table(means), *pictures))


def results(experiment: Experiment, task: Task) -> list[FirstResults]:
    """Return what each method finds, in the order of `METHODS`."""
    identity, unified, glrt = (experiment.case(task, loss, 0) for loss in ("identity", "unified", "glrt"))
    adapted = adapt(glrt.source, glrt.target, clusters=base_clusters(glrt), method="cplfpa").metric
    cosine = Cosine().fit(glrt.embeddings)
    pairs: tuple[tuple[Case, Metric], ...] = (
        (identity, cosine),
        (unified, cosine),
        (glrt, glrt.source),
        (glrt, adapted),
    )
    return [_first(case, metric) for case, metric in pairs]


def sample_queries(labels: NDArray[np.str_]) -> NDArray[np.int64]:
    """Draw a few queries, no two of a class, since most of some data are of one; they are the same every time."""
    order = np.random.default_rng(0).permutation(len(labels))
    firsts = np.unique(labels[order], return_index=True)[1]
    return order[np.sort(firsts)[:_QUERIES]]


def _first(case: Case, metric: Metric) -> FirstResults:
    asked, searched = case.roles.query, case.roles.gallery
    positions = top_k(metric, case.embeddings[asked], case.embeddings[searched], FIRST).indices
    rows = searched[positions]
    return FirstResults(rows, case.domain.labels[rows] == case.domain.labels[asked][:, None])


def _most(experiment: Experiment, task: Task) -> float:
    """Return how many of the first could be right at most: rare classes have fewer than ten in the gallery."""
    labels, roles = experiment.domain(task).labels, experiment.roles(task, 0)
    there = (labels[roles.query][:, None] == labels[roles.gallery]).sum(axis=1)
    return float(np.minimum(there, FIRST).mean())


def _table(means: Sequence[Sequence[float]]) -> Table:
    """`means` has a row a task, a column a method and one for the most that could be had."""
    rows = [
        [name, *(f"{task[i]:.2f}" for task in means)]
        for i, name in enumerate([*METHODS, "all that are there, up to ten"])
    ]
    return Table(
        ["method", *(task.name for task in TASKS)], rows, "Right ones among the first ten, mean over all queries"
    )


def _draw(
    domain: Domain, asked: Rows, chosen: NDArray[np.int64], methods: Sequence[FirstResults], title: str
) -> Figure:
    """Draw a row a method, and a wider gap after each query; one step is the side of a chip."""
    from matplotlib.figure import Figure

    high = len(chosen) * (len(METHODS) + _GAP)
    figure = Figure(figsize=(0.8 * _WIDE, 0.8 * (high + 1)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    axes.text(0.05, -0.7, title, fontsize=12, va="center")
    axes.text(_WIDE - 0.25, -0.7, "right: solid blue, wrong: dashed orange", ha="right", va="center", fontsize=9)
    for rank in range(FIRST):
        axes.text(_RESULTS + rank, -0.25, str(rank + 1), ha="center", va="center", fontsize=9)
    for group, query in enumerate(chosen):
        top = group * (len(METHODS) + _GAP) + 0.5
        _show(axes, domain, asked[query], (0.5, top), ("black", "solid"))
        axes.text(0.05, top + 0.6, f"query:\n{domain.labels[asked[query]]}", ha="left", va="top", fontsize=8)
        for line, (method, results_of) in enumerate(zip(METHODS, methods, strict=True)):
            rows, right = results_of.rows[query], results_of.right[query]
            heading = f"{method}\n{right.sum()} of {len(right)} right"
            axes.text(_RESULTS - 0.65, top + line, heading, ha="right", va="center", fontsize=9)
            for rank, (row, is_right) in enumerate(zip(rows, right, strict=True)):
                _show(axes, domain, row, (_RESULTS + rank, top + line), RIGHT if is_right else WRONG)
    axes.set(xlim=(-0.1, _WIDE - 0.1), ylim=(high, -1), aspect="equal")  # rows go down
    return figure


def _show(axes: Axes, domain: Domain, row: int, centre: tuple[float, float], frame: tuple[str, str]) -> None:
    from matplotlib.patches import Rectangle

    (x, y), half = centre, 0.45
    chip = letterbox(read_chip(domain.paths[row])[:, :, :3], _PIXELS)
    axes.imshow(chip, extent=(x - half, x + half, y + half, y - half))
    side = 2 * half
    colour, line = frame
    axes.add_patch(
        Rectangle((x - half, y - half), side, side, fill=False, edgecolor=colour, linestyle=line, linewidth=2.6)
    )
