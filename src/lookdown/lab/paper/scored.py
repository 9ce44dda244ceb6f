"""What a network and a way to compare come to on a task: scored once, and kept beside the network."""

from __future__ import annotations

import hashlib

from lookdown.adaptation import AUTO
from lookdown.evaluation import Evaluation
from lookdown.lab.paper.rules import ADAPTED, CLASSICAL, RULES
from lookdown.lab.paper.setting import Setting, Trunk
from lookdown.lab.paper.tasks import Task

__all__ = ["score", "scores"]

_REVISIONS = {ADAPTED: 5}  # 1 if not named; raised when a rule changes, so that old scores are not used


def scores(setting: Setting, task: Task, loss: str, rule: str, trunk: Trunk = "first") -> list[Evaluation]:
    """Return the evaluation of a loss and a rule for each seed."""
    return [score(setting, task, loss, rule, seed, trunk) for seed in setting.each_seed]


def score(setting: Setting, task: Task, loss: str, rule: str, seed: int, trunk: Trunk = "first") -> Evaluation:
    """Return the evaluation of one seed."""
    recipe = setting.recipe(task, loss, seed, trunk)
    roles = setting.roles(task, seed)
    key = hashlib.sha256(
        f"{_REVISIONS.get(rule, 1)} {rule} {AUTO} {recipe.metric}".encode()
    )  # the metric is of no matter to the network
    for rows in (roles.query, roles.gallery):
        key.update(rows.tobytes())
    kept = setting.trained(task, recipe, trunk=trunk).path / f"scores-{key.hexdigest()[:16]}.json"
    if not kept.is_file():
        found = (RULES | CLASSICAL)[rule](setting.case_of(task, recipe, trunk=trunk), seed)
        part = kept.with_name(f".{kept.name}.part")
        part.write_text(found.to_json() + "\n")
        part.rename(kept)
    return Evaluation.from_json(kept.read_text())
