"""The command line: one file a command, no logic of its own."""

from __future__ import annotations

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
    epilog="Three commands to begin with, on a folder of your own images:\n\n"
    "lookdown index --embedder tf_efficientnet_lite0 IMAGES -o gallery\n"
    "lookdown search gallery EXAMPLE.jpg --html hits.html\n"
    "lookdown serve gallery\n\n"
    "`lookdown COMMAND --help` ends with examples; the pages are in docs/ of the repository.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from lookdown import __version__  # asks the installed packages

        typer.echo(f"lookdown {__version__}")
        raise typer.Exit


@app.callback()
def lookdown(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Find every object like this one in overhead imagery, at a false-alarm rate you choose."""


app.command(rich_help_panel=START, epilog=examples("lookdown demo", "lookdown demo -o elsewhere --json"))(demo)
app.command(rich_help_panel=START, epilog=examples("lookdown doctor", "lookdown doctor --json"))(doctor)
app.add_typer(prepare, name="prepare", rich_help_panel=METRIC)
app.command(
    rich_help_panel=METRIC,
    epilog=examples(
        "lookdown train recipes/synthetic.toml -o runs/synthetic", "lookdown train --resume runs/synthetic"
    ),
)(train)
app.command(
    rich_help_panel=METRIC,
    epilog=examples(
        "lookdown evaluate demo/run",
        "lookdown evaluate demo/run --adapted demo/metric --data demo/abroad --json",
    ),
)(evaluate)
app.command(rich_help_panel=METRIC, epilog=examples("lookdown adapt demo/run --data demo/abroad -o demo/metric"))(adapt)
app.command(
    rich_help_panel=METRIC,
    epilog=examples("lookdown export demo/run", "lookdown export demo/gallery --runtime openvino --int8"),
)(export)
app.command(
    rich_help_panel=ARCHIVE,
    epilog=examples(
        "lookdown index demo/run demo/world -o demo/gallery",
        "lookdown index --embedder tf_efficientnet_lite0 IMAGES -o gallery",
    ),
)(index)
app.command(
    rich_help_panel=ARCHIVE,
    epilog=examples(
        "lookdown search demo/gallery EXAMPLE.jpg -k 20 --html hits.html",
        "lookdown search demo/gallery EXAMPLE.jpg --false-alarm-rate 1e-2 --json",
    ),
)(search)
app.add_typer(gallery, name="gallery", rich_help_panel=ARCHIVE)
app.command(
    rich_help_panel=ARCHIVE,
    epilog=examples("lookdown serve demo/gallery", "lookdown serve demo/gallery --port 8080 --access read"),
)(serve)
app.command(
    rich_help_panel=PAPER,
    epilog=examples("lookdown reproduce table1 --scale smoke", "lookdown reproduce all --data synthetic -o results"),
)(reproduce)
app.command(
    rich_help_panel=PAPER,
    epilog=examples("lookdown bench", "lookdown bench losses search -o results --json"),
)(bench)
