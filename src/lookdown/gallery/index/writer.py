"""Chips into the table: read ahead, embedded in batches, and each batch written while the next is embedded."""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.atomic import explained, write_file
from lookdown.chips.pixels import Chip, fit_bands, letterbox
from lookdown.chips.reader import Group, ahead, read_squares
from lookdown.errors import ImageError, InputError
from lookdown.gallery.index.registry import ChipRegistry, Selection, as_text, select_new
from lookdown.gallery.index.sources import ChipGroup, Row
from lookdown.gallery.index.thumbnails import thumbnail
from lookdown.gallery.store.table import ChipTable
from lookdown.gallery.store.timestamps import parse_time
from lookdown.progress import Progress

if TYPE_CHECKING:
    from lookdown.networks.network_folder import AnyEmbedder

__all__ = [
    "AddReport",
    "ChipBatch",
    "EmbeddedBatch",
    "add_chips",
    "add_vectors",
    "embedded_batches",
    "note_skipped",
    "read_chips",
]

_BATCH_CHIPS = 512  # written in one step: a killed process loses at most these, a few seconds of work
_FIRST_BATCH_CHIPS = 64  # doubled from batch to batch, so that the network soon has work
_TIDY_STEPS = 128  # steps between two merges of small files
_STEP_VECTORS = 65_536  # vectors that are added in one step
_TYPES: dict[str, Any] = {
    **dict.fromkeys(("id", "source", "scene", "scene_group", "polygon", "footprint", "time", "sensor", "label"), str),
    "gsd": int | float | np.number,
    "background": bool | np.bool_,
    "thumbnail": bytes,
}


@dataclass(slots=True)
class AddReport:
    """What `add` did."""

    added: int = 0
    present: int = 0  # chips that were in the gallery already
    skipped: dict[str, str] = field(default_factory=dict)  # the reason for each file that could not be used


@dataclass(frozen=True, slots=True)
class ChipBatch:
    """Chips that are ready for the network, and what happened to the others since the last batch."""

    rows: list[Row]
    squares: NDArray[np.uint8]  # (n, bands, size, size), which the next batch but one overwrites
    unreadable: list[Row]
    others: Selection  # counts of chips that are not in the batch
    total: int  # chips listed so far


@dataclass(frozen=True, slots=True)
class EmbeddedBatch:
    """Chips with their embeddings, and what happened to the others since the last batch."""

    rows: list[Row]
    embeddings: NDArray[np.float32]
    unreadable: list[Row]
    skipped: dict[str, str]  # the reason for each file that could not be used
    present: int
    done: int  # chips of this batch, added or not
    total: int  # chips listed so far


def add_chips(records: ChipTable, embedder: AnyEmbedder, groups: Iterable[ChipGroup], progress: Progress) -> AddReport:
    """Embed and add the chips that are not in the table; what was added stays, whatever happens to the rest.

    The network runs in this thread. Other threads read the next batch, and write the previous one.
    """
    registry = ChipRegistry(records)
    report = AddReport()
    done = 0
    with closing(_written(records, registry, embedded_batches(groups, embedder, registry))) as batches:
        for batch in batches:
            report.added += len(batch.rows)
            report.present += batch.present
            report.skipped |= batch.skipped
            done += batch.done
            progress(done, batch.total, "chips")
    if registry.moved:
        records.move(registry.moved)
    if report.added:
        records.tidy()
    return report


def embedded_batches(
    groups: Iterable[ChipGroup], embedder: AnyEmbedder, registry: ChipRegistry | None = None
) -> Generator[EmbeddedBatch]:
    """Yield the chips that are not in the registry, or all without one, with their embeddings and thumbnails."""
    settings = embedder.settings
    with closing(ahead(read_chips(groups, registry, bands=settings.bands, size=settings.size))) as batches:
        for batch in batches:
            rows, skipped = batch.rows, dict(batch.others.skipped)
            embeddings = np.empty((0, settings.dimension), np.float32)
            if rows:
                rows, embeddings = _without_zeros(rows, embedder.embed(batch.squares), skipped)
            done = len(batch.rows) + batch.others.present + batch.others.failed
            yield EmbeddedBatch(rows, embeddings, batch.unreadable, skipped, batch.others.present, done, batch.total)


def read_chips(
    groups: Iterable[ChipGroup], registry: ChipRegistry | None, *, bands: int, size: int
) -> Generator[ChipBatch]:
    """Yield the chips that are not in the registry, or all without one, letterboxed and with their thumbnails."""
    others, total = Selection(), 0

    def selected() -> Iterator[Group[Row]]:
        nonlocal total
        for group in groups:
            total += len(group.rows)
            selection = select_new(group, registry)
            others.count(selection)
            yield Group(selection.positions, partial(squares_of, group), lazily=group.of_one_scene)

    def squares_of(group: ChipGroup, positions: Sequence[int]) -> Iterator[tuple[Row, Chip | ImageError]]:
        for row, square in _squares(group, positions, bands, size):
            if isinstance(square, ImageError) and registry is not None:
                registry.forget(row)
            yield row, square

    batches = read_squares(selected(), bands=bands, size=size, batch_size=_BATCH_CHIPS, first_batch=_FIRST_BATCH_CHIPS)
    for batch in batches:
        others.failed += len(batch.failed)
        others.skipped |= {row["source"]: str(error) for row, error in batch.failed}
        yield ChipBatch(batch.items, batch.images, [row for row, _ in batch.failed], others, total)
        others = Selection()


