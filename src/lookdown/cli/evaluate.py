"""lookdown evaluate: how well a run finds the queries of a manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from lookdown.cli.json_output import AsJson, print_json

if TYPE_CHECKING:
    from lookdown.evaluation import Evaluation
    from lookdown.metrics import Estimate
    from lookdown.training.run_evaluation import MetricName


def evaluate(
    run: Annotated[Path, typer.Argument(help="folder of a run that `lookdown train` has finished")],
    metric: Annotated[
        Literal["cosine", "euclidean", "glrt"] | None, typer.Option(help="one metric; else cosine against glrt")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="another manifest than the one trained on")] = None,
    adapted: Annotated[Path | None, typer.Option(help="a metric from `lookdown adapt`, against the run's own")] = None,
    exported: Annotated[
        str | None, typer.Option(help="embed by an export of the run, openvino-int8 say, instead of torch")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score how well a run finds what it is asked for.

    Every query of the manifest searches the gallery, by the cosine and by the likelihood ratio unless told otherwise.
    """
    from lookdown.cli.progress import ProgressBar
    from lookdown.errors import InputError
    from lookdown.training.run_evaluation import evaluate_run

    if metric and adapted:
        raise InputError("--metric names one metric and --adapted compares two; give one of them")
    first: MetricName
    second: MetricName
    first, second = ("glrt", "adapted") if adapted else ("cosine", "glrt")
    with ProgressBar("embedding") as progress:
        wanted = (metric,) if metric else (first, second)
        found = evaluate_run(run, wanted, data, adapted=adapted, exported=exported, progress=progress)
    if found.unreadable.first:
        typer.echo(str(found.unreadable), err=True)
    gain = None if metric else found.evaluations[second].difference(found.evaluations[first])
    if as_json:
        print_json({
            "evaluations": {name: json.loads(one.to_json()) for name, one in found.evaluations.items()},
            "means": {name: _means(one) for name, one in found.evaluations.items()},
            "difference": None if gain is None else {"of": second, "minus": first, **_estimate(gain)},
            "unreadable": found.unreadable,
        })  # fmt: skip
        return
    for name, evaluation in found.evaluations.items():
        typer.echo(f"{name}\n{evaluation.table()}\n")
    if gain is not None:
        typer.echo(f"{second} - {first}: {gain:+.4f} mAP, 95 % from {gain.low:+.4f} to {gain.high:+.4f}")


def _means(evaluation: Evaluation) -> dict[str, Any]:
    from lookdown.evaluation.evaluation import Measure

    return {measure: _estimate(evaluation.interval(measure)) for measure in get_args(Measure)}


def _estimate(value: Estimate) -> dict[str, Any]:
    return {"value": float(value), "low": value.low, "high": value.high, "supported": value.supported}
