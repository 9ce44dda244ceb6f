"""lookdown adapt: fit the metric of a run to images of another domain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lookdown.cli.shared_options import AsJson, Clusters, Method, Seed, print_json


def adapt(
    run: Annotated[Path, typer.Argument(help="folder of a finished `lookdown train`")],
    data: Annotated[Path, typer.Option(help="manifest of the new images, from `lookdown prepare`; it needs no labels")],
    out: Annotated[Path, typer.Option("-o", "--out", help="folder to write the metric to")],
    clusters: Clusters = None,
    method: Method = "auto",
    labels: Annotated[bool, typer.Option("--labels", help="use the labels of the manifest, where given")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="do not embed every chip in four turns as well; the clusters are worse")
    ] = False,
    seed: Seed = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace an existing metric")] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a metric to images of another domain, without labels.

    The network is not trained again: only the metric is estimated anew, or kept if that would not help.
    """
    from lookdown.adaptation.adapt_run import adapt_run
    from lookdown.cli.progress_bar import ProgressBar
    from lookdown.errors import OutputError

    if out.exists() and not overwrite:
        raise OutputError(f"{out} exists; name another folder, or pass --overwrite to replace the metric in it")
    with ProgressBar("embedding") as progress:
        result = adapt_run(
            run,
            data,
            clusters="auto" if clusters is None else clusters,
            method=method,
            labels=labels,
            quick=quick,
            seed=seed,
            progress=progress,
        )
    if result.skipped:
        first = next(iter(result.skipped.values()))
        typer.echo(f"skipped {len(result.skipped):,} chips that cannot be read, the first: {first}", err=True)
    adaptation = result.adaptation
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
            "skipped": list(result.skipped.values()),
        })  # fmt: skip
        return
    verdict = "not adapted" if not adapted else "adapted" if adaptation.helped else "adapted, though unlikely to help"
    typer.echo(f"{verdict}: {adaptation.reason}")
    if not calibrated:
        typer.echo("the metric is not calibrated: it ranks hits, but thresholds need `calibrate` on labelled chips")
    typer.echo(f"wrote {out}; compare it on labelled chips: `lookdown evaluate {run} --adapted {out} --data MANIFEST`")
