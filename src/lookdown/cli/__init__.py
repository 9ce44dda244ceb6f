"""The command line: one file a command, no logic of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from lookdown import __version__
from lookdown.cli.adapt import adapt
from lookdown.cli.doctor import doctor
from lookdown.cli.evaluate import evaluate
from lookdown.cli.gallery import gallery
from lookdown.cli.index import index
from lookdown.cli.prepare import prepare
from lookdown.cli.reproduce import reproduce
from lookdown.cli.search import search
from lookdown.cli.serve import serve
from lookdown.cli.train import train

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(doctor)
app.command()(prepare)
app.command()(train)
app.command()(evaluate)
app.command()(adapt)
app.command()(reproduce)
app.command()(index)
app.command()(search)
app.command()(serve)
app.add_typer(gallery, name="gallery")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lookdown {__version__}")
        raise typer.Exit


@app.callback()
def lookdown(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Find every object like this one in overhead imagery, at a false-alarm rate you choose."""
