"""lookdown prepare: cut a data set into chips and a manifest, one subcommand a source."""

from __future__ import annotations

import inspect
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lookdown.chips.sources import SOURCES
from lookdown.cli.command_group import examples
from lookdown.cli.shared_options import AsJson, print_json
from lookdown.errors import InputError

if TYPE_CHECKING:
    from lookdown.chips.prepare import PrepareReport

__all__ = ["prepare"]

prepare = typer.Typer(
    no_args_is_help=True,
    help="Cut images and annotations into chips and one table.\n\n"
    "The chips are split into train, query and gallery without leaks. It can be stopped and run again.",
    epilog=examples(
        "prepare synthetic -o data/synthetic", "prepare geojson SCENES --boxes FILE --label PROPERTY -o data"
    ),
)

_ROLES = ("train", "query", "gallery")

# Options that all sources share.
Out = Annotated[Path, typer.Option("-o", "--out", help="folder to write chips and manifest.parquet to")]
SplitProtocol = Annotated[
    Literal["conventional", "uda"], typer.Option(help="classes in all roles, or train and test classes apart")
]
TrainClasses = Annotated[
    str | None, typer.Option(help="classes to train on, separated by commas; else a seeded choice")
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="of every random choice")]
Background = Annotated[float, typer.Option(min=0, help="background chips, as a share of the objects")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="show what the source holds, and stop")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="replace chips of other data or options that are in the folder")
]


def _prepare(
    source: str,
    root: Annotated[Path, typer.Argument(metavar="ROOT", help="folder or file of the data")],
    *,
    out: Out,
    protocol: SplitProtocol = "conventional",
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
        typer.Option(help="scene groups from the source or by near-duplicates, or each scene its own"),
    ] = "auto",
    train_classes: TrainClasses = None,
    reuse_split: Annotated[
        Path | None, typer.Option(help="a split.csv written before, to give the same roles again")
    ] = None,
    seed: Seed = 0,
    margin: Annotated[float, typer.Option(min=0, help="added around a box, as a share of its longer side")] = 0.1,
    upright: Annotated[
        bool, typer.Option("--upright", help="turn oriented boxes so that their longer side lies flat")
    ] = False,
    smallest: Annotated[int, typer.Option(min=1, help="leave out objects with fewer pixels on the longer side")] = 4,
    background: Background = 0.05,
    dry_run: DryRun = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    **own: Any,
) -> None:
    from lookdown.chips.cutting import CutOptions
    from lookdown.chips.prepare import cut_chips
    from lookdown.chips.roles import SplitOptions
    from lookdown.chips.sources import read_source
    from lookdown.cli.progress_bar import ProgressBar

    if (split == "paper") != (paper is not None):
        raise InputError("--split paper and --paper go together: --split paper --paper CBRSOR-MAR")
    classes = _names(train_classes)
    content = read_source(source, root, **{name: value for name, value in own.items() if value is not None})
    counts = Counter(crop.label or ("background" if crop.background else "no class") for crop in content.crops)
    if dry_run and as_json:
        print_json({
            "images": len(content.scenes), "objects": len(content.crops), "classes": counts, "skipped": content.skipped
        })  # fmt: skip
        return
    listed = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
    typer.echo(f"{len(content.scenes):,} images, {len(content.crops):,} objects: {listed}", err=not dry_run)
    if dry_run:
        return
    rule: Any = split
    if paper is not None:
        from lookdown.lab.paper.paper_split import PaperSplit

        rule = PaperSplit(paper, classes, seed)
        background = rule.background_share(content)
    cutting = CutOptions(margin=margin, upright=upright, smallest=smallest, background=background)
    splitting = SplitOptions(
        protocol=protocol, split=rule, groups=groups, train_classes=classes, seed=seed, reuse_split=reuse_split
    )
    with ProgressBar("cutting") as progress:
        report = cut_chips(content, out, cutting, splitting, overwrite=overwrite, progress=progress)
    (_print if as_json else _show)(report, out)


def _option(name: str, kind: Any, default: Any, option: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])


_OWN_OPTIONS = {
    "geojson": [
        _option("boxes", Path | None, None, typer.Option(help="GeoJSON file of the boxes or polygons")),
        _option("label", str, "label", typer.Option(help="property that names the class")),
    ],
    "mar20": [_option("oriented", bool, False, typer.Option("--oriented", help="take the oriented boxes"))],
    "windows": [
        _option("size", list[int], [64], typer.Option(min=8, help="side in pixels; may be repeated")),
        _option(
            "stride",
            list[int] | None,
            None,
            typer.Option(min=1, help="step in pixels, for all sizes or one for each; else half the size"),
        ),
    ],
}
_EXAMPLES = {
    "geojson": "prepare geojson SCENES --boxes FILE --label PROPERTY -o data",
    "windows": "prepare windows SCENES --size 64 --size 128 -o data",
}


