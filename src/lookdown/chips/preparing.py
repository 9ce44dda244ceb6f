"""From a source to a folder of chips and its manifest; it can be stopped and goes on where it was."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from lookdown.chips import protocols
from lookdown.chips.annotations import Annotated, Marked, Scene, Skipped
from lookdown.chips.cutting import Cutting, background_windows, cut
from lookdown.chips.imagery import SceneReader, open_scene
from lookdown.chips.manifest import Manifest, polygon_wkt
from lookdown.chips.output import MARKER, OutputFolder, write_chip
from lookdown.chips.scene_groups import find_groups, perceptual_hash
from lookdown.chips.sources.voc import box
from lookdown.chips.splitting import Splitting, give_roles, read_roles, refuse_paper_early
from lookdown.errors import ImageError, InputError, OutputError
from lookdown.progress import Progress, no_progress

__all__ = ["Prepared", "prepare"]

JOURNAL = "journal.jsonl"
EXACT = Cutting(margin=0, smallest=1)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What came of it."""

    manifest: Manifest
    skipped: list[Skipped]
    notes: list[str]
    resumed: bool


def prepare(
    found: Annotated,
    out: Path,
    *,
    cutting: Cutting | None = None,
    splitting: Splitting | None = None,
    overwrite: bool = False,
    progress: Progress = no_progress,
) -> Prepared:
    """Cut the chips of a source into `out`, give each a role, and write the manifest last."""
    cutting, splitting = cutting or Cutting(), splitting or Splitting()
    if not found.marked:
        raise InputError(f"the source holds no object that can be used; skipped: {_common(found.skipped) or 'nothing'}")
    given = read_roles(splitting.roles) if splitting.roles else None
    if splitting.split == "paper":
        refuse_paper_early(found, splitting)
    output = OutputFolder.open(out, _fingerprint(found, cutting, splitting, given), overwrite=overwrite)
    if output.complete:
        notes = json.loads((out / MARKER).read_text()).get("notes", [])
        return Prepared(Manifest.read(out), _read_skipped(out), notes, resumed=True)
    try:
        return _work(found, output, cutting, splitting, given, progress)
    except OSError as error:
        raise OutputError(
            f"{output.folder} cannot be written: {error}; free the disk or name another folder"
        ) from error


def _work(
    found: Annotated,
    output: OutputFolder,
    cutting: Cutting,
    splitting: Splitting,
    given: dict[str, str] | None,
    progress: Progress,
) -> Prepared:
    rows, skipped = _cut_all(found, output.folder, cutting, _wanted_background(found, cutting, splitting), progress)
    skipped = [*found.skipped, *skipped]
    _give_groups(rows, found, splitting)
    split = give_roles(rows, splitting, given)
    skipped += [
        Skipped(row["id"], reason or "it has no role")
        for row, role, reason in zip(rows, split.roles, split.reasons, strict=True)
        if role is None
    ]
    kept = [{**row, "role": role} for row, role in zip(rows, split.roles, strict=True) if role]
    if not kept:
        raise InputError(f"no chip is left of {len(found.marked)} objects; skipped: {_common(skipped)}")
    in_source = all(marked.polygon is None for marked in found.marked)
    output.write_tables(kept, skipped, root=_common_root(found) if in_source else None)
    (output.folder / JOURNAL).unlink(missing_ok=True)
    output.finish({"cutting": asdict(cutting), "notes": split.notes, "chips": len(kept), "skipped": len(skipped)})
    return Prepared(Manifest.read(output.path, check_files=False), skipped, split.notes, resumed=False)


def _wanted_background(found: Annotated, cutting: Cutting, splitting: Splitting) -> int:
    """Return how many background chips to cut: a share of the objects, or enough for a protocol of the paper."""
    if splitting.paper is not None:
        there = sum(item.background for item in found.marked)
        return max(0, round(1.5 * (protocols.paper_background(splitting.paper) - there)))  # some scenes have no room
    return round(cutting.background * sum(item.polygon is not None and not item.exact for item in found.marked))


def _cut_all(
    found: Annotated, folder: Path, cutting: Cutting, wanted: int, progress: Progress
) -> tuple[list[dict[str, Any]], list[Skipped]]:
    """Cut scene by scene on two threads, since decoding releases the interpreter; a journal keeps finished scenes."""
    marked: dict[str, list[Marked]] = defaultdict(list)
    for item in found.marked:
        marked[item.scene].append(item)
    done = {entry["scene"]: entry for entry in _read_journal(folder / JOURNAL)}
    scenes = [name for name in found.scenes if marked[name]]
    shares = dict(zip(scenes, _shares(wanted, len(scenes)), strict=True))
    root = _common_root(found)

    def work(name: str) -> dict[str, Any]:
        return done.get(name) or _cut_scene(found.scenes[name], marked[name], shares[name], folder, root, cutting)

    rows: list[dict[str, Any]] = []
    skipped: list[Skipped] = []
    with (folder / JOURNAL).open("a") as journal, ThreadPoolExecutor(2) as pool:
        for number, entry in enumerate(pool.map(work, scenes), start=1):
            if entry["scene"] not in done:
                journal.write(json.dumps(entry) + "\n")
                journal.flush()
            rows += entry["rows"]
            skipped += [Skipped(*pair) for pair in entry["skipped"]]
            progress(number, len(scenes), "scenes")
    return rows, skipped


