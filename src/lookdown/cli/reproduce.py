"""lookdown reproduce: the paper's tables and figures, on the data that are here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


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
            help="mar20, fair1m, synthetic, or a folder from `lookdown prepare ... --split none`; else what stands for "
            "the paper's data",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=0, help="how many; 0: as the scale has")] = 0,
    runs: Annotated[Path, typer.Option(help="trained networks and prepared data are kept here")] = Path(
        "runs/reproduce"
    ),
    out: Annotated[Path | None, typer.Option("--out", "-o", help="pages go here; else RUNS/results")] = None,
) -> None:
    """Make tables and figures of the paper, ours beside the paper's; what was trained before is used again."""
    from rich.console import Console

    from lookdown.experiments.reproduce import reproduce as make
    from lookdown.experiments.setting import Setting

    console = Console(stderr=True)
    with console.status("", spinner="dots") as status:

        def note(line: str) -> None:
            if console.is_terminal:
                status.update(line)
            else:
                console.print(line, markup=False, highlight=False)

        setting = Setting(scale, runs, data, seeds, note)
        make(targets, setting, out or runs / "results", lambda file: typer.echo(str(file)))