def add_vectors(records: ChipTable, rows: Sequence[Row], embeddings: ArrayLike, dimension: int) -> AddReport:
    """Add chips that come with their vectors and are not in the table."""
    vectors = np.asarray(embeddings, np.float32)
    if vectors.shape != (len(rows), dimension):
        raise InputError(f"embeddings must be ({len(rows)}, {dimension}), one row for each chip; got {vectors.shape}")
    if not (np.isfinite(vectors).all() and (np.linalg.norm(vectors, axis=1) > 0).all()):
        raise InputError("embeddings must be finite and not zero")
    registry = ChipRegistry(records)
    complete = [_completed(row, number) for number, row in enumerate(rows)]
    new = [number for number, row in enumerate(complete) if registry.add_id(row)]
    for begin in range(0, len(new), _STEP_VECTORS):
        step = new[begin : begin + _STEP_VECTORS]
        records.append([complete[number] for number in step], vectors[step], first_key=registry.next_key)
        registry.next_key += len(step)
    if new:
        records.tidy()
    return AddReport(added=len(new), present=len(rows) - len(new))


def note_skipped(file: Path, skipped: dict[str, str], records: ChipTable) -> None:
    """Update `skipped.csv`: the files that could not be used, now or earlier, and are not in the table by now."""
    before = _read_skipped(file)
    listed = before | skipped
    if listed:
        sources = set(records.snapshot().texts("source"))
        listed = {item: reason for item, reason in listed.items() if item not in sources}
    if listed != before:
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(("item", "reason"))
        writer.writerows(listed.items())
        with explained(file):
            write_file(file, text.getvalue())


def _read_skipped(file: Path) -> dict[str, str]:
    if not file.is_file():
        return {}
    with file.open(newline="", encoding="utf-8-sig", errors="replace") as lines:  # a spreadsheet may have saved it
        return {row["item"]: row.get("reason") or "" for row in csv.DictReader(lines) if row.get("item")}


def _squares(
    group: ChipGroup, positions: Sequence[int], bands: int, size: int
) -> Iterator[tuple[Row, Chip | ImageError]]:
    """Yield rows with their thumbnails, and the letterboxed chips or the reasons why there are none."""
    for position, pixels in group.pixels(positions, size):
        row = group.rows[position]
        if isinstance(pixels, ImageError):
            yield row, pixels
            continue
        try:
            square = letterbox(fit_bands(pixels, bands, row["id"]), size)
        except ImageError as error:
            yield row, error
            continue
        yield row if "thumbnail" in row else row | {"thumbnail": thumbnail(pixels)}, square


def _written(records: ChipTable, registry: ChipRegistry, batches: Generator[EmbeddedBatch]) -> Generator[EmbeddedBatch]:
    """Yield batches once they are in the table; each is written in a thread while the next is in the network.

    A batch is written only after the one before, so the table never has a gap.
    """

    def write(batch: EmbeddedBatch, number: int) -> EmbeddedBatch:
        if batch.rows:
            records.append(batch.rows, batch.embeddings, first_key=registry.next_key)
            registry.next_key += len(batch.rows)
        if number % _TIDY_STEPS == 0:
            records.tidy()
        return batch

    with closing(batches), ThreadPoolExecutor(max_workers=1) as thread:
        last: Future[EmbeddedBatch] | None = None
        for number, batch in enumerate(batches, start=1):
            if last is not None:
                yield last.result()
            last = thread.submit(write, batch, number)
        if last is not None:
            yield last.result()


def _without_zeros(
    rows: list[Row], embeddings: NDArray[np.float32], skipped: dict[str, str]
) -> tuple[list[Row], NDArray[np.float32]]:
    """Leave out chips whose embedding is zero: no metric can put those on the unit sphere."""
    usable = np.linalg.norm(embeddings, axis=1) > 0
    for row in np.flatnonzero(~usable):
        skipped[rows[row]["source"]] = "its embedding is zero; the network sees nothing in it"
    return [row for row, good in zip(rows, usable, strict=True) if good], embeddings[usable]


def _completed(row: Row, number: int) -> Row:
    """Return the row of a chip that comes with its vector, with defaults for what it lacks."""
    if not (isinstance(row.get("id"), str) and row["id"]):
        raise InputError(f"row {number} has no id; give each chip an id of its own")
    for name, kind in _TYPES.items():
        if row.get(name) is not None and not isinstance(row[name], kind):
            raise InputError(f"row {number} ({row['id']}): {name} is {row[name]!r}; it must be of type {kind}")
        if isinstance(row.get(name), str) and as_text(row[name]) != row[name]:
            raise InputError(f"row {number} ({as_text(row['id'])}): {name} is no Unicode text")
    if row.get("time") is not None and np.isnat(parse_time(row["time"])):
        raise InputError(f"row {number} ({row['id']}): time {row['time']!r} is not ISO 8601")
    scene = row.get("scene") or row["id"]
    defaults = {"source": "", "scene": scene, "scene_group": scene, "background": False, "thumbnail": b""}
    return defaults | {name: value for name, value in row.items() if value is not None}
