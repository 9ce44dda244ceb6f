"""lookdown adapt: a run's metric, for images of another kind than it was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lookdown.cli.json_output import AsJson, print_json


def adapt(
    run: Annotated[Path, typer.Argument(help="folder of a run that `lookdown train` has finished")],
    data: Annotated[
        Path, typer.Option(help="manifest of the target's chips, from `lookdown prepare`; no labels needed")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="folder to write the metric to")],
    clusters: Annotated[
        int | None, typer.Option(help="kinds of objects, and one for the background; else found by itself")
    ] = None,
    method: Annotated[
        Literal["auto", "cplfpa"], typer.Option(help="the best on validation, or the paper's Algorithm 3")
    ] = "auto",
    labels: Annotated[
        bool, typer.Option("--labels", help="take classes in the manifest for true, where given")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="do not look at every chip in four turns as well; clusters are less good")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="of the clustering")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace a metric that is there")] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a metric to images of another kind, without labels.

    No image needs a label and no network is trained: the metric alone is estimated anew, or kept where that would not
    help.
    """
    from lookdown.adaptation.adapt_run import adapt_run
    from lookdown.cli.progress import ProgressBar
    from lookdown.errors import OutputError

    if out.exists() and not overwrite:
        raise OutputError(f"{out} exists; name another folder, or pass --overwrite to replace the metric in it")
    with ProgressBar("embedding") as progress:
        found = adapt_run(
            run,
            data,
            clusters="auto" if clusters is None else clusters,
            method=method,
            labels=labels,
            quick=quick,
            seed=seed,
            progress=progress,
        )
    if found.skipped:
        first = next(iter(found.skipped.values()))
        typer.echo(f"{len(found.skipped):,} chips could not be read and are left out, the first: {first}", err=True)
    adaptation = found.adaptation
    adaptation.metric.save(out, overwrite=overwrite)
    adapted, calibrated = adaptation.metric.pseudo_labelled_, adaptation.metric.calibration_ is not None
    if as_json:
        print_json({
            "metric": out,
            "adapted": adapted,
            "calibrated": calibrated,
            "clusters": adaptation.clusters,
            "helped": adaptation.helped,
            "reason": adaptation.reason,
            "separation": adaptation.separation,
            "skipped": list(found.skipped.values()),
        })  # fmt: skip
        return
    verdict = "not adapted" if not adapted else "adapted" if adaptation.helped else "adapted, though unlikely to help"
    typer.echo(f"{verdict}: {adaptation.reason}")
    if not calibrated:
        typer.echo("the metric has no calibration: it ranks, and knows thresholds after calibrate on labelled chips")
    typer.echo(
        f"metric in {out}; `lookdown evaluate {run} --adapted {out} --data MANIFEST` compares it on labelled chips"
    )
