"""lookdown gallery: look after a gallery: what it holds, its metrics, its labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lookdown.cli.command_group import examples
from lookdown.cli.json_output import AsJson, print_json
from lookdown.cli.worker_options import Workers

if TYPE_CHECKING:
    from lookdown.gallery import Learnt

__all__ = ["gallery"]

gallery = typer.Typer(
    no_args_is_help=True,
    help="Look after a gallery: what it holds, its metrics, its labels.",
    epilog=examples("lookdown gallery stats demo/gallery", "lookdown gallery adapt demo/gallery"),
)

Folder = Annotated[Path, typer.Argument(metavar="GALLERY", help="folder written by `lookdown index`")]


@gallery.command(epilog=examples("lookdown gallery stats demo/gallery", "lookdown gallery stats demo/gallery --json"))
def stats(folder: Folder, as_json: AsJson = False) -> None:
    """Say what a gallery holds."""
    from dataclasses import asdict

    from lookdown.gallery import Gallery

    found = Gallery.open(folder).stats()
    if as_json:
        print_json(found)
        return
    for name, value in asdict(found).items():
        shown = f"{value:,}" if isinstance(value, int) else ", ".join(value) if isinstance(value, tuple) else value
        typer.echo(f"{name.replace('_', ' '):<14} {shown or '-'}")


@gallery.command(
    epilog=examples("lookdown gallery metrics demo/gallery", "lookdown gallery metrics demo/gallery --use 1-trained")
)
def metrics(
    folder: Folder,
    use: Annotated[str | None, typer.Option(help="search by this one from now on")] = None,
    as_json: AsJson = False,
) -> None:
    """List the metrics of a gallery, or choose the one to use."""
    from dataclasses import asdict

    from lookdown.gallery import Gallery

    opened = Gallery.open(folder)
    if use is not None:
        opened.use(use)
    if as_json:
        print_json([asdict(metric) | {"in_use": metric.name == opened.metric} for metric in opened.metrics()])
        return
    for metric in opened.metrics():
        mark = "*" if metric.name == opened.metric else " "
        rates = "knows rates" if metric.calibrated else "no rates"
        typer.echo(f"{mark} {metric.name:<16} {metric.created[:19]}  {rates:<11}  {metric.about}")


@gallery.command(
    epilog=examples(
        "lookdown gallery label demo/gallery --as tanker ID ID",
        "lookdown gallery label demo/gallery --background --no-teach ID",
    )
)
def label(
    folder: Folder,
    ids: Annotated[list[str], typer.Argument(help="chips, by the ids that `lookdown search` shows")],
    kind: Annotated[str | None, typer.Option("--as", help="what they show")] = None,
    background: Annotated[bool, typer.Option("--background", help="they show none of the objects")] = False,
    clear: Annotated[bool, typer.Option("--clear", help="take their labels away")] = False,
    teach: Annotated[bool, typer.Option("--teach/--no-teach", help="re-estimate the metric with all labels")] = True,
    as_json: AsJson = False,
) -> None:
    """Say what chips show, and teach the metric by it."""
    from lookdown.errors import InputError
    from lookdown.gallery import Gallery

    if (kind is not None) + background + clear != 1:
        raise InputError("say one thing: --as KIND, --background, or --clear")
    opened = Gallery.open(folder)
    labels, empty = ([], ids) if background else (ids, [])
    kinds = [kind] * len(labels)
    learnt = None
    if teach:
        learnt = opened.teach(labels, kinds, background=empty)
    else:
        opened.label(labels, kinds, background=empty)
    marked = opened.stats().marked
    if as_json:
        print_json({"labelled": len(ids), "marked": marked, "learnt": learnt})
        return
    if learnt is not None:
        _show(learnt)
    typer.echo(f"{len(ids):,} chips labelled, {marked:,} in all")


@gallery.command(
    epilog=examples("lookdown gallery adapt demo/gallery", "lookdown gallery adapt demo/gallery --clusters 20 --json")
)
def adapt(
    folder: Folder,
    clusters: Annotated[
        int | None, typer.Option(help="kinds of objects, and one for the background; else found by itself")
    ] = None,
    method: Annotated[
        Literal["auto", "cplfpa"], typer.Option(help="the best on validation, or the paper's Algorithm 3")
    ] = "auto",
    labels: Annotated[
        Literal["marked", "all", "none"], typer.Option(help="which labels count: yours, also the manifest's, none")
    ] = "marked",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="of the clustering")] = 0,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Fit the metric to what the gallery holds.

    No image is embedded again, and none needs a label.
    """
    from lookdown.gallery import Gallery

    opened = Gallery.open(folder)
    count: int | Literal["auto"] = "auto" if clusters is None else clusters
    learnt = opened.adapt(count, method=method, labels=labels, seed=seed, workers=workers)
    print_json(learnt) if as_json else _show(learnt)


@gallery.command(epilog=examples("lookdown gallery calibrate demo/gallery --labels all"))
def calibrate(
    folder: Folder,
    labels: Annotated[Literal["marked", "all"], typer.Option(help="which labels count")] = "all",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="of the intervals")] = 0,
    as_json: AsJson = False,
) -> None:
    """Measure false-alarm rates on the labelled chips."""
    from lookdown.gallery import Gallery

    learnt = Gallery.open(folder).calibrate(labels=labels, seed=seed)
    print_json(learnt) if as_json else _show(learnt)


@gallery.command(
    epilog=examples(
        "lookdown gallery remove demo/gallery ID ID",
        "lookdown gallery remove demo/gallery --sensor near --until 2020-12-31",
    )
)
def remove(
    folder: Folder,
    ids: Annotated[list[str] | None, typer.Argument(help="chips by their ids")] = None,
    scene: Annotated[list[str] | None, typer.Option(help="all chips of this scene; repeatable")] = None,
    kind: Annotated[list[str] | None, typer.Option("--label", help="all chips of this class; repeatable")] = None,
    sensor: Annotated[list[str] | None, typer.Option(help="all chips of this sensor; repeatable")] = None,
    since: Annotated[str | None, typer.Option(help="all since then")] = None,
    until: Annotated[str | None, typer.Option(help="all until then")] = None,
    as_json: AsJson = False,
) -> None:
    """Take chips out of a gallery.

    Conditions together must all hold.
    """
    from lookdown.errors import InputError
    from lookdown.gallery import Gallery, Where

    where = Where(scene=scene or None, label=kind or None, sensor=sensor or None, since=since, until=until)
    if bool(ids) != where.everything:
        raise InputError("say which chips: by ids, or by --scene, --label, --sensor, --since, --until")
    opened = Gallery.open(folder)
    gone = opened.remove(ids) if ids else opened.remove(where=where)
    if as_json:
        print_json({"removed": gone, "chips": len(opened)})
        return
    typer.echo(f"{gone:,} chips removed; {len(opened):,} left in {folder}")


def _show(learnt: Learnt) -> None:
    verdict = "kept" if not learnt.changed else "in use" if learnt.helped else "in use, though unlikely to be better"
    typer.echo(f"metric {learnt.metric} ({verdict}): {learnt.reason}")
