"""Scores of a loss and a rule on a task: computed once, and kept beside the network."""

from __future__ import annotations

import hashlib

from lookdown.adaptation import AUTO, AUTO_OF_DIFFERENCES, CPLFPA
from lookdown.atomic import write_file
from lookdown.evaluation import Evaluation
from lookdown.lab.paper.experiment import Experiment, Trunk
from lookdown.lab.paper.rules import ADAPTED, CLASSICAL, CPLFPA_AT_TEST, DIFFERENCES_ADAPTED, RULES
from lookdown.lab.paper.tasks import Task

__all__ = ["score", "scores"]

_SETTINGS = {CPLFPA_AT_TEST: CPLFPA, ADAPTED: AUTO, DIFFERENCES_ADAPTED: AUTO_OF_DIFFERENCES}
_REVISIONS = {ADAPTED: 6}  # the default is 1; raise it when a rule changes, so that old scores are not used


def scores(experiment: Experiment, task: Task, loss: str, rule: str, trunk: Trunk = "first") -> list[Evaluation]:
    """Return the evaluation of a loss and a rule for each seed."""
    return [score(experiment, task, loss, rule, seed, trunk) for seed in experiment.each_seed]


def score(experiment: Experiment, task: Task, loss: str, rule: str, seed: int, trunk: Trunk = "first") -> Evaluation:
    """Return the evaluation of one seed."""
    recipe = experiment.recipe(task, loss, seed, trunk)
    roles = experiment.roles(task, seed)
    # The network does not depend on the metric, so its folder does not name it.
    key = hashlib.sha256(f"{_REVISIONS.get(rule, 1)} {rule} {_SETTINGS.get(rule)} {recipe.metric}".encode())
    for rows in (roles.query, roles.gallery):
        key.update(rows.tobytes())
    kept = experiment.trained(task, recipe, trunk=trunk).path / f"scores-{key.hexdigest()[:16]}.json"
    if not kept.is_file():
        evaluation = (RULES | CLASSICAL)[rule](experiment.case_of(task, recipe, trunk=trunk), seed)
        write_file(kept, evaluation.to_json() + "\n")
    return Evaluation.from_json(kept.read_text())
