"""lookdown index: put an archive of images into a gallery, to search it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lookdown.cli.shared_options import AsJson, Engine, Uri, Workers, print_json


def index(
    given: Annotated[
        list[Path],
        typer.Argument(
            metavar="[RUN] IMAGES",
            help="a run of `lookdown train`, then manifests, images, or folders of images and scenes",
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="folder of the gallery; an existing one is added to")],
    embedder: Annotated[
        str | None, typer.Option(help="instead of a run: a pretrained network, such as tf_efficientnet_lite0")
    ] = None,
    dimension: Annotated[int, typer.Option(min=2, help="with --embedder: numbers in an embedding")] = 64,
    window: Annotated[
        list[int] | None, typer.Option(min=8, help="side in pixels of the windows that scenes are cut into; repeatable")
    ] = None,
    stride: Annotated[
        list[int] | None, typer.Option(min=1, help="step between windows, for all or each; else half their side")
    ] = None,
    scene_side: Annotated[
        int, typer.Option(min=1, help="images with a side of more pixels are scenes, others chips")
    ] = 512,
    whole: Annotated[bool, typer.Option("--whole", help="take every image as one chip, however large")] = False,
    classes: Annotated[bool, typer.Option("--classes", help="the subfolder of an image names its kind")] = False,
    every_role: Annotated[
        bool, typer.Option("--every-role", help="of manifests, take all chips, not only those for the gallery")
    ] = False,
    time: Annotated[str | None, typer.Option(help="when the images were taken, ISO 8601")] = None,
    sensor: Annotated[str | None, typer.Option(help="what took the images")] = None,
    engine: Engine = "auto",
    uri: Uri = None,
    table: Annotated[
        str | None, typer.Option(help="of a new gallery: keep its table in a bucket, s3://bucket/name; the rest in -o")
    ] = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Put an archive of images into a gallery.

    Chips that are in the gallery are not added again, so the command can be stopped and repeated.
    """
    from lookdown.cli.progress_bar import ProgressBar
    from lookdown.errors import InputError
    from lookdown.gallery import Cutting, Gallery
    from lookdown.gallery.index.creation import gallery_of_pretrained, gallery_of_run, is_run
    from lookdown.gallery.index.sources import chip_groups
    from lookdown.gallery.search.engines.engine import chosen_engine

    cutting = Cutting(
        windows=tuple(window or (64,)),
        strides=tuple(stride) if stride else None,
        scene_side=scene_side,
        whole=whole,
        classes=classes,
        time=time,
        sensor=sensor,
    )
    server = chosen_engine(engine, uri)
    run, images = (given[0], given[1:]) if is_run(given[0]) else (None, given)
    if run is not None and embedder is not None:
        raise InputError(f"{run} is a run and has an embedder; omit --embedder, or the run")
    if not images:
        raise InputError(f"there is nothing to index; give images after {run}")
    with ProgressBar("fitting a projection" if embedder else "opening") as progress:
        if run is not None:
            chip_groups(images, cutting)  # refuses missing files before a gallery is created
            gallery = gallery_of_run(out, run, table=table)
        elif embedder is not None:
            gallery = gallery_of_pretrained(
                out, embedder, images, cutting, dimension=dimension, progress=progress, table=table
            )
        elif (out / "gallery.json").exists():
            gallery = Gallery.open(out, table=table)
        else:
            raise InputError(
                f"{given[0]} is not a run, so say how to embed: `lookdown index RUN IMAGES... -o {out}`, or without "
                f"training `lookdown index --embedder tf_efficientnet_lite0 IMAGES... -o {out}`"
            )
        progress.begin("indexing")
        added = gallery.add(list(images), cutting=cutting, every_role=every_role, workers=workers, progress=progress)
        if engine == "milvus":
            progress.begin("sending to Milvus")
            Gallery.open(out, engine=server).prepare()
    for item, reason in list(added.skipped.items())[:20]:
        typer.echo(f"skipped {item}: {reason}", err=True)
    if len(added.skipped) > 20:
        typer.echo(f"and {len(added.skipped) - 20:,} more, see {out / 'skipped.csv'}", err=True)
    if as_json:
        print_json({"gallery": out, "chips": len(gallery), "embedded_by": gallery.embedded_by, **asdict(added)})
        return
    present = f", {added.present:,} were there" if added.present else ""
    typer.echo(f"{added.added:,} chips added{present}; {len(gallery):,} in {out}, embedded by {gallery.embedded_by}")
    if len(gallery):
        typer.echo(f"try `lookdown search {out} IMAGE`")
