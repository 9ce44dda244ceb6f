"""lookdown bench: every figure beside a peer or a limit, measured in one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lookdown.cli.json_output import AsJson, print_json

if TYPE_CHECKING:
    from lookdown.lab.bench.benchmarks import Benchmarks


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="benchmarks by name, losses or search say; else all of them", show_default=False),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="small sizes, to see that everything runs; targets are not judged")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="bench.json, the page and its chart go here")] = Path(
        "runs/bench"
    ),
    as_json: AsJson = False,
) -> None:
    """Measure lookdown beside its peers on this machine.

    Each benchmark is a process of its own with its threads pinned. The exit code is 1 if one failed or missed its
    target; the others go on.
    """
    from lookdown.cli.progress import ProgressBar
    from lookdown.lab.bench.benchmarks import run_benchmarks

    with ProgressBar("") as progress:
        found = run_benchmarks(names or [], out, quick=quick, note=progress.note)
    if as_json:
        print_json(found.content())
    else:
        _print_table(found)
        typer.echo(f"\n{out / 'bench.md'}")
    if not found.good:
        raise typer.Exit(1)


def _print_table(found: Benchmarks) -> None:
    """Print colours and columns on a terminal, Markdown elsewhere."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        typer.echo(found.table())
        return
    table = Table("ours", "", "peer or limit", "", "ours / theirs", "target", "")
    for outcome in found.outcomes:
        table.add_section()
        for line in found.lines(outcome):
            style = "red" if line[-1] in ("MISSED", "FAILED") else None
            table.add_row(*map(escape, line), style=style)
    console.print(table)
