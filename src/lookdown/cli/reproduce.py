"""lookdown reproduce: the paper's tables and figures, on the data that are here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lookdown.cli.json_output import AsJson, print_json


def reproduce(
    targets: Annotated[
        list[str],
        typer.Argument(
            help="table1 to table12, figure1, figure4, figure5, figure6, robustness, false-alarms, or all of these; "
            "choose (hyperparameters, on validation splits) and study (every loss in every way)",
            show_default=False,
        ),
    ],
    scale: Annotated[
        Literal["paper", "cpu", "head", "smoke"],
        typer.Option(
            help="paper: its settings, for a GPU; cpu: a small network, fine-tuned; head: a frozen trunk; smoke: "
            "seconds, to see that it runs"
        ),
    ] = "head",
    data: Annotated[
        str | None,
        typer.Option(
            help="mar20, fair1m, synthetic, or a folder from `lookdown prepare` with --split none; else what stands "
            "for the paper's data",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=0, help="how many; 0: as the scale has")] = 0,
    runs: Annotated[Path, typer.Option(help="trained networks and prepared data are kept here")] = Path(
        "runs/reproduce"
    ),
    out: Annotated[Path | None, typer.Option("--out", "-o", help="pages go here; else RUNS/results")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the paper's tables and figures, ours beside the paper's.

    What was trained before is used again.
    """
    from lookdown.cli.progress import ProgressBar
    from lookdown.lab.paper.reproduce import reproduce as make
    from lookdown.lab.paper.setting import Setting

    files: list[Path] = []

    def wrote(file: Path) -> None:
        files.append(file)
        if not as_json:
            typer.echo(str(file))

    with ProgressBar("") as progress:
        make(targets, Setting(scale, runs, data, seeds, progress.note), out or runs / "results", wrote)
    if as_json:
        print_json({"files": files})
