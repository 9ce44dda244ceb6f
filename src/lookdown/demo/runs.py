"""The run of the demo, and the runs that it is compared with: one trunk, one first stage, three losses."""

from __future__ import annotations

from pathlib import Path

from lookdown.config import read_recipe
from lookdown.demo.worlds import Scale
from lookdown.experiments.setting import RECIPES
from lookdown.training.recipe import Recipe
from lookdown.training.training import Observer, resume, train

__all__ = ["LOSSES", "run_of", "train_run"]

LOSSES = ("glrt", "unified", "identity")


def run_of(folder: Path, loss: str) -> Path:
    """Return where the run of a loss lies."""
    return folder / "run" if loss == "glrt" else folder / "baselines" / loss


def train_run(folder: Path, loss: str, scale: Scale, observer: Observer) -> None:
    """Train by a loss on the first world, or go on with a run that was stopped; all share the features of the trunk."""
    path = run_of(folder, loss)
    if (path / "run.json").exists():
        resume(path, observer)
        return
    changes = [f"data.manifest={folder / 'world'}", f"stage2.loss={loss}", *scale.changes]
    path.parent.mkdir(parents=True, exist_ok=True)
    train(read_recipe(Recipe, RECIPES / "synthetic.toml", changes), path, observer)
