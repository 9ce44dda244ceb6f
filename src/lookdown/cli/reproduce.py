"""lookdown reproduce: make the tables and figures of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lookdown.cli.shared_options import AsJson, print_json


def reproduce(
    targets: Annotated[
        list[str],
        typer.Argument(
            help="table1 to table12, figure1, figure4, figure5, figure6, robustness, false-alarms, or all of these; "
            "also choose (hyperparameters, on validation splits) and study (every loss with every metric)",
            show_default=False,
        ),
    ],
    scale: Annotated[
        Literal["paper", "cpu", "head", "smoke"],
        typer.Option(
            help="paper: its settings, for a GPU; cpu: a small network, fine-tuned; head: a frozen trunk; smoke: "
            "seconds, to check that it runs"
        ),
    ] = "head",
    data: Annotated[
        str | None,
        typer.Option(
            help="mar20, fair1m, synthetic, or a folder from `lookdown prepare` with --split none; stand-ins for "
            "the paper's data unless given",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=0, help="number of seeds; 0 for that of the scale")] = 0,
    runs: Annotated[Path, typer.Option(help="folder that keeps trained networks and prepared data")] = Path(
        "runs/reproduce"
    ),
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder for the pages, else RUNS/results")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the tables and figures of the paper again.

    Each shows our numbers beside the paper's. Networks that were trained before are reused.
    """
    from lookdown.cli.progress_bar import ProgressBar
    from lookdown.lab.paper.experiment import Experiment
    from lookdown.lab.paper.reproduce import reproduce as make

    files: list[Path] = []

    def on_file(file: Path) -> None:
        files.append(file)
        if not as_json:
            typer.echo(str(file))

    with ProgressBar("") as progress:
        make(targets, Experiment(scale, runs, data, seeds, progress.note), out or runs / "results", on_file)
    if as_json:
        print_json({"files": files})
