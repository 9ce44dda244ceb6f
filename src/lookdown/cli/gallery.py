"""lookdown gallery: manage the contents, the metrics and the labels of a gallery."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lookdown.cli.command_group import examples
from lookdown.cli.shared_options import AsJson, Clusters, Method, Seed, Workers, print_json
from lookdown.errors import InputError

if TYPE_CHECKING:
    from lookdown.gallery import Gallery, MetricUpdate

__all__ = ["gallery"]

gallery = typer.Typer(
    no_args_is_help=True,
    help="Manage a gallery: its contents, its metrics and its labels.",
    epilog=examples("gallery stats demo/gallery", "gallery adapt demo/gallery"),
)

Folder = Annotated[Path, typer.Argument(metavar="GALLERY", help="folder written by `lookdown index`")]


@gallery.command(epilog=examples("gallery stats demo/gallery", "gallery stats demo/gallery --json"))
def stats(folder: Folder, as_json: AsJson = False) -> None:
    """Show what a gallery holds."""
    contents = _open(folder).stats()
    if as_json:
        print_json(contents)
        return
    for name, value in asdict(contents).items():
        text = f"{value:,}" if isinstance(value, int) else ", ".join(value) if isinstance(value, tuple) else value
        typer.echo(f"{name.replace('_', ' '):<14} {text or '-'}")


@gallery.command(epilog=examples("gallery metrics demo/gallery", "gallery metrics demo/gallery --use 1-trained"))
def metrics(
    folder: Folder,
    use: Annotated[str | None, typer.Option(help="metric to search by from now on")] = None,
    as_json: AsJson = False,
) -> None:
    """List the metrics of a gallery, or choose the one to use."""
    opened = _open(folder)
    if use is not None:
        opened.use(use)
    if as_json:
        print_json([asdict(metric) | {"in_use": metric.name == opened.metric} for metric in opened.metrics()])
        return
    for metric in opened.metrics():
        mark = "*" if metric.name == opened.metric else " "
        rates = "calibrated" if metric.calibrated else "no rates"
        typer.echo(f"{mark} {metric.name:<16} {metric.created[:19]}  {rates:<11}  {metric.about}")


@gallery.command(
    epilog=examples(
        "gallery label demo/gallery --as tanker ID ID", "gallery label demo/gallery --background --no-teach ID"
    )
)
def label(
    folder: Folder,
    ids: Annotated[list[str], typer.Argument(help="ids of chips, as `lookdown search` shows them")],
    kind: Annotated[str | None, typer.Option("--as", help="kind of object that the chips show")] = None,
    background: Annotated[bool, typer.Option("--background", help="the chips show no object")] = False,
    clear: Annotated[bool, typer.Option("--clear", help="remove the labels of the chips")] = False,
    teach: Annotated[bool, typer.Option("--teach/--no-teach", help="estimate the metric again with all labels")] = True,
    as_json: AsJson = False,
) -> None:
    """Label chips, and teach the metric by the labels."""
    if (kind is not None) + background + clear != 1:
        raise InputError("give exactly one of --as KIND, --background and --clear")
    opened = _open(folder)
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


@gallery.command(epilog=examples("gallery adapt demo/gallery", "gallery adapt demo/gallery --clusters 20 --json"))
def adapt(
    folder: Folder,
    clusters: Clusters = None,
    method: Method = "auto",
    labels: Annotated[
        Literal["marked", "all", "none"], typer.Option(help="labels to use: of users, also of manifests, or none")
    ] = "marked",
    seed: Seed = 0,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Fit the metric to the chips of the gallery.

    No image is embedded again, and none needs a label.
    """
    opened = _open(folder)
    count: int | Literal["auto"] = "auto" if clusters is None else clusters
    learnt = opened.adapt(count, method=method, labels=labels, seed=seed, workers=workers)
    print_json(learnt) if as_json else _show(learnt)


@gallery.command(epilog=examples("gallery calibrate demo/gallery --labels all"))
def calibrate(
    folder: Folder,
    labels: Annotated[
        Literal["marked", "all"], typer.Option(help="labels to use: of users, or also of manifests")
    ] = "all",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Measure false-alarm rates on the labelled chips."""
    learnt = _open(folder).calibrate(labels=labels, seed=seed)
    print_json(learnt) if as_json else _show(learnt)


@gallery.command(
    epilog=examples("gallery remove demo/gallery ID ID", "gallery remove demo/gallery --sensor near --until 2020-12-31")
)
def remove(
    folder: Folder,
    ids: Annotated[list[str] | None, typer.Argument(help="ids of chips")] = None,
    scene: Annotated[list[str] | None, typer.Option(help="all chips of this scene; repeatable")] = None,
    kind: Annotated[list[str] | None, typer.Option("--label", help="all chips of this label; repeatable")] = None,
    sensor: Annotated[list[str] | None, typer.Option(help="all chips of this sensor; repeatable")] = None,
    since: Annotated[str | None, typer.Option(help="all chips taken at this time or later")] = None,
    until: Annotated[str | None, typer.Option(help="all chips taken at this time or earlier")] = None,
    as_json: AsJson = False,
) -> None:
    """Remove chips from a gallery.

    A chip must meet all of the conditions.
    """
    from lookdown.gallery import Where

    where = Where(scene=scene or None, label=kind or None, sensor=sensor or None, since=since, until=until)
    if bool(ids) != where.everything:
        raise InputError("say which chips: by ids, or by conditions (--scene, --label, --sensor, --since, --until)")
    opened = _open(folder)
    removed = opened.remove(ids) if ids else opened.remove(where=where)
    if as_json:
        print_json({"removed": removed, "chips": len(opened)})
        return
    typer.echo(f"{removed:,} chips removed; {len(opened):,} left in {folder}")


def _open(folder: Path) -> Gallery:
    from lookdown.gallery import Gallery  # heavy: only when a command runs

    return Gallery.open(folder)


def _show(learnt: MetricUpdate) -> None:
    verdict = "kept" if not learnt.changed else "in use" if learnt.helped else "in use, though unlikely to be better"
    typer.echo(f"metric {learnt.metric} ({verdict}): {learnt.reason}")