def _add_command(source: str, description: str) -> None:
    """Add the command of a source: the parameters of `_prepare`, with the source's own options before the others."""
    _, root, *shared, _ = inspect.signature(_prepare, eval_str=True).parameters.values()

    def command(root: Path, **options: Any) -> None:
        _prepare(source, root, **options)

    own = _OWN_OPTIONS.get(source, [])
    command.__signature__ = inspect.Signature([root, *own, *shared])  # type: ignore[attr-defined]
    example = _EXAMPLES.get(source, f"prepare {source} ROOT -o data")
    prepare.command(source, help=description, epilog=examples(example))(command)


for _source, _description in SOURCES.items():
    _add_command(_source, _description)


@prepare.command(epilog=examples("prepare synthetic -o data", "prepare synthetic --kinds ships -o ships"))
def synthetic(
    *,
    out: Out,
    kinds: Annotated[Literal["all", "ships", "aircraft"], typer.Option(help="16 ships, 20 aircraft, or all")] = "all",
    chips: Annotated[int, typer.Option(min=1, help="chips of each kind")] = 120,
    size: Annotated[int, typer.Option(min=8, help="side of a chip in pixels")] = 96,
    shift: Annotated[
        float, typer.Option(min=0, max=1, help="how far the sensor of query and gallery is from that of train")
    ] = 0,
    scenes: Annotated[int, typer.Option(min=0, help="whole GeoTIFF scenes to draw, with their boxes")] = 0,
    scene_size: Annotated[int, typer.Option(min=512, help="side of a scene in pixels")] = 4096,
    protocol: SplitProtocol = "conventional",
    train_classes: TrainClasses = None,
    seed: Seed = 0,
    background: Background = 0.15,
    dry_run: DryRun = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Draw ships and aircraft of the synthetic world; no data is needed."""
    from lookdown.cli.progress_bar import ProgressBar
    from lookdown.lab.synthetic.world import World, draw_world, plan_world

    world = World(
        kinds=kinds,
        chips=chips,
        background=background,
        size=size,
        shift=shift,
        protocol=protocol,
        train_classes=_names(train_classes),
        scenes=scenes,
        scene_size=scene_size,
        seed=seed,
    )
    if dry_run:
        planned, _, notes = plan_world(world)
        if as_json:
            print_json({"chips": len(planned), "scenes": scenes, "notes": notes})
        else:
            typer.echo("\n".join((f"{len(planned):,} chips and {scenes} scenes would be drawn", *notes)))
        return
    with ProgressBar("drawing") as progress:
        report = draw_world(world, out, overwrite=overwrite, progress=progress)
    (_print if as_json else _show)(report, out)
    if scenes and not as_json:
        typer.echo(f"{scenes} scenes with their boxes in {out / 'scenes'}")


def _names(text: str | None) -> tuple[str, ...] | None:
    return tuple(name.strip() for name in text.split(",")) if text else None


def _print(report: PrepareReport, out: Path) -> None:
    print_json({
        "manifest": out / "manifest.parquet", "chips": len(report.manifest), "classes": _classes(report),
        "skipped": report.skipped, "notes": report.notes, "resumed": report.resumed,
    })  # fmt: skip


def _show(report: PrepareReport, out: Path) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    if report.resumed:
        typer.echo(f"{out} was prepared before from the same data with the same options; nothing to do")
    table = Table("class", *_ROLES)
    for row in _classes(report):
        name = row["label"] or ("background" if row["background"] else "no class")
        table.add_row(escape(name), *(f"{row[role]:,}" for role in _ROLES))
    Console().print(table)
    for note in report.notes:
        typer.echo(note)
    reasons = Counter(item.reason for item in report.skipped).most_common()
    for reason, count in reasons[:10]:
        typer.echo(f"skipped {count:,}: {reason}")
    if len(reasons) > 10:
        typer.echo(f"and {len(reasons) - 10:,} more reasons, see {out / 'skipped.csv'}")
    typer.echo(f"{len(report.manifest):,} chips in {out / 'manifest.parquet'}")


def _classes(report: PrepareReport) -> list[dict[str, Any]]:
    """Return how many chips of each class, background last, have each role."""
    manifest = report.manifest
    columns = manifest.labels, manifest.background.tolist(), manifest.table["role"].to_pylist()
    counts = Counter(zip(*columns, strict=True))
    return [
        {"label": label, "background": empty, **{role: counts[label, empty, role] for role in _ROLES}}
        for label, empty in sorted({key[:2] for key in counts}, key=lambda name: (name[1], name[0] or ""))
    ]
