"""Chips into the table: read ahead, embedded in batches, each batch added in one step while the next is embedded."""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import InputError
from lookdown.gallery.index.intake import Part, Row
from lookdown.gallery.index.known import Known
from lookdown.gallery.index.read_ahead import Batch, ahead, batches, shown
from lookdown.gallery.store.table import ChipTable
from lookdown.gallery.store.timestamps import parse_time
from lookdown.gallery.whole_file import write_whole
from lookdown.progress import Progress

if TYPE_CHECKING:
    from lookdown.networks.exports import AnyEmbedder

__all__ = ["Added", "Step", "add_chips", "add_vectors", "embedded", "note_skipped"]


_TIDY = 128  # steps between two merges of small files
_TOGETHER = 65_536  # vectors added in one step
_KINDS: dict[str, Any] = {
    **dict.fromkeys(("id", "source", "scene", "scene_group", "polygon", "footprint", "time", "sensor", "label"), str),
    "gsd": int | float | np.number,
    "background": bool | np.bool_,
    "thumbnail": bytes,
}


@dataclass(slots=True)
class Added:
    """What came of adding."""

    added: int = 0
    present: int = 0  # were there already
    skipped: dict[str, str] = field(default_factory=dict)  # files that could not be used, with the reason


@dataclass(frozen=True, slots=True)
class Step:
    """A batch that went through the network."""

    rows: list[Row]
    embeddings: NDArray[np.float32]
    skipped: dict[str, str]
    present: int
    chips: int  # all that were met, added or not
    known: int  # so far


def add_chips(records: ChipTable, embedder: AnyEmbedder, parts: Iterable[Part], progress: Progress) -> Added:
    """Embed and add the chips that are not there yet; what was added stays, whatever happens to the rest.

    The network runs here. Meanwhile other threads read the next batch, and write the one before.
    """
    known = Known(records)
    result = Added()
    done = 0
    read = batches(parts, known, size=embedder.settings.size, bands=embedder.settings.bands)
    with closing(_written(records, known, embedded(ahead(read), embedder))) as steps:
        for step in steps:
            result.added += len(step.rows)
            result.present += step.present
            result.skipped |= step.skipped
            done += step.chips
            progress(done, step.known, "chips")
    if known.moved:
        records.move(known.moved)
    if result.added:
        records.tidy()
    return result


def embedded(read: Generator[Batch], embedder: AnyEmbedder) -> Generator[Step]:
    """Yield batches with their embeddings."""
    with closing(read):
        for batch in read:
            skipped = dict(batch.skipped)
            rows, embeddings = batch.rows, np.empty((0, embedder.settings.dimension), np.float32)
            if rows:
                rows, embeddings = _with_direction(rows, embedder.embed(batch.squares), skipped)
            chips = len(batch.rows) + batch.present + batch.failed
            yield Step(rows, embeddings, skipped, batch.present, chips, batch.known)


def add_vectors(records: ChipTable, rows: Sequence[Row], embeddings: ArrayLike, dimension: int) -> Added:
    """Add chips that come with their vectors and are not there yet."""
    vectors = np.asarray(embeddings, np.float32)
    if vectors.shape != (len(rows), dimension):
        raise InputError(f"embeddings must be ({len(rows)}, {dimension}), a row a chip; got {vectors.shape}")
    if not (np.isfinite(vectors).all() and (np.linalg.norm(vectors, axis=1) > 0).all()):
        raise InputError("embeddings must be finite and not zero")
    known = Known(records)
    whole = [_filled(row, place) for place, row in enumerate(rows)]
    new = [place for place, row in enumerate(whole) if known.is_new_id(row)]
    for begin in range(0, len(new), _TOGETHER):
        some = new[begin : begin + _TOGETHER]
        records.append([whole[place] for place in some], vectors[some], first_key=known.next_key)
        known.next_key += len(some)
    if new:
        records.tidy()
    return Added(added=len(new), present=len(rows) - len(new))


def note_skipped(file: Path, skipped: dict[str, str], records: ChipTable) -> None:
    """Keep `skipped.csv`: what could not be used, now or before, unless it could in the end."""
    before = _read_skipped(file)
    listed = before | skipped
    if listed:
        there = set(records.snapshot().texts("source"))
        listed = {item: reason for item, reason in listed.items() if item not in there}
    if listed != before:
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(("item", "reason"))
        writer.writerows(listed.items())
        write_whole(file, text.getvalue())


def _read_skipped(file: Path) -> dict[str, str]:
    if not file.is_file():
        return {}
    with file.open(newline="", encoding="utf-8-sig", errors="replace") as lines:  # a spreadsheet may have saved it
        return {row["item"]: row.get("reason") or "" for row in csv.DictReader(lines) if row.get("item")}


def _written(records: ChipTable, known: Known, made: Generator[Step]) -> Generator[Step]:
    """Yield steps once they are in the table; each is written in a thread while the next is in the network.

    Before one is written, the one before is known to be there: a table never has a gap.
    """

    def write(step: Step, number: int) -> Step:
        if step.rows:
            records.append(step.rows, step.embeddings, first_key=known.next_key)
            known.next_key += len(step.rows)
        if number % _TIDY == 0:
            records.tidy()
        return step

    with closing(made), ThreadPoolExecutor(max_workers=1) as thread:
        last: Future[Step] | None = None
        for number, step in enumerate(made, start=1):
            if last is not None:
                yield last.result()
            last = thread.submit(write, step, number)
        if last is not None:
            yield last.result()


def _with_direction(
    rows: list[Row], embeddings: NDArray[np.float32], skipped: dict[str, str]
) -> tuple[list[Row], NDArray[np.float32]]:
    """Leave out chips whose embedding is zero: no metric can put those on the unit sphere."""
    usable = np.linalg.norm(embeddings, axis=1) > 0
    for row in np.flatnonzero(~usable):
        skipped[rows[row]["source"]] = "its embedding is zero; the network sees nothing in it"
    return [row for row, good in zip(rows, usable, strict=True) if good], embeddings[usable]


def _filled(row: Row, place: int) -> Row:
    """Fill in what a chip that comes with its vector may leave out."""
    if not (isinstance(row.get("id"), str) and row["id"]):
        raise InputError(f"row {place} has no id; give each chip a name of its own")
    for name, kind in _KINDS.items():
        if row.get(name) is not None and not isinstance(row[name], kind):
            raise InputError(f"row {place} ({row['id']}): {name} is {row[name]!r}; it must be of type {kind}")
        if isinstance(row.get(name), str) and shown(row[name]) != row[name]:
            raise InputError(f"row {place} ({shown(row['id'])}): {name} is no Unicode text")
    if row.get("time") is not None and np.isnat(parse_time(row["time"])):
        raise InputError(f"row {place} ({row['id']}): time {row['time']!r} is not ISO 8601")
    scene = row.get("scene") or row["id"]
    filled = {"source": "", "scene": scene, "scene_group": scene, "background": False, "thumbnail": b""}
    return filled | {name: value for name, value in row.items() if value is not None}
