"""lookdown train: from a recipe to a run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lookdown.cli.json_output import AsJson, print_json

if TYPE_CHECKING:
    from lookdown.training.loop import Step


def train(
    recipe: Annotated[
        Path | None,
        typer.Argument(help="a TOML recipe, or one that comes with lookdown by its name, such as synthetic"),
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="folder of the run, new or empty")] = None,
    override: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="key=value over the recipe's, such as stage2.epochs=20; repeatable; with --resume, of learning rates "
            "and optimizer.clip only",
        ),
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="the folder of a run that was stopped: go on with it")] = None,
    as_json: AsJson = False,
) -> None:
    """Train an embedder and its metric from a recipe.

    It can be killed at any time, and resumed to the same bits.
    """
    from lookdown.cli.progress import ProgressBar
    from lookdown.config import read_recipe
    from lookdown.errors import InputError
    from lookdown.training import training
    from lookdown.training.recipe import Recipe
    from lookdown.training.recipe_files import recipe_file

    if (recipe is None) == (resume is None) or (recipe is None) != (out is None):
        raise InputError("give a recipe and a folder, `lookdown train RECIPE -o RUN`, or `lookdown train --resume RUN`")
    first = os.environ.get("RANK", "0") == "0"  # of several processes, one speaks
    with ProgressBar("reading", quiet=not first) as progress:
        begun, validated = False, ""

        def on_step(step: Step) -> None:
            nonlocal begun
            total, done = step.epochs * step.steps, step.epoch * step.steps + step.step
            if not begun:
                progress.begin("training", done)
                begun = True
            progress.move(
                done + 1,
                total,
                "steps",
                description=f"stage {step.stage}, epoch {step.epoch + 1} of {step.epochs}",
                detail=f"loss {step.loss:.3f}  accuracy {step.accuracy:.2f}{validated}",
            )

        def on_epoch(record: dict[str, float | int]) -> None:
            nonlocal validated
            validated = f"  validation mAP {record['validation_map']:.3f}"
            progress.say(
                f"epoch {record['epoch']:>3}  stage {record['stage']}  loss {record['loss']:.4f}  accuracy "
                f"{record['accuracy']:.3f}  validation mAP {record['validation_map']:.4f}  {record['seconds']:.1f} s"
            )

        observer = training.Observer(progress, on_step, on_epoch, progress.say)
        if resume is not None:
            run = training.resume(resume, observer, override or ())
        else:
            assert recipe is not None
            assert out is not None
            run = training.train(read_recipe(Recipe, recipe_file(recipe), override or ()), out, observer)
    if not first:
        return
    if as_json:
        print_json({"path": run.path, "data": run.data, "trunk": run.trunk, "history": run.history()})
        return
    typer.echo(f"embedder and metric are in {run.path}; try `lookdown evaluate {run.path}`")
