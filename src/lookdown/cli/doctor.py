"""lookdown doctor: what is here, what is missing, and how to get it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from lookdown.cli.json_output import AsJson, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from lookdown.cli.findings import Findings


def doctor(as_json: AsJson = False) -> None:
    """Say what is installed, found and missing, with the next step."""
    from rich.console import Console

    from lookdown.cli.findings import look

    found = look()
    if as_json:
        print_json(found)
        return
    typer.echo(f"lookdown {found.lookdown}, Python {found.python}, {found.system}")
    memory = f"{found.memory / 2**30:.1f} GB of memory" if found.memory else "memory unknown"
    typer.echo(f"{found.cores} processor cores, {memory}")
    typer.echo(f"accelerators: {', '.join(found.accelerators) or 'none, so networks run on the processor'}")
    Console().print(_table(found))
    typer.echo(f"weights: {', '.join(f'{one.trunk} ({one.place})' for one in found.weights) or 'none'}")
    typer.echo(f"data: {_data(found)}")
    for disk in found.disks:
        typer.echo(f"disk: {disk.free / 2**30:.1f} GB free for {disk.purpose}, {disk.folder}")
    for problem in found.problems:
        typer.echo(f"problem: {problem}")


def _table(found: Findings) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table("part", "packages, each named once", "next step")
    named: set[str] = set()
    parts = dict.fromkeys(package.part for package in found.packages)
    for part in parts:
        packages = [package for package in found.packages if package.part == part]
        news = [package for package in packages if package.next_step or package.package not in named]
        named |= {package.package for package in packages}
        listed = ", ".join(f"{package.package} {package.installed or 'missing'}" for package in news)
        steps = dict.fromkeys(package.next_step for package in packages if package.next_step)
        table.add_row(part, listed, escape("; ".join(steps)), style="yellow" if steps else None)
    return table


def _data(found: Findings) -> str:
    data = found.data
    if data.folder is None:
        return f"LOOKDOWN_DATA is not set; set it to the folder that holds {' or '.join(data.missing)}"
    there = f"{', '.join(data.found) or 'nothing that lookdown knows'} in LOOKDOWN_DATA, {data.folder}"
    return there if not data.missing else f"{there}; not there: {', '.join(data.missing)}"
