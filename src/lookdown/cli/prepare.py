"""lookdown prepare: from what you have to chips and a manifest."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lookdown.cli.json_output import AsJson, print_json

if TYPE_CHECKING:
    from lookdown.chips.preparing import Prepared


def prepare(
    source: Annotated[
        str,
        typer.Argument(help="coco, dota, fair1m, fgsc23, fgsrsi23, folder, geojson, mar20, synthetic, voc or windows"),
    ],
    root: Annotated[Path | None, typer.Argument(help="folder (or file) of the data; synthetic has none")] = None,
    *,
    out: Annotated[Path, typer.Option("-o", "--out", help="folder to write chips and manifest.parquet to")],
    protocol: Annotated[
        Literal["conventional", "uda"], typer.Option(help="classes in all roles, or train and test classes apart")
    ] = "conventional",
    split: Annotated[
        Literal["group", "paper", "none"],
        typer.Option(help="whole scene groups, chips as in the paper (leaks), or everything into the gallery"),
    ] = "group",
    paper: Annotated[
        str | None,
        typer.Option(help="with --split paper: CBRSOR-FGSRSI, UDA-CBRSOR-FGSRSI, CBRSOR-MAR or UDA-CBRSOR-MAR"),
    ] = None,
    groups: Annotated[
        Literal["auto", "scene"],
        typer.Option(help="scene groups as given or found by near-duplicates, or each scene its own"),
    ] = "auto",
    train_classes: Annotated[
        str | None, typer.Option(help="classes to train on, separated by commas; else a seeded choice")
    ] = None,
    reuse_split: Annotated[
        Path | None, typer.Option(help="a split.csv written before, to give the same roles again")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="of every random choice")] = 0,
    margin: Annotated[float, typer.Option(min=0, help="added around a box, as a share of its longer side")] = 0.1,
    upright: Annotated[
        bool, typer.Option("--upright", help="turn oriented boxes so that their longer side lies flat")
    ] = False,
    smallest: Annotated[int, typer.Option(min=1, help="leave out objects with fewer pixels on the longer side")] = 4,
    background: Annotated[
        float | None,
        typer.Option(min=0, help="background chips, as a share of the objects: 0.05, or 0.15 for synthetic"),
    ] = None,
    oriented: Annotated[bool | None, typer.Option("--oriented", help="mar20: the oriented boxes")] = None,
    boxes: Annotated[Path | None, typer.Option(help="geojson: the file of boxes or polygons")] = None,
    label: Annotated[str | None, typer.Option(help="geojson: the property that names the class")] = None,
    size: Annotated[
        list[int] | None, typer.Option(min=8, help="windows: side in pixels; may be repeated. synthetic: of a chip")
    ] = None,
    stride: Annotated[list[int] | None, typer.Option(min=1, help="windows: step in pixels, for all or each")] = None,
    kinds: Annotated[
        Literal["all", "ships", "aircraft"] | None, typer.Option(help="synthetic: which of the 16 ships, 20 aircraft")
    ] = None,
    chips: Annotated[int | None, typer.Option(min=1, help="synthetic: chips of each kind")] = None,
    shift: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="synthetic: how far the sensor of queries and gallery is from that of train"),
    ] = None,
    scenes: Annotated[int | None, typer.Option(min=0, help="synthetic: whole GeoTIFF scenes with their boxes")] = None,
    scene_size: Annotated[int | None, typer.Option(min=512, help="synthetic: side of a scene in pixels")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show what the source holds, and stop")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="replace what another prepare left in the folder")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Cut images and annotations into chips and one table.

    The chips are split into train, query and gallery without leaks. It can be stopped and run again.
    """
    from lookdown.chips.cutting import Cutting
    from lookdown.chips.preparing import prepare as prepare_chips
    from lookdown.chips.sources import read_source
    from lookdown.chips.splitting import Splitting
    from lookdown.cli.progress import ProgressBar
    from lookdown.errors import SourceError

    chosen = tuple(name.strip() for name in train_classes.split(",")) if train_classes else None
    options = {"oriented": oriented, "boxes": boxes, "label": label, "size": size or None, "stride": stride or None}
    world = {"kinds": kinds, "chips": chips, "shift": shift, "scenes": scenes, "scene_size": scene_size}
    if source == "synthetic":
        if strange := [name for name, value in {"ROOT": root, **options}.items() if value and name != "size"]:
            raise SourceError(f"{', '.join(strange)} means nothing to the source synthetic; leave it out")
        if split != "group" or paper or reuse_split or groups != "auto":
            raise SourceError("the synthetic world is split by whole places; leave out --split, --paper and --groups")
        if (margin, upright, smallest) != (0.1, False, 4) or (size and len(size) > 1):
            raise SourceError(
                "synthetic chips are drawn in one size, not cut; leave out --margin, --upright, --smallest"
            )
        side = size[0] if size else None
        given = {**world, "size": side, "background": background, "train_classes": chosen}
        chosen_options = {name: value for name, value in given.items() if value is not None}
        drawn = {**chosen_options, "protocol": protocol, "seed": seed}
        _make_world(drawn, out, overwrite=overwrite, dry_run=dry_run, as_json=as_json)
        return
    if strange := [name for name, value in world.items() if value is not None]:
        raise SourceError(
            f"--{', --'.join(strange).replace('_', '-')} goes with the source synthetic only; leave it out"
        )
    if root is None:
        raise SourceError(f"the source {source} needs the folder of its data: lookdown prepare {source} ROOT -o DIR")
    found = read_source(source, root, **options)
    classes = Counter(item.label or ("background" if item.background else "no class") for item in found.marked)
    if dry_run and as_json:
        print_json({
            "images": len(found.scenes), "objects": len(found.marked), "classes": classes, "skipped": found.skipped
        })  # fmt: skip
        return
    listed = ", ".join(f"{name} {count:,}" for name, count in sorted(classes.items()))
    typer.echo(f"{len(found.scenes):,} images, {len(found.marked):,} objects: {listed}", err=not dry_run)
    if dry_run:
        return
    with ProgressBar("cutting") as progress:
        done = prepare_chips(
            found,
            out,
            cutting=Cutting(
                margin=margin,
                upright=upright,
                smallest=smallest,
                background=0.05 if background is None else background,
            ),
            splitting=Splitting(
                protocol=protocol,
                split=split,
                paper=paper,
                groups=groups,
                train_classes=chosen,
                seed=seed,
                roles=reuse_split,
            ),
            overwrite=overwrite,
            progress=progress,
        )
    (_print if as_json else _show)(done, out)


