"""lookdown gallery: look after a gallery: what it holds, its metrics, its labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from lookdown.gallery import Learnt

__all__ = ["gallery"]

gallery = typer.Typer(no_args_is_help=True, help="Look after a gallery: what it holds, its metrics, its labels.")

Folder = Annotated[Path, typer.Argument(metavar="GALLERY", help="folder written by `lookdown index`")]
AsJson = Annotated[bool, typer.Option("--json", help="as JSON")]


@gallery.command()
def stats(folder: Folder, as_json: AsJson = False) -> None:
    """Say what a gallery holds."""
    import json
    from dataclasses import asdict

    from lookdown.gallery import Gallery

    found = asdict(Gallery.open(folder).stats())
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name, value in found.items():
        shown = f"{value:,}" if isinstance(value, int) else ", ".join(value) if isinstance(value, tuple) else value
        typer.echo(f"{name.replace('_', ' '):<14} {shown or '-'}")


@gallery.command()
def metrics(
    folder: Folder,
    use: Annotated[str | None, typer.Option(help="search by this one from now on")] = None,
    as_json: AsJson = False,
) -> None:
    """List the metrics of a gallery, the one in use marked; or choose one."""
    import json
    from dataclasses import asdict

    from lookdown.gallery import Gallery

    opened = Gallery.open(folder)
    if use is not None:
        opened.use(use)
    if as_json:
        listed = [asdict(metric) | {"in_use": metric.name == opened.metric} for metric in opened.metrics()]
        typer.echo(json.dumps(listed))
        return
    for metric in opened.metrics():
        mark = "*" if metric.name == opened.metric else " "
        rates = "knows rates" if metric.calibrated else "no rates"
        typer.echo(f"{mark} {metric.name:<16} {metric.created[:19]}  {rates:<11}  {metric.about}")


@gallery.command()
def label(
    folder: Folder,
    ids: Annotated[list[str], typer.Argument(help="chips, by the ids that `lookdown search` shows")],
    kind: Annotated[str | None, typer.Option("--as", help="what they show")] = None,
    background: Annotated[bool, typer.Option("--background", help="they show none of the objects")] = False,
    clear: Annotated[bool, typer.Option("--clear", help="take their labels away")] = False,
    teach: Annotated[bool, typer.Option("--teach/--no-teach", help="re-estimate the metric with all labels")] = True,
) -> None:
    """Say what chips show, and teach the metric by it."""
    from lookdown.errors import InputError
    from lookdown.gallery import Gallery

    if (kind is not None) + background + clear != 1:
        raise InputError("say one thing: --as KIND, --background, or --clear")
    opened = Gallery.open(folder)
    labels, empty = ([], ids) if background else (ids, [])
    kinds = [kind] * len(labels)
    if teach:
        _show(opened.teach(labels, kinds, background=empty))
    else:
        opened.label(labels, kinds, background=empty)
    typer.echo(f"{len(ids):,} chips labelled, {opened.stats().marked:,} in all")


@gallery.command()
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
    seed: Annotated[int, typer.Option(help="of the clustering")] = 0,
) -> None:
    """Re-estimate the metric on what the gallery holds; no image is embedded again."""
    from lookdown.gallery import Gallery

    opened = Gallery.open(folder)
    _show(opened.adapt("auto" if clusters is None else clusters, method=method, labels=labels, seed=seed))


@gallery.command()
def calibrate(
    folder: Folder,
    labels: Annotated[Literal["marked", "all"], typer.Option(help="which labels count")] = "all",
    seed: Annotated[int, typer.Option(help="of the intervals")] = 0,
) -> None:
    """Measure false-alarm rates on the labelled chips."""
    from lookdown.gallery import Gallery

    _show(Gallery.open(folder).calibrate(labels=labels, seed=seed))


@gallery.command()
def remove(
    folder: Folder,
    ids: Annotated[list[str] | None, typer.Argument(help="chips by their ids")] = None,
    scene: Annotated[list[str] | None, typer.Option(help="all chips of this scene; repeatable")] = None,
    kind: Annotated[list[str] | None, typer.Option("--label", help="all chips of this class; repeatable")] = None,
    sensor: Annotated[list[str] | None, typer.Option(help="all chips of this sensor; repeatable")] = None,
    since: Annotated[str | None, typer.Option(help="all since then")] = None,
    until: Annotated[str | None, typer.Option(help="all until then")] = None,
) -> None:
    """Take chips out of a gallery; conditions together must all hold."""
    from lookdown.errors import InputError
    from lookdown.gallery import Gallery, Where

    where = Where(scene=scene or None, label=kind or None, sensor=sensor or None, since=since, until=until)
    if bool(ids) != where.everything:
        raise InputError("say which chips: by ids, or by --scene, --label, --sensor, --since, --until")
    opened = Gallery.open(folder)
    gone = opened.remove(ids) if ids else opened.remove(where=where)
    typer.echo(f"{gone:,} chips removed; {len(opened):,} left in {folder}")


def _show(learnt: Learnt) -> None:
    verdict = "kept" if not learnt.changed else "in use" if learnt.helped else "in use, though unlikely to be better"
    typer.echo(f"metric {learnt.metric} ({verdict}): {learnt.reason}")
