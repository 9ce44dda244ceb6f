"""lookdown evaluate: score how well a run finds the queries of a manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from lookdown.cli.shared_options import AsJson, print_json

if TYPE_CHECKING:
    from lookdown.evaluation import Evaluation
    from lookdown.metrics import Estimate
    from lookdown.training.evaluate_run import MetricName


def evaluate(
    run: Annotated[Path, typer.Argument(help="folder of a finished `lookdown train`")],
    metric: Annotated[
        Literal["cosine", "euclidean", "glrt", "kinds"] | None,
        typer.Option(help="one metric only, instead of cosine, glrt and kinds"),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="another manifest than that of the run")] = None,
    adapted: Annotated[
        Path | None, typer.Option(help="metric from `lookdown adapt`, to compare with the run's own")
    ] = None,
    exported: Annotated[
        str | None, typer.Option(help="export of the run that embeds instead of torch, such as openvino-int8")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score how well a run finds the queries of a manifest.

    Every query searches the gallery of the manifest: by the cosine, by the ratio of differences (glrt), and by the
    ratio of kinds (kinds), which knows the kinds of the training chips.
    """
    from lookdown.cli.progress_bar import ProgressBar
    from lookdown.errors import InputError
    from lookdown.training.evaluate_run import evaluate_run

    if metric and adapted:
        raise InputError("--metric names one metric and --adapted compares several; give one of them")
    compared: tuple[MetricName, ...] = ("glrt", "kinds", "adapted") if adapted else ("cosine", "glrt", "kinds")
    metrics = (metric,) if metric else compared
    with ProgressBar("embedding") as progress:
        result = evaluate_run(run, metrics, data, adapted=adapted, exported=exported, progress=progress)
    if result.unreadable.first:
        typer.echo(str(result.unreadable), err=True)
    first, *others = metrics
    gains = {name: result.evaluations[name].difference(result.evaluations[first]) for name in others}
    if as_json:
        print_json({
            "evaluations": {name: json.loads(evaluation.to_json()) for name, evaluation in result.evaluations.items()},
            "means": {name: _means(evaluation) for name, evaluation in result.evaluations.items()},
            "differences": [{"of": name, "minus": first, **_estimate(gain)} for name, gain in gains.items()],
            "unreadable": result.unreadable,
        })  # fmt: skip
        return
    for name, evaluation in result.evaluations.items():
        typer.echo(f"{name}\n{evaluation.table()}\n")
    for name, gain in gains.items():
        typer.echo(f"{name} - {first}: {gain:+.4f} mAP, 95 % from {gain.low:+.4f} to {gain.high:+.4f}")


def _means(evaluation: Evaluation) -> dict[str, Any]:
    from lookdown.evaluation.evaluation import Measure

    return {measure: _estimate(evaluation.interval(measure)) for measure in get_args(Measure)}


def _estimate(value: Estimate) -> dict[str, Any]:
    return {"value": float(value), "low": value.low, "high": value.high, "supported": value.supported}