def _make_world(options: dict[str, Any], out: Path, *, overwrite: bool, dry_run: bool, as_json: bool) -> None:
    from lookdown.cli.progress import ProgressBar
    from lookdown.lab.synthetic.world import World, draw_world, plan_world

    world = World(**options)
    if dry_run:
        planned, _, notes = plan_world(world)
        if as_json:
            print_json({"chips": len(planned), "scenes": world.scenes, "notes": notes})
        else:
            typer.echo("\n".join((f"{len(planned):,} chips and {world.scenes} scenes would be drawn", *notes)))
        return
    with ProgressBar("drawing") as progress:
        done = draw_world(world, out, overwrite=overwrite, progress=progress)
    (_print if as_json else _show)(done, out)
    if world.scenes and not as_json:
        typer.echo(f"{world.scenes} scenes with their boxes in {out / 'scenes'}")


def _print(done: Prepared, out: Path) -> None:
    classes = [
        {"label": label, "background": background, **roles} for (label, background), roles in _classes(done).items()
    ]
    print_json({
        "manifest": out / "manifest.parquet", "chips": len(done.manifest), "classes": classes, "skipped": done.skipped,
        "notes": done.notes, "resumed": done.resumed,
    })  # fmt: skip


def _show(done: Prepared, out: Path) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    if done.resumed:
        typer.echo(f"{out} was prepared before from the same data with the same options; nothing to do")
    table = Table("class", "train", "query", "gallery")
    for (label, background), roles in _classes(done).items():
        shown = label or ("background" if background else "no class")
        table.add_row(escape(shown), *(f"{count:,}" for count in roles.values()))
    Console().print(table)
    for note in done.notes:
        typer.echo(note)
    reasons = Counter(item.reason for item in done.skipped).most_common()
    for reason, count in reasons[:10]:
        typer.echo(f"skipped {count:,}: {reason}")
    if len(reasons) > 10:
        typer.echo(f"and {len(reasons) - 10:,} more reasons, see {out / 'skipped.csv'}")
    typer.echo(f"{len(done.manifest):,} chips in {out / 'manifest.parquet'}")


def _classes(done: Prepared) -> dict[tuple[str | None, bool], dict[str, int]]:
    """Return how many chips of each class, background last, have each role."""
    manifest = done.manifest
    columns = manifest.labels, manifest.background.tolist(), manifest.table["role"].to_pylist()
    counts = Counter(zip(*columns, strict=True))
    names = sorted({key[:2] for key in counts}, key=lambda name: (name[1], name[0] or ""))
    return {name: {role: counts[*name, role] for role in ("train", "query", "gallery")} for name in names}
