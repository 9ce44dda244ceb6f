"""lookdown train: train a network and its metric from a recipe."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lookdown.cli.shared_options import AsJson, print_json

if TYPE_CHECKING:
    from lookdown.training.loop import Step


def train(
    recipe: Annotated[
        Path | None,
        typer.Argument(help="a TOML file, or the name of a recipe that comes with lookdown, such as synthetic"),
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="folder for the run, new or empty")] = None,
    override: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="replace a value of the recipe: key=value, such as stage2.epochs=20; repeatable; with --resume, only "
            "learning rates and optimizer.clip",
        ),
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="folder of an interrupted run to continue")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a network and its metric from a recipe.

    You can interrupt it at any time; a resumed run gives the same bits.
    """
    from lookdown.cli.progress_bar import ProgressBar
    from lookdown.config import read_recipe
    from lookdown.errors import InputError
    from lookdown.training import train as training
    from lookdown.training.recipe import Recipe, recipe_file

    if (recipe is None) == (resume is None) or (recipe is None) != (out is None):
        raise InputError("give a recipe and a folder, `lookdown train RECIPE -o RUN`, or `lookdown train --resume RUN`")
    first = os.environ.get("RANK", "0") == "0"  # only the first of several processes prints
    with ProgressBar("reading", quiet=not first) as progress:
        started, validation = False, ""

        def on_step(step: Step) -> None:
            nonlocal started
            total, done = step.epochs * step.steps, step.epoch * step.steps + step.step
            if not started:
                progress.begin("training", done)
                started = True
            progress.move(
                done + 1,
                total,
                "steps",
                description=f"stage {step.stage}, epoch {step.epoch + 1} of {step.epochs}",
                detail=f"loss {step.loss:.3f}  accuracy {step.accuracy:.2f}{validation}",
            )

        def on_epoch(record: dict[str, float | int]) -> None:
            nonlocal validation
            validation = f"  validation mAP {record['validation_map']:.3f}"
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
    typer.echo(f"wrote {run.path}; score it with `lookdown evaluate {run.path}`")
