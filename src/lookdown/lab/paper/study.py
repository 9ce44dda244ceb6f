"""The headline study: every loss, compared in every way, on data that were not looked at when settings were chosen.

A baseline is compared by the cosine. Testing by a ratio and adaptation work on any embedding, so every loss has them.
The paper's ways to test and ours have columns and targets of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lookdown.evaluation import Evaluation
from lookdown.evaluation.query_scores import as_estimate
from lookdown.lab.paper.choices import best_baseline, choose
from lookdown.lab.paper.experiment import Experiment
from lookdown.lab.paper.loss_comparison import BASELINES
from lookdown.lab.paper.loss_scores import score
from lookdown.lab.paper.report import Page, Table, half_width, spread
from lookdown.lab.paper.rules import (
    ADAPTED,
    CLASSICAL,
    COSINE,
    CPLFPA_AT_TEST,
    DIFFERENCES_ADAPTED,
    KINDS,
    RATIO,
    RULES,
)
from lookdown.lab.paper.tasks import TASKS, Task
from lookdown.metrics import Estimate

__all__ = ["TaskStudy", "make", "run"]

_BEST = "best by validation"  # a row of its own where not every loss is trained: in each split another one

_WHOSE = {RATIO: "the paper's", CPLFPA_AT_TEST: "the paper's", KINDS: "ours", ADAPTED: "ours"}
_BEFORE = {RATIO: (), CPLFPA_AT_TEST: (RATIO,), KINDS: (RATIO,), ADAPTED: (RATIO, DIFFERENCES_ADAPTED)}

Scores = dict[str, dict[str, list[Evaluation]]]  # row, rule, seed


@dataclass(frozen=True, slots=True)
class TaskStudy:
    """A task, all that was scored on it, and the baseline that validation would have chosen in each split."""

    task: Task
    scores: Scores
    by_validation: tuple[str, ...]

    @property
    def by_test(self) -> str:
        """The baseline that is best on the test by the cosine: chosen after the fact, in its favour."""
        baselines = [row for row in self.scores if row not in ("glrt", "unified")]
        return max(baselines, key=lambda row: _mean(self.scores[row][COSINE]))


def make(experiment: Experiment) -> Page:
    """Return the tables of all four tasks, and whether the targets are met."""
    parts: list[Table | str] = []
    for task in TASKS if experiment.scale != "cpu" else [task for task in TASKS if task.images == "MAR"]:
        study = run(experiment, task)
        judged = (CPLFPA_AT_TEST, ADAPTED) if task.unseen else (RATIO, KINDS)  # the paper's way, and ours
        verdicts = [_verdict(study, rule) for rule in judged]
        parts += [f"## {task.name}\n\n{experiment.caption(task)}", _table(study), *verdicts]
    chosen = "the settings that were best for it on validation splits (choose.md)"
    if experiment.scale == "cpu":
        chosen = (
            "the options that were best for it with a frozen trunk on validation splits (../choose.md), which have "
            "chosen the best baseline of each split as well; learning rates and epochs are those of the recipe"
        )
    caption = (
        f"mAP in percent. Every loss was trained from the same first stage, with the same batches, views and number of "
        f"updates, and {chosen}. The paper's columns: `cosine`; `+ GLRT at test`, the likelihood ratio of differences "
        "of the training chips; `+ CPLFPA`, its adaptation. Ours: `+ kinds at test`, the likelihood ratio of the kinds "
        "of the training chips, its temperature chosen on the validation split of the same task, loss and seed, and "
        "its default where the kinds are unseen; `+ adaptation`, `lookdown.adapt` as it comes, by pseudo-kinds; "
        "`+ adaptation of differences`, what its default was, the ratio of differences of the same clusters. Neither: "
        "`+ target whitening`, the inverse covariance of the target; LDA, KISSME and PLDA, fitted to the embeddings of "
        "the identity loss."
    )
    return Page(f"The headline study, scale {experiment.scale}", caption, parts)


def run(experiment: Experiment, task: Task) -> TaskStudy:
    """Train and score every loss of a scale on a task."""
    best = _validated_best(experiment, task)
    seeds = experiment.each_seed
    rows: dict[str, Sequence[str]] = {loss: [loss] * len(seeds) for loss in (*BASELINES, "unified", "glrt")}
    if experiment.scale == "cpu":  # what two cores can do
        rows = {name: rows[name] for name in ("identity", "unified", "glrt")}
        rows = {_BEST: best, **rows}
    rules = {name: (*RULES, *(CLASSICAL if name == "identity" else ())) for name in rows}
    scores = {
        name: {
            rule: [score(experiment, task, loss, rule, seed) for loss, seed in zip(losses, seeds, strict=True)]
            for rule in rules[name]
        }
        for name, losses in rows.items()
    }
    return TaskStudy(task, scores, best)


def difference(ours: Sequence[Evaluation], theirs: Sequence[Evaluation]) -> tuple[list[float], Estimate]:
    """Return the difference in mAP for each seed, and that of all with an interval over scene groups, in percent.

    Seeds are splits of the same data, so a scene may ask in several: groups are drawn once for all seeds.
    """
    groups = sorted({group for one in ours for group in one.queries.groups or ()})
    column = {group: i for i, group in enumerate(groups)}
    sums, counts = np.zeros((2, len(ours), len(groups)))
    for seed, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert a.queries.groups is not None
        scored = a.queries.scored
        gain = 100 * (a.queries.average_precision - b.queries.average_precision)[scored]
        where = [column[group] for group, there in zip(a.queries.groups, scored, strict=True) if there]
        np.add.at(sums[seed], where, gain)
        np.add.at(counts[seed], where, 1)
    each = (sums.sum(axis=1) / counts.sum(axis=1)).tolist()
    draws = np.random.default_rng(0).multinomial(len(groups), np.full(len(groups), 1 / len(groups)), 2000)
    asked = draws @ counts.T
    means = np.where(asked > 0, draws @ sums.T / np.maximum(asked, 1), np.nan)
    return each, as_estimate(float(np.mean(each)), np.nanmean(means, axis=1), level=0.95, groups=len(groups))


def _table(study: TaskStudy) -> Table:
    rows = [
        [loss, *(spread([100 * one.mean_average_precision for one in ways[name]]) for name in RULES)]
        for loss, ways in study.scores.items()
    ]
    for name in CLASSICAL:
        values = [100 * one.mean_average_precision for one in study.scores["identity"][name]]
        rows.append([f"identity, {name}", spread(values), *[""] * (len(RULES) - 1)])
    return Table(("loss", *RULES), rows)


def _verdict(study: TaskStudy, rule: str) -> str:
    """Say how far the GLRT loss under one rule is ahead of what it is to be measured by."""
    ours = study.scores["glrt"][rule]
    rows = [_BEST if _BEST in study.scores else loss for loss in study.by_validation]
    chosen, likewise = ([study.scores[row][way][seed] for seed, row in enumerate(rows)] for way in (COSINE, rule))
    by_test = "better by test of the two baselines that were run" if _BEST in study.scores else "best baseline by test"
    against = {
        f"best baseline by validation, cosine ({', '.join(study.by_validation)})": chosen,
        f"{by_test}, cosine ({study.by_test})": study.scores[study.by_test][COSINE],
        "unified loss, cosine": study.scores["unified"][COSINE],
        f"best baseline by validation, {rule}": likewise,
        f"identity loss, {rule}": study.scores["identity"][rule],
        f"unified loss, {rule}": study.scores["unified"][rule],
    }
    against |= {f"GLRT, {other}": study.scores["glrt"][other] for other in _BEFORE[rule]}
    lines = [_line(*pair, ours) for pair in against.items()]
    return "\n".join([f"GLRT {rule} ({_WHOSE[rule]}) against:", "", *lines])


def _line(name: str, theirs: Sequence[Evaluation], ours: Sequence[Evaluation]) -> str:
    each, whole = difference(ours, theirs)
    seeds = "" if len(each) < 2 else f"paired over {len(each)} seeds ± {half_width(each):.1f}; "
    groups = f"95 % over scene groups {whole.low:+.1f} to {whole.high:+.1f}"
    if not whole.supported:
        groups = "fewer than ten scene groups, so no interval"
    return f"- {name}: {whole:+.1f} mAP ({seeds}{groups})"


def _validated_best(experiment: Experiment, task: Task) -> tuple[str, ...]:
    """Return the baseline that validation puts first in each split; for a fine-tuned network, that of its head."""
    judged = (
        experiment if experiment.scale in ("head", "smoke") else Experiment("head", experiment.runs, experiment.data)
    )
    return tuple(
        experiment.best_baseline(task, seed) or best_baseline(choose(judged, task, seed))
        for seed in experiment.each_seed
    )


def _mean(evaluations: Sequence[Evaluation]) -> float:
    return float(np.mean([one.mean_average_precision for one in evaluations]))
