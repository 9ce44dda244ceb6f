"""lookdown evaluate: how well a run finds the queries of a manifest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from lookdown.training.run_evaluation import MetricName


def evaluate(
    run: Annotated[Path, typer.Argument(help="folder of a run that `lookdown train` has finished")],
    metric: Annotated[
        Literal["cosine", "euclidean", "glrt"] | None, typer.Option(help="one metric; else cosine against glrt")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="another manifest than the one trained on")] = None,
    adapted: Annotated[Path | None, typer.Option(help="a metric from `lookdown adapt`, against the run's own")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="everything, as JSON on one line a metric")] = False,
) -> None:
    """Search the gallery for every query, and score the rankings."""
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.progress import Progress

    from lookdown.errors import InputError
    from lookdown.training.run_evaluation import evaluate_run

    if metric and adapted:
        raise InputError("--metric names one metric and --adapted compares two; give one of them")
    first: MetricName
    second: MetricName
    first, second = ("glrt", "adapted") if adapted else ("cosine", "glrt")
    console = Console(stderr=as_json)
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("embedding", total=None)
        found = evaluate_run(
            run,
            (metric,) if metric else (first, second),
            data,
            adapted=adapted,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if found.unreadable.first:
        typer.echo(str(found.unreadable), err=True)
    for name, evaluation in found.evaluations.items():
        if as_json:
            content = {"evaluation": json.loads(evaluation.to_json()), "unreadable": asdict(found.unreadable)}
            typer.echo(json.dumps({"metric": name, **content}))
        else:
            typer.echo(f"{name}\n{evaluation.table()}\n")
    if not as_json and metric is None:
        gain = found.evaluations[second].difference(found.evaluations[first])
        typer.echo(f"{second} - {first}: {gain:+.4f} mAP, 95 % from {gain.low:+.4f} to {gain.high:+.4f}")
