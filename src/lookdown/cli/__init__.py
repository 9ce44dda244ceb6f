"""The command line: one file for each command, without logic of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from lookdown.cli.adapt import adapt
from lookdown.cli.bench import bench
from lookdown.cli.command_group import CommandGroup, examples
from lookdown.cli.demo import demo
from lookdown.cli.doctor import doctor
from lookdown.cli.evaluate import evaluate
from lookdown.cli.export import export
from lookdown.cli.gallery import gallery
from lookdown.cli.index import index
from lookdown.cli.prepare import prepare
from lookdown.cli.reproduce import reproduce
from lookdown.cli.search import search
from lookdown.cli.serve import serve
from lookdown.cli.train import train

__all__ = ["app"]

START, METRIC, ARCHIVE, PAPER = "Start here", "Make a metric", "Search an archive", "Reproduce"

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog="Three commands to start with, on a folder of your own images:\n\n"
    "lookdown index --embedder tf_efficientnet_lite0 IMAGES -o gallery\n"
    "lookdown search gallery EXAMPLE.jpg --html hits.html\n"
    "lookdown serve gallery\n\n"
    "`lookdown COMMAND --help` ends with examples; the documentation is in docs/ of the repository.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from lookdown import __version__  # slow, so only here

        typer.echo(f"lookdown {__version__}")
        raise typer.Exit


@app.callback()
def lookdown(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Find every object like this one in overhead imagery, at a false-alarm rate you choose."""


def _add(panel: str, command: Callable[..., None], *lines: str) -> None:
    app.command(rich_help_panel=panel, epilog=examples(*lines))(command)


_add(START, demo, "demo", "demo -o elsewhere --json")
_add(START, doctor, "doctor", "doctor --json")
app.add_typer(prepare, name="prepare", rich_help_panel=METRIC)
_add(METRIC, train, "train recipes/synthetic.toml -o runs/synthetic", "train --resume runs/synthetic")
_add(METRIC, evaluate, "evaluate demo/run", "evaluate demo/run --adapted demo/metric --data demo/abroad --json")
_add(METRIC, adapt, "adapt demo/run --data demo/abroad -o demo/metric")
_add(METRIC, export, "export demo/run", "export demo/gallery --runtime openvino --int8")
_add(
    ARCHIVE,
    index,
    "index demo/run demo/world -o demo/gallery",
    "index --embedder tf_efficientnet_lite0 IMAGES -o gallery",
)
_add(
    ARCHIVE,
    search,
    "search demo/gallery EXAMPLE.jpg -k 20 --html hits.html",
    "search demo/gallery EXAMPLE.jpg --false-alarm-rate 1e-2 --json",
)
app.add_typer(gallery, name="gallery", rich_help_panel=ARCHIVE)
_add(ARCHIVE, serve, "serve demo/gallery", "serve demo/gallery --port 8080 --access read")
_add(PAPER, reproduce, "reproduce table1 --scale smoke", "reproduce all --data synthetic -o results")
_add(PAPER, bench, "bench", "bench losses search -o results --json")
