"""lookdown prepare: from what you have to chips and a manifest."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from rich.console import Console

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
    seed: Annotated[int, typer.Option(help="of every random choice")] = 0,
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
) -> None:
    """Cut chips from images and annotations, split them without leaks, write one table."""
    from rich.console import Console
    from rich.progress import Progress

    from lookdown.chips.cutting import Cutting
    from lookdown.chips.preparing import prepare as prepare_chips
    from lookdown.chips.sources import read_source
    from lookdown.chips.splitting import Splitting
    from lookdown.errors import SourceError

    console = Console()
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
        _make_world(console, {**chosen_options, "protocol": protocol, "seed": seed}, out, overwrite, dry_run)
        return
    if strange := [name for name, value in world.items() if value is not None]:
        raise SourceError(
            f"--{', --'.join(strange).replace('_', '-')} goes with the source synthetic only; leave it out"
        )
    if root is None:
        raise SourceError(f"the source {source} needs the folder of its data: lookdown prepare {source} ROOT -o DIR")
    found = read_source(source, root, **options)
    classes = Counter(item.label or ("background" if item.background else "no class") for item in found.marked)
    listed = ", ".join(f"{name} {count:,}" for name, count in sorted(classes.items()))
    console.print(f"{len(found.scenes):,} images, {len(found.marked):,} objects: {listed}", markup=False)
    if dry_run:
        return
    with Progress(console=console) as bar:
        task = bar.add_task("cutting", total=None)
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
            progress=lambda number, total: bar.update(task, completed=number, total=total),
        )
    _show(console, done, out)


def _make_world(console: Console, options: dict[str, Any], out: Path, overwrite: bool, dry_run: bool) -> None:
    from rich.progress import Progress

    from lookdown.chips.synthetic.world import World, make, plan

    world = World(**options)
    if dry_run:
        planned, _, notes = plan(world)
        console.print(f"{len(planned):,} chips and {world.scenes} scenes would be drawn", markup=False)
        console.print("\n".join(notes), markup=False)
        return
    with Progress(console=console) as bar:
        task = bar.add_task("drawing", total=None)
        done = make(
            world,
            out,
            overwrite=overwrite,
            progress=lambda number, total: bar.update(task, completed=number, total=total),
        )
    _show(console, done, out)
    if world.scenes:
        console.print(f"{world.scenes} scenes with their boxes in {out / 'scenes'}", markup=False)


def _show(console: Console, done: Prepared, out: Path) -> None:
    from rich.markup import escape
    from rich.table import Table

    if done.resumed:
        console.print(
            f"{out} was prepared before from the same data with the same options; nothing to do", markup=False
        )
    manifest = done.manifest
    counts = Counter(
        zip(manifest.labels, manifest.table["role"].to_pylist(), manifest.background.tolist(), strict=True)
    )
    table = Table("class", "train", "query", "gallery")
    for name, background in sorted({(key[0], key[2]) for key in counts}, key=lambda key: (key[1], key[0] or "")):
        row = [f"{counts[name, role, background]:,}" for role in ("train", "query", "gallery")]
        table.add_row(escape(name or ("background" if background else "no class")), *row)
    console.print(table)
    for note in done.notes:
        console.print(note, markup=False)
    reasons = Counter(item.reason for item in done.skipped).most_common()
    for reason, count in reasons[:10]:
        console.print(f"skipped {count:,}: {reason}", markup=False)
    if len(reasons) > 10:
        console.print(f"and {len(reasons) - 10:,} more reasons, see skipped.csv", markup=False)
    console.print(f"{len(manifest):,} chips in {out / 'manifest.parquet'}", markup=False)
