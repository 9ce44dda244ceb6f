"""The settings that each loss is trained with: the best of at most eight on a validation split.

Every split of the study has choices of its own. They are made on its training part, so its queries and gallery have no
influence. The number of epochs is chosen first, by the identity loss, and is the same for every loss. The validation
split holds back classes where the task is of unseen classes, and locations elsewhere. Baselines are judged by the
cosine, which they are trained for. The GLRT loss is judged by the likelihood ratio, adapted to the target where the
classes are unseen. For the baselines the shrinkage of the ratio at test is chosen, too; the GLRT loss has its own.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from lookdown.adaptation import adapt
from lookdown.atomic import write_file
from lookdown.config import read_recipe, to_toml
from lookdown.errors import InputError
from lookdown.lab.paper.experiment import BEST, EVERY, Experiment
from lookdown.lab.paper.loss_comparison import BASELINES
from lookdown.lab.paper.report import Page, Table
from lookdown.lab.paper.tasks import TASKS, Task
from lookdown.losses import LOSSES
from lookdown.metrics import Cosine
from lookdown.training.recipe import RECIPES, Recipe

__all__ = ["FEW", "GRID", "Choice", "best_baseline", "choose", "make", "write_choices"]

Changes = tuple[str, ...]
RATES = (0.003, 0.01, 0.03)  # learning rates of stage 2
LESS = "stage2.alpha=0.3"  # of the identity loss beside the loss that is compared
SHRINKAGES = (0.03, 0.1, 0.5)  # of the ratio at test
_REVISIONS = {"cosine": 1, "ratio": 1, "adapted": 6}  # raised when a rule changes, so that old scores are not used
FEW = 1  # settings of a loss that the scale `smoke` tries


def _grid(name: str, *values: object) -> tuple[Changes, ...]:
    """Return two values of an option, each with three learning rates, and the last with less of the identity loss."""
    steps = (*((f"stage2.learning_rate={rate:g}",) for rate in RATES), (f"stage2.learning_rate={RATES[-1]:g}", LESS))
    return tuple((*step, f"stage2.options.{name}={value}") for step, value in product(steps, values))


GRID: dict[str, tuple[Changes, ...]] = {
    EVERY: tuple(
        (f"stage1.epochs={first}", f"stage2.epochs={second}") for first, second in ((3, 3), (8, 6), (15, 10), (15, 30))
    ),
    "identity": tuple((f"stage2.learning_rate={rate:g}",) for rate in (0.001, *RATES)),
    "sphere": _grid("margin", 2, 4),
    "triplet": _grid("margin", 0.1, 0.3),
    "lifted": _grid("margin", 0.5, 1.0),
    "instance": _grid("gamma", 4, 16),
    "contrastive": _grid("margin", 0.5, 1.0),
    "circle": _grid("gamma", 16, 80),
    "sp": _grid("temperature", 0.04, 0.15),
    "uce": _grid("scale", 16, 64),
    "ccl": _grid("scale", 16, 64),
    "unified": _grid("temperature", 4, 8),
    "glrt": tuple(
        (
            f"stage2.learning_rate={rate}",
            *less,
            f"stage2.options.temperature={temperature}",
            f"metric.shrinkage={shrinkage}",
        )
        for rate, less, temperature, shrinkage in (
            (0.03, (LESS,), 4, 0.8), (0.01, (LESS,), 4, 0.8), (0.03, (LESS,), 4, 0.5), (0.01, (), 4, 0.5),
            (0.01, (), 32, 0.1), (0.003, (), 8, 0.1), (0.01, (), 16, 0.03), (0.003, (), 16, 0.03),
        )
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choice:
    """The settings of a loss in a split, their mAP in percent, and the mAP of every setting that was tried."""

    changes: Changes
    score: float
    tried: tuple[float, ...]


def choose(experiment: Experiment, task: Task, seed: int) -> dict[str, Choice]:
    """Return the choice for every loss in a split; scores are kept and not computed twice."""
    if experiment.scale not in ("head", "smoke"):
        raise InputError(f"settings are chosen at --scale head, and {experiment.scale} takes them over; choose there")
    judge = _Judge(experiment, task, seed)
    chosen = {EVERY: _best(judge, EVERY, "identity", GRID[EVERY], ())}
    common = chosen[EVERY].changes
    for loss in LOSSES:
        best = _best(judge, loss, loss, GRID[loss], common)
        if loss != "glrt":
            candidates = tuple((*best.changes, f"metric.shrinkage={amount}") for amount in SHRINKAGES)
            ratio = {changes: judge.score(loss, (*common, *changes))["ratio"] for changes in candidates}
            best = replace(best, changes=max(ratio, key=lambda changes: ratio[changes]))
        chosen[loss] = best
    return chosen


def best_baseline(chosen: dict[str, Choice]) -> str:
    """Return the baseline that validation puts first."""
    return max((loss for loss in BASELINES if loss in chosen), key=lambda loss: chosen[loss].score)


def write_choices(chosen: dict[str, dict[int, dict[str, Choice]]], file: Path) -> None:
    """Write choices by task, split and loss, as an `Experiment` reads them."""
    lines = [
        "# Changes of recipes/study_head.toml that were chosen on validation splits, by task, split and loss.",
        "# Written by `lookdown reproduce choose`; the scores are in docs/results/choose.md.",
    ]
    for task, splits in chosen.items():
        for seed, losses in splits.items():
            lines += ["", f'[{task}."seed {seed}"]']
            lines += [f"{json.dumps(loss)} = {json.dumps(list(one.changes))}" for loss, one in losses.items()]
            lines.append(f"{json.dumps(BEST)} = {json.dumps([best_baseline(losses)])}")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, "\n".join(lines) + "\n")


def make(experiment: Experiment) -> Page:
    """Choose for every task and split, write the choices, and show what was tried."""
    if experiment.choices.is_relative_to(RECIPES) and RECIPES.parent.name == "lookdown":
        raise InputError("the choices for the paper's data come with lookdown; choose for your own with --data")
    chosen: dict[str, dict[int, dict[str, Choice]]] = {
        task.name: {seed: choose(experiment, task, seed) for seed in experiment.each_seed} for task in TASKS
    }
    write_choices(chosen, experiment.choices)
    caption = (
        "mAP in percent on a validation split that is cut from what trains in a split of the study: places are held "
        "back, and classes too where the task is of unseen ones. Each split has choices of its own. Baselines are "
        "judged by the cosine, GLRT by its ratio, adapted to the validation target where classes are unseen. Every "
        "loss has the same first stage, batches, views and number of updates; `every loss` is how many epochs of both "
        "stages, judged by the identity loss. Chosen settings are in bold; they are in `recipes/choices`, with the "
        "shrinkage of the ratio at test, which the same splits have chosen."
    )
    return Page("Hyperparameters, chosen on validation splits", caption, [_table(*item) for item in chosen.items()])


def _table(task: str, splits: dict[int, dict[str, Choice]]) -> Table:
    """Return a row for each setting of each loss; what was chosen in a split is in bold."""
    rows = []
    for loss, first in next(iter(splits.values())).items():
        for index in range(len(first.tried)):
            cells = []
            for losses in splits.values():
                score, choice = losses[loss].tried[index], losses[loss]
                cells.append(f"**{score:.1f}**" if index == choice.tried.index(choice.score) else f"{score:.1f}")
            rows.append([loss if index == 0 else "", _short(GRID[loss][index]), *cells])
    return Table(("loss", "setting", *(f"split {seed}" for seed in splits)), rows, task)


@dataclass(frozen=True, slots=True)
class _Judge:
    """Scores settings on the validation split of a task and a seed, and keeps what it has scored."""

    experiment: Experiment
    task: Task
    seed: int

    def score(self, loss: str, changes: Changes) -> dict[str, float]:
        """Return the mAP by every rule that choices are made by."""
        base = RECIPES / f"study_{self.experiment.scale}.toml"
        recipe = replace(read_recipe(Recipe, base, [f"stage2.loss={loss}", *changes]), seed=self.seed)
        key = hashlib.sha256(
            f"{_REVISIONS[self.rule(loss)]} {self.experiment.domain(self.task).fingerprint} {to_toml(recipe)}".encode()
        )
        kept = self.experiment.runs / "choosing" / f"{self.task.name}-{loss}-{key.hexdigest()[:16]}.json"
        if not kept.is_file():
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_file(kept, json.dumps(self._compute(recipe)) + "\n")
        scores: dict[str, float] = json.loads(kept.read_text())
        return scores

    def _compute(self, recipe: Recipe) -> dict[str, float]:
        case = self.experiment.case_of(self.task, recipe, validation=True)
        scores = {
            "cosine": case.mean_average_precision(Cosine().fit(case.target)),
            "ratio": case.mean_average_precision(case.source),
        }
        if recipe.stage2.loss == "glrt" and self.task.unseen:
            adapted = adapt(case.source, case.target, cluster_by=case.steady_target, seed=self.seed).metric
            scores["adapted"] = case.mean_average_precision(adapted)
        return scores

    def rule(self, loss: str) -> str:
        """Return what a loss is judged by."""
        if loss != "glrt":
            return "cosine"
        return "adapted" if self.task.unseen else "ratio"


def _best(judge: _Judge, name: str, loss: str, grid: tuple[Changes, ...], common: Changes) -> Choice:
    candidates = grid[:FEW] if judge.experiment.scale == "smoke" else grid
    scores = [judge.score(loss, (*common, *changes))[judge.rule(name)] for changes in candidates]
    score = max(scores)
    return Choice(candidates[scores.index(score)], score, tuple(scores))


def _short(changes: Changes) -> str:
    """Return a setting for a reader: without the tables of the recipe that its names belong to."""
    return ", ".join(change.split(".", 1)[1].removeprefix("options.").replace("=", " ") for change in changes)