def _cut_scene(
    scene: Scene, marked: list[Marked], backgrounds: int, folder: Path, root: Path, cutting: Cutting
) -> dict[str, Any]:
    """Return the rows and the skipped of one scene, its chips being written."""
    rows: list[dict[str, Any]] = []
    skipped: list[tuple[str, str]] = []
    try:
        with open_scene(scene.path) as reader:
            windows = _backgrounds(scene, reader, marked, backgrounds)
            for item in [*marked, *windows]:
                try:
                    rows.append(_chip(scene, reader, item, folder, root, cutting))
                except ValueError as error:
                    skipped.append((item.id, str(error)))
    except ImageError as error:
        skipped = [(item.id, str(error)) for item in marked]
        rows = []
    return {"scene": scene.name, "rows": rows, "skipped": skipped}


def _chip(
    scene: Scene, reader: SceneReader, item: Marked, folder: Path, root: Path, cutting: Cutting
) -> dict[str, Any]:
    if item.polygon is None:
        corners = box(0, 0, reader.width, reader.height)
        pixels = reader.read((0, 0, reader.width, reader.height))
        path = scene.path.absolute().relative_to(root).as_posix()
    else:
        corners = item.polygon
        pixels = cut(reader, item.polygon, EXACT if item.exact else cutting)
        path = write_chip(pixels, folder, item.id)
    return {
        "id": item.id,
        "path": path,
        "scene": scene.name,
        "polygon": polygon_wkt(item.polygon),
        "label": item.label,
        "background": item.background,
        "scene_group": scene.group,
        "footprint": reader.footprint(corners),
        "time": scene.time,
        "sensor": scene.sensor,
        "gsd": scene.gsd or reader.gsd,
        "hash": perceptual_hash(pixels),
    }


def _backgrounds(scene: Scene, reader: SceneReader, marked: list[Marked], count: int) -> list[Marked]:
    polygons = [item.polygon for item in marked if item.polygon]
    rng = np.random.default_rng(int(hashlib.sha256(scene.name.encode()).hexdigest()[:12], 16))
    return [
        Marked(
            id=f"{scene.name}_background_{index}", scene=scene.name, polygon=box(*window), background=True, exact=True
        )
        for index, window in enumerate(background_windows(reader.width, reader.height, polygons, count, rng))
    ]


def _give_groups(rows: list[dict[str, Any]], found: Annotated, splitting: Splitting) -> None:
    """Fill in `scene_group`, and take the hashes out again."""
    hashes = np.array([row.pop("hash") for row in rows], dtype=np.uint64)
    known = [row["scene_group"] or row["scene"] for row in rows]
    if splitting.groups == "auto" and any(scene.group is None for scene in found.scenes.values()):
        known = find_groups(hashes, known)
    for row, group in zip(rows, known, strict=True):
        row["scene_group"] = group


def _shares(total: int, parts: int) -> list[int]:
    """Divide a number into whole shares that differ by one at most."""
    return [total * (part + 1) // parts - total * part // parts for part in range(parts)]


def _fingerprint(found: Annotated, cutting: Cutting, splitting: Splitting, given: dict[str, str] | None) -> str:
    """Return a digest of the data (names, sizes and times of the files, what is marked) and the options."""

    def state(path: Path) -> tuple[int, int] | None:
        try:
            status = path.stat()
        except OSError:
            return None
        return status.st_size, status.st_mtime_ns

    content = [
        version("lookdown"),
        [(str(scene), state(scene.path)) for scene in found.scenes.values()],
        [str(item) for item in found.marked],
        asdict(cutting),
        {name: str(value) for name, value in asdict(splitting).items() if name != "roles"},
        given,
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _common_root(found: Annotated) -> Path:
    """Return the folder that all scenes lie below."""
    parents = [scene.path.absolute().parent for scene in found.scenes.values()]
    root = parents[0]
    for parent in parents[1:]:
        while not parent.is_relative_to(root):
            root = root.parent
    return root


def _read_journal(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the scenes that were finished; the last line may have been cut off in the middle."""
    if not file.is_file():
        return
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            return


def _read_skipped(folder: Path) -> list[Skipped]:
    with (folder / "skipped.csv").open(newline="", encoding="utf-8", errors="surrogateescape") as lines:
        return [Skipped(row["item"], row["reason"]) for row in csv.DictReader(lines)]


def _common(skipped: list[Skipped]) -> str:
    return "; ".join(f"{count} x {reason}" for reason, count in Counter(s.reason for s in skipped).most_common(3))
