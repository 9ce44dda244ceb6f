"""The run of the demo, and the runs that it is compared with: one trunk, one first stage, three losses."""

from __future__ import annotations

from pathlib import Path

from lookdown.config import read_recipe
from lookdown.errors import OutputError
from lookdown.lab.demo.demo_worlds import DemoScale
from lookdown.training.recipe import RECIPES, Recipe
from lookdown.training.run_folder import RunFolder
from lookdown.training.train import Observer, resume, train

__all__ = ["LOSSES", "run_of", "train_run"]

LOSSES = ("glrt", "unified", "identity")


def run_of(folder: Path, loss: str) -> Path:
    """Return where the run of a loss lies."""
    return folder / "run" if loss == "glrt" else folder / "baselines" / loss


def train_run(folder: Path, loss: str, scale: DemoScale, observer: Observer) -> None:
    """Train by a loss on the first world, or go on with a run that was stopped; all share the features of the trunk."""
    path = run_of(folder, loss)
    changes = [f"data.manifest={folder / 'world'}", f"stage2.loss={loss}", *scale.changes]
    recipe = read_recipe(Recipe, RECIPES / "synthetic.toml", changes).anchored()
    if not (path / "run.json").exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        train(recipe, path, observer)
    elif RunFolder.open(path).recipe == recipe:
        resume(path, observer)
    else:
        raise OutputError(f"{path} was trained by another recipe; remove {folder}, or name another folder with -o")
