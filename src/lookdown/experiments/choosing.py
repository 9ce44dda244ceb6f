"""What each loss is trained with: the best of at most eight settings, on splits cut from what trains.

First the number of epochs is chosen, for every loss the same one, by the identity loss. The choices are written to
recipes/choices.toml before queries and gallery of a task are scored. For a task with unseen classes the validation
holds back classes, else places. A baseline is judged by the cosine, which it is trained for; the GLRT loss by the
likelihood ratio, adapted to the target where the classes are unseen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from lookdown.adaptation import adapt
from lookdown.config import read_recipe
from lookdown.experiments.report import Page, Table
from lookdown.experiments.setting import CHOICES, RECIPES, Setting
from lookdown.experiments.tasks import TASKS, Task
from lookdown.losses import LOSSES
from lookdown.metrics import Cosine
from lookdown.training.recipe import Recipe

__all__ = ["EVERY", "GRID", "choose", "chosen_common", "make", "write_choices"]

Changes = tuple[str, ...]
RATES = (0.003, 0.01, 0.03)  # learning rates of stage 2
FEW = 1  # settings of a loss in smoke
SEEDS = 2  # validation splits a setting is judged by


def _grid(rates: Iterable[float], *options: Changes) -> tuple[Changes, ...]:
    return tuple((f"stage2.learning_rate={rate:g}", *more) for rate, more in product(rates, options or ((),)))


def _options(name: str, *values: object) -> tuple[Changes, ...]:
    return tuple((f"stage2.options.{name}={value}",) for value in values)


EVERY = "every loss"
GRID: dict[str, tuple[Changes, ...]] = {
    EVERY: tuple((f"stage1.epochs={first}", f"stage2.epochs={second}") for first, second in ((3, 3), (8, 6), (15, 10))),
    "identity": _grid((0.001, 0.003, 0.01, 0.03)),
    "sphere": _grid(RATES, *_options("margin", 2, 4)),
    "triplet": _grid(RATES, *_options("margin", 0.1, 0.3)),
    "lifted": _grid(RATES, *_options("margin", 0.5, 1.0)),
    "instance": _grid(RATES, *_options("gamma", 4, 16)),
    "contrastive": _grid(RATES, *_options("margin", 0.5, 1.0)),
    "circle": _grid(RATES, *_options("gamma", 16, 80)),
    "sp": _grid(RATES, *_options("temperature", 0.04, 0.15)),
    "uce": _grid(RATES, *_options("scale", 16, 64)),
    "ccl": _grid(RATES, *_options("scale", 16, 64)),
    "unified": (*_grid(RATES, *_options("temperature", 4, 8)), *_grid((0.01,), *_options("temperature", 2, 16))),
    "glrt": tuple(
        (f"stage2.learning_rate={rate}", f"stage2.options.temperature={temperature}", f"metric.shrinkage={shrinkage}")
        for rate, temperature, shrinkage in (
            (0.01, 4, 0.5), (0.03, 4, 0.5), (0.01, 8, 0.5), (0.03, 8, 0.5),
            (0.01, 8, 0.1), (0.01, 16, 0.03), (0.003, 16, 0.03), (0.01, 32, 0.03),
        )
    ),
}  # fmt: skip


def choose(setting: Setting, task: Task, loss: str, common: Changes = ()) -> list[tuple[Changes, float]]:
    """Return every setting of a loss with its mAP on the validation splits, in percent; what was scored is kept.

    `common` changes the recipe of every loss.
    """
    kept = setting.runs / "choosing" / f"{setting.scale}-{task.name}-{loss}.json"
    known: dict[str, float] = json.loads(kept.read_text()) if kept.is_file() else {}
    found = []
    for changes in GRID[loss][:FEW] if setting.scale == "smoke" else GRID[loss]:
        key = " ".join((*common, *changes))
        if key not in known:
            known[key] = float(
                np.mean([_validated(setting, task, loss, (*common, *changes), seed) for seed in range(SEEDS)])
            )
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(known, indent=1))
        found.append((changes, known[key]))
    return found


def chosen_common(setting: Setting, task: Task) -> Changes:
    """Return the number of epochs that was chosen for every loss."""
    return max(choose(setting, task, EVERY), key=lambda pair: pair[1])[0]


def write_choices(chosen: dict[str, dict[str, Changes]], scale: str, file: Path = CHOICES) -> None:
    """Write the choices of a scale; a task that was not chosen for now is left out."""
    lines = [
        "# Changes of the study's recipes that were chosen on validation splits, by scale, task and loss.",
        f"# Written by `lookdown reproduce choose --scale {scale}`; the scores are in docs/results/choose.md.",
    ]
    for task, losses in chosen.items():
        lines += ["", f"[{scale}.{task}]"]
        lines += [f"{json.dumps(loss)} = {json.dumps(list(changes))}" for loss, changes in losses.items()]
    file.write_text("\n".join(lines) + "\n")


def make(setting: Setting) -> Page:
    """Choose for every loss and task, write the choices, and show what was tried."""
    chosen: dict[str, dict[str, Changes]] = {}
    tables = []
    for task in TASKS:
        rows = []
        common: Changes = ()
        for loss in (EVERY, *LOSSES):
            tried = choose(setting, task, loss, common)
            best, score = max(tried, key=lambda pair: pair[1])
            common = common or best
            chosen.setdefault(task.name, {})[loss] = best
            others = ", ".join(f"{value:.1f}" for _, value in tried)
            rows.append([loss, f"{score:.1f}", _short(best), others])
        tables.append(Table(("loss", "mAP", "chosen", "all that were tried"), rows, task.name))
    if setting.scale != "smoke":
        write_choices(chosen, setting.scale)
    caption = (
        f"Settings were chosen on {SEEDS} validation splits cut from what trains, places held back, and classes "
        "too where the task is of unseen ones; queries and gallery of the test were not scored for it. Baselines are "
        "judged by the cosine, GLRT by its ratio, adapted to the validation target where classes are unseen. Every "
        "loss has the same first stage, batches, views and number of updates."
    )
    return Page("Hyperparameters, chosen on validation splits", caption, tables)


def _seeds(setting: Setting) -> range:
    return range(1 if setting.scale == "smoke" else SEEDS)


def _validated(setting: Setting, task: Task, loss: str, changes: Changes, seed: int) -> float:
    base = [f"stage2.loss={'identity' if loss == EVERY else loss}", *changes]
    recipe = replace(read_recipe(Recipe, RECIPES / f"study_{setting.scale}.toml", base), seed=seed)
    case = setting.case_of(task, recipe, validation=True)
    if loss != "glrt":
        return case.mean_average_precision(Cosine().fit(case.target))
    if not task.unseen:
        return case.mean_average_precision(case.source)
    return case.mean_average_precision(adapt(case.source, case.target, seed=seed).metric)


def _short(changes: Changes) -> str:
    return ", ".join(change.removeprefix("stage2.").removeprefix("options.") for change in changes)
