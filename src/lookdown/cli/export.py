"""lookdown export: the network of a run or a gallery for another runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lookdown.cli.shared_options import AsJson, print_json


def export(
    owner: Annotated[Path, typer.Argument(metavar="RUN|GALLERY", help="folder of a finished run, or of a gallery")],
    runtime: Annotated[Literal["openvino", "onnx"], typer.Option(help="what the network is to run in")] = "openvino",
    int8: Annotated[
        bool, typer.Option("--int8", help="also in 8-bit integers, if that costs at most 0.5 mAP; needs labelled chips")
    ] = False,
    data: Annotated[
        Path | None, typer.Option(help="manifest whose chips compare and judge; else those of the run or gallery")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace exports that are there")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the network for a faster runtime, which needs no torch.

    It is refused if it embeds otherwise than torch. `index`, `search` and `serve` then use the fastest network.
    """
    from lookdown.cli.progress_bar import ProgressBar
    from lookdown.gallery.export_network import export_network

    with ProgressBar("") as progress:
        report = export_network(owner, runtime, int8=int8, data=data, overwrite=overwrite, note=progress.note)
    small = report.int8.export if report.int8 is not None else None
    if as_json:
        written = [one for one in (report.fp32, small) if one is not None]
        print_json({
            "exports": [{"folder": one.folder, "measured": dict(one.description.measured)} for one in written],
            "int8": None if report.int8 is None else {"before": report.int8.before, "after": report.int8.after},
        })  # fmt: skip
        return
    description = report.fp32.description
    typer.echo(
        f"{report.fp32.folder}: {description.times_torch:.1f} times as fast as torch here, at most "
        f"{description.measured['worst cosine distance']:.0e} from it"
    )
    if report.int8 is not None:
        typer.echo(str(report.int8))
    if small is not None:
        typer.echo(f"{small.folder}: {small.description.times_torch:.1f} times as fast as torch here")
