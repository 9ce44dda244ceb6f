"""Prepare the chips of a source: cut them, give each a role, write the manifest. It can be stopped and continued."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lookdown.atomic import explained
from lookdown.chips.cutting import CutOptions, background_windows, cut
from lookdown.chips.imagery import SceneReader, open_scene
from lookdown.chips.manifest import Manifest
from lookdown.chips.output import MARKER, OutputFolder, write_chip
from lookdown.chips.roles import SplitOptions, SplitRule, give_roles, read_roles
from lookdown.chips.scene_groups import find_groups, perceptual_hash
from lookdown.chips.sources import Crop, Scene, SkippedItem, SourceContent, box_polygon, polygon_wkt, read_source
from lookdown.errors import ImageError, InputError
from lookdown.progress import Progress, no_progress

__all__ = ["PrepareReport", "cut_chips", "prepare"]

_JOURNAL = "journal.jsonl"  # a line for each scene that is cut
_EXACT = CutOptions(margin=0, smallest=1)


@dataclass(frozen=True, slots=True)
class PrepareReport:
    """The result of `prepare`."""

    manifest: Manifest
    skipped: list[SkippedItem]  # what was left out, and why
    notes: list[str]  # about the split: dropped classes, sizes
    resumed: bool  # everything was there already


def prepare(
    source: str,
    root: str | Path,
    out: str | Path,
    *,
    protocol: Literal["conventional", "uda"] = "conventional",
    split: Literal["group", "none"] | SplitRule = "group",
    groups: Literal["auto", "scene"] = "auto",
    train_classes: tuple[str, ...] | None = None,
    reuse_split: str | Path | None = None,
    seed: int = 0,
    margin: float = 0.1,
    upright: bool = False,
    smallest: int = 4,
    background: float = 0.05,
    overwrite: bool = False,
    progress: Progress = no_progress,
    **source_options: Any,
) -> PrepareReport:
    """Cut the chips of a data set into a folder, split them without leaks, and write their manifest.

    An interrupted call continues where it stopped. A folder that is finished is returned as it is.

    source: the layout of the data: "mar20", "geojson", "folder", ... (`lookdown.chips.sources.SOURCES` has them all).
    root: the folder or file of the data.
    out: the folder to write to.
    protocol: "conventional" has every class in train, query and gallery; "uda" trains and tests on different classes.
    split: "group" gives whole scene groups one role, "none" puts everything into the gallery; a function that takes
        ids, labels, groups and background returns a `Split` of its own.
    groups: "auto" takes scene groups from the source, or finds them by near-duplicates; "scene" makes each scene one.
    train_classes: classes to train on with `protocol="uda"`; a seeded choice by default.
    reuse_split: a split.csv that was written before, to give the same roles again.
    seed: of every random choice.
    margin: added on each side of a box, as a share of its longer side.
    upright: turn oriented boxes so that their longer side lies flat.
    smallest: leave out objects with fewer pixels on the longer side.
    background: background chips to cut, as a share of the objects.
    overwrite: replace chips that were prepared from other data or with other options.
    progress: called after each scene.
    source_options: options of the source, such as `oriented` of mar20, `boxes` and `label` of geojson, `size` and
        `stride` of windows.

    >>> import lookdown, tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (32, 32), "navy").save(folder / "sea.png")
    >>> report = lookdown.prepare("folder", folder, folder / "chips")
    >>> len(report.manifest), report.manifest.paths[0].name
    (1, 'sea.png')
    """
    cutting = CutOptions(margin=margin, upright=upright, smallest=smallest, background=background)
    splitting = SplitOptions(
        protocol=protocol,
        split=split,
        groups=groups,
        train_classes=train_classes,
        seed=seed,
        reuse_split=Path(reuse_split) if reuse_split else None,
    )
    content = read_source(source, root, **source_options)
    return cut_chips(content, Path(out), cutting, splitting, overwrite=overwrite, progress=progress)


def cut_chips(
    content: SourceContent,
    out: Path,
    cutting: CutOptions | None = None,
    splitting: SplitOptions | None = None,
    *,
    overwrite: bool = False,
    progress: Progress = no_progress,
) -> PrepareReport:
    """Do the work of `prepare` for a source that was read before."""
    cutting, splitting = cutting or CutOptions(), splitting or SplitOptions()
    if not content.crops:
        raise InputError(f"the source holds no object that can be used; skipped: {_common_reasons(content.skipped)}")
    roles = read_roles(splitting.reuse_split) if splitting.reuse_split else None
    output = OutputFolder.open(out, _fingerprint(content, cutting, splitting, roles), overwrite=overwrite)
    if output.complete:
        notes = json.loads((out / MARKER).read_text()).get("notes", [])
        return PrepareReport(Manifest.read(out), _read_skipped(out), notes, resumed=True)
    with explained(output.folder, "free the disk, or name another folder"):
        rows, skipped = _cut_all(content, output.folder, cutting, progress)
        _set_groups(rows, content, splitting)
        split = give_roles(rows, splitting, roles)
        skipped = [*content.skipped, *skipped, *split.left_out([row["id"] for row in rows])]
        kept = [{**row, "role": role} for row, role in zip(rows, split.roles, strict=True) if role]
        if not kept:
            raise InputError(f"no chip is left of {len(content.crops)} objects; skipped: {_common_reasons(skipped)}")
        all_in_source = all(crop.polygon is None for crop in content.crops)
        output.write_tables(kept, skipped, root=_common_root(content) if all_in_source else None)
        (output.folder / _JOURNAL).unlink(missing_ok=True)
        output.finish({"cutting": asdict(cutting), "notes": split.notes, "chips": len(kept), "skipped": len(skipped)})
    return PrepareReport(Manifest.read(output.path, check_files=False), skipped, split.notes, resumed=False)


def _cut_all(
    content: SourceContent, folder: Path, cutting: CutOptions, progress: Progress
) -> tuple[list[dict[str, Any]], list[SkippedItem]]:
    """Cut scene by scene on two threads, since decoding releases the interpreter; a journal keeps finished scenes."""
    crops: dict[str, list[Crop]] = defaultdict(list)
    for crop in content.crops:
        crops[crop.scene].append(crop)
    finished = _read_journal(folder / _JOURNAL)
    scenes = [name for name in content.scenes if crops[name]]
    background = round(cutting.background * sum(crop.is_object for crop in content.crops))
    shares = np.diff(background * np.arange(len(scenes) + 1) // len(scenes)).tolist()  # that differ by one at most
    root = _common_root(content)

    def work(name: str, share: int) -> dict[str, Any]:
        return finished.get(name) or _cut_scene(content.scenes[name], crops[name], share, folder, root, cutting)

    rows: list[dict[str, Any]] = []
    skipped: list[SkippedItem] = []
    with (folder / _JOURNAL).open("a") as journal, ThreadPoolExecutor(2) as pool:
        for number, entry in enumerate(pool.map(work, scenes, shares), start=1):
            if entry["scene"] not in finished:
                journal.write(json.dumps(entry) + "\n")
                journal.flush()
            rows += entry["rows"]
            skipped += [SkippedItem(*pair) for pair in entry["skipped"]]
            progress(number, len(scenes), "scenes")
    return rows, skipped


def _cut_scene(
    scene: Scene, crops: list[Crop], background: int, folder: Path, root: Path, cutting: CutOptions
) -> dict[str, Any]:
    """Write the chips of one scene; return its rows and what was skipped."""
    rows: list[dict[str, Any]] = []
    skipped: list[tuple[str, str]] = []
    try:
        with open_scene(scene.path) as reader:
            for crop in [*crops, *_background_crops(scene, reader, crops, background)]:
                try:
                    rows.append(_chip_row(scene, reader, crop, folder, root, cutting))
                except ValueError as error:
                    skipped.append((crop.id, str(error)))
    except ImageError as error:
        rows, skipped = [], [(crop.id, str(error)) for crop in crops]
    return {"scene": scene.name, "rows": rows, "skipped": skipped}


def _chip_row(
    scene: Scene, reader: SceneReader, crop: Crop, folder: Path, root: Path, cutting: CutOptions
) -> dict[str, Any]:
    if crop.polygon is None:
        corners = box_polygon(0, 0, reader.width, reader.height)
        pixels = reader.read((0, 0, reader.width, reader.height))
        path = scene.path.absolute().relative_to(root).as_posix()
    else:
        corners = crop.polygon
        pixels = cut(reader, crop.polygon, _EXACT if crop.exact else cutting)
        path = write_chip(pixels, folder, crop.id)
    return {
        "id": crop.id,
        "path": path,
        "scene": scene.name,
        "polygon": polygon_wkt(crop.polygon),
        "label": crop.label,
        "background": crop.background,
        "scene_group": scene.group,
        "footprint": reader.footprint(corners),
        "time": scene.time,
        "sensor": scene.sensor,
        "gsd": scene.gsd or reader.gsd,
        "hash": perceptual_hash(pixels),
    }


def _background_crops(scene: Scene, reader: SceneReader, crops: list[Crop], count: int) -> Iterator[Crop]:
    polygons = [crop.polygon for crop in crops if crop.polygon]
    rng = np.random.default_rng(int(hashlib.sha256(scene.name.encode()).hexdigest()[:12], 16))
    for index, window in enumerate(background_windows(reader.width, reader.height, polygons, count, rng)):
        key = f"{scene.name}_background_{index}"
        yield Crop(id=key, scene=scene.name, polygon=box_polygon(*window), background=True, exact=True)


def _set_groups(rows: list[dict[str, Any]], content: SourceContent, splitting: SplitOptions) -> None:
    """Fill in `scene_group`, and remove the hashes, which are needed for nothing else."""
    hashes = np.array([row.pop("hash") for row in rows], dtype=np.uint64)
    groups = [row["scene_group"] or row["scene"] for row in rows]
    if splitting.groups == "auto" and any(scene.group is None for scene in content.scenes.values()):
        groups = find_groups(hashes, groups)
    for row, group in zip(rows, groups, strict=True):
        row["scene_group"] = group


def _fingerprint(
    content: SourceContent, cutting: CutOptions, splitting: SplitOptions, roles: dict[str, str] | None
) -> str:
    """Return a digest of the data (names, sizes and times of the files, what to cut) and the options."""

    def state(path: Path) -> tuple[int, int] | None:
        try:
            status = path.stat()
        except OSError:
            return None
        return status.st_size, status.st_mtime_ns

    parts = [
        version("lookdown"),
        [(str(scene), state(scene.path)) for scene in content.scenes.values()],
        [str(crop) for crop in content.crops],
        asdict(cutting),
        {name: str(value) for name, value in asdict(splitting).items() if name != "reuse_split"},
        roles,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _common_root(content: SourceContent) -> Path:
    """Return the folder that all scenes lie below."""
    return Path(os.path.commonpath([scene.path.absolute().parent for scene in content.scenes.values()]))


def _read_journal(file: Path) -> dict[str, dict[str, Any]]:
    """Return the scenes that were finished; a killed process may have left half a line at the end."""
    finished = {}
    with suppress(FileNotFoundError, ValueError):
        for line in file.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            finished[entry["scene"]] = entry
    return finished


def _read_skipped(folder: Path) -> list[SkippedItem]:
    with (folder / "skipped.csv").open(newline="", encoding="utf-8", errors="surrogateescape") as lines:
        return [SkippedItem(row["item"], row["reason"]) for row in csv.DictReader(lines)]


def _common_reasons(skipped: list[SkippedItem]) -> str:
    counts = Counter(item.reason for item in skipped).most_common(3)
    return "; ".join(f"{count} x {reason}" for reason, count in counts) or "nothing"
