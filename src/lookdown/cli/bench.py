"""lookdown bench: measure lookdown beside its peers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lookdown.cli.shared_options import AsJson, print_json

if TYPE_CHECKING:
    from lookdown.lab.bench.benchmarks import Benchmarks


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="names such as losses or search; all unless given", show_default=False)
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="small sizes, to check that everything runs; targets are not judged")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="folder for bench.json, the page and its chart")] = Path(
        "runs/bench"
    ),
    as_json: AsJson = False,
) -> None:
    """Measure lookdown beside its peers on this machine.

    Each benchmark runs in its own process with a fixed number of threads. The exit code is 1 if one failed or missed
    its target; the others still run.
    """
    from lookdown.cli.progress_bar import ProgressBar
    from lookdown.lab.bench.benchmarks import run_benchmarks

    with ProgressBar("") as progress:
        benchmarks = run_benchmarks(names or [], out, quick=quick, note=progress.note)
    if as_json:
        print_json(benchmarks.content())
    else:
        _print_table(benchmarks)
        typer.echo(f"\n{out / 'bench.md'}")
    if not benchmarks.good:
        raise typer.Exit(1)


def _print_table(benchmarks: Benchmarks) -> None:
    """Print a coloured table on a terminal, and Markdown elsewhere."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        typer.echo(benchmarks.table())
        return
    table = Table("ours", "", "peer or limit", "", "ours / theirs", "target", "")
    for outcome in benchmarks.outcomes:
        table.add_section()
        for line in benchmarks.lines(outcome):
            table.add_row(*map(escape, line), style="red" if line[-1] in ("MISSED", "FAILED") else None)
    console.print(table)
