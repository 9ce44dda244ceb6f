"""Tables IX to XII: ten losses, each compared by the cosine, and ours with adaptation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lookdown.adaptation import CPLFPA, adapt
from lookdown.evaluation import Evaluation
from lookdown.lab.paper.experiment import Experiment
from lookdown.lab.paper.loss_scores import scores
from lookdown.lab.paper.paper_values import COMPARISON, Scores
from lookdown.lab.paper.report import Page, Table, percent, spread
from lookdown.lab.paper.rules import ADAPTED, COSINE, CPLFPA_AT_TEST, RATIO, base_clusters
from lookdown.lab.paper.tasks import MAR, SHIPS, UDA_MAR, UDA_SHIPS, Task
from lookdown.lab.paper.trained_network import Case
from lookdown.metrics import Metric

__all__ = ["BASELINES", "make"]

BASELINES = ("identity", "sphere", "triplet", "lifted", "instance", "contrastive", "circle", "sp", "uce", "ccl")
_TASKS: dict[int, Task] = {9: SHIPS, 10: MAR, 11: UDA_SHIPS, 12: UDA_MAR}
_OFFSETS = range(-3, 4)


def make(experiment: Experiment, number: int) -> Page:
    """Return a table of the comparison, with the paper's figures beside ours."""
    task, theirs = _TASKS[number], COMPARISON[number]
    rows = [_row(f"{loss} loss", scores(experiment, task, loss, COSINE), theirs[loss]) for loss in BASELINES]
    rows.append(_row("unified loss on cosine", scores(experiment, task, "unified", COSINE), None))
    rows.append(_row("GLRT, not adapted", scores(experiment, task, "glrt", RATIO), None))
    rows.append(_row("GLRT, CPLFPA, base K", scores(experiment, task, "glrt", CPLFPA_AT_TEST), theirs["ours"]))
    best = [_clustered(experiment, task, seed) for seed in experiment.each_seed]
    rows.append(_row("GLRT, CPLFPA, K by validation", best, theirs["ours, best"]))
    rows.append(_row("GLRT, our adaptation", scores(experiment, task, "glrt", ADAPTED), None))
    header = ("", "mAP", "R@50", "P@50", "paper: mAP", "R@50", "P@50")
    caption = (
        f"{experiment.caption(task)} Every loss is trained from the same first stage with the same batches and number "
        "of updates; baselines are compared by the cosine. The base number of clusters K is that of the classes "
        "searched and one for the background; the second row of CPLFPA has the best of K - 3 to K + 3 on the "
        "validation split, beside the paper's second row. The last row is ours, `lookdown.adapt` as it comes."
    )
    return Page(
        f"Table {('IX', 'X', 'XI', 'XII')[number - 9]}: comparison on {task.name}", caption, [Table(header, rows)]
    )


def _clustered(experiment: Experiment, task: Task, seed: int) -> Evaluation:
    """Adapt with as many clusters more or fewer than classes as did best on the validation of the same split."""
    tried = experiment.case(task, "glrt", seed, validation=True)
    scores = [tried.mean_average_precision(_adapted(tried, offset, seed)) for offset in _OFFSETS]
    case = experiment.case(task, "glrt", seed)
    return case.evaluate(_adapted(case, _OFFSETS[int(np.argmax(scores))], seed))


def _adapted(case: Case, offset: int, seed: int) -> Metric:
    clusters = max(2, base_clusters(case) + offset)
    return adapt(case.source, case.target, clusters=clusters, method=CPLFPA, seed=seed).metric


def _row(name: str, evaluations: Sequence[Evaluation], theirs: Scores | None) -> list[str]:
    cells = [spread([100 * getattr(one, measure) for one in evaluations]) for measure in Scores._fields]
    return [name, *cells, *(percent(value) for value in theirs or (None,) * 3)]
