"""lookdown adapt: a run's metric, for images of another kind than it was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


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
    seed: Annotated[int, typer.Option(help="of the clustering")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace a metric that is there")] = False,
) -> None:
    """Re-estimate a metric on unlabelled images; no image is labelled, no network is trained."""
    from rich.console import Console
    from rich.progress import Progress

    from lookdown.adaptation.run_adaptation import adapt_run
    from lookdown.errors import OutputError

    if out.exists() and not overwrite:
        raise OutputError(f"{out} exists; name another folder, or pass --overwrite to replace the metric in it")
    console = Console(stderr=True)
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("embedding", total=None)
        found = adapt_run(
            run,
            data,
            clusters="auto" if clusters is None else clusters,
            method=method,
            labelled=labels,
            quick=quick,
            seed=seed,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if found.skipped:
        console.print(
            f"{len(found.skipped)} chips could not be read and are left out, the first: "
            f"{next(iter(found.skipped.values()))}",
            markup=False,
        )
    adaptation = found.adaptation
    adaptation.metric.save(out, overwrite=overwrite)
    kept = not adaptation.metric.pseudo_labelled_
    verdict = "not adapted" if kept else "adapted" if adaptation.helped else "adapted, though it is unlikely to help"
    typer.echo(f"{verdict}: {adaptation.reason}")
    if adaptation.metric.calibration_ is None:
        typer.echo("the metric has no calibration: it ranks, and knows thresholds after calibrate on labelled chips")
    typer.echo(
        f"metric in {out}; `lookdown evaluate {run} --adapted {out} --data MANIFEST` compares it on labelled chips"
    )
