"""Chips into the table: read ahead in a thread, embedded in batches, each batch added in one step."""

from __future__ import annotations

import csv
import filecmp
import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.chips.reading import Chip, letterbox
from lookdown.errors import ImageError, InputError
from lookdown.gallery.examples import fitting
from lookdown.gallery.instants import parse_time
from lookdown.gallery.intake import Part, Row
from lookdown.gallery.records import Records
from lookdown.gallery.thumbnails import thumbnail
from lookdown.gallery.whole_file import write_whole

if TYPE_CHECKING:
    from lookdown.networks import Embedder

__all__ = ["Added", "Known", "Progress", "add_chips", "add_vectors", "note_skipped"]

Progress = Callable[[int, int], None]  # chips done, chips known so far
T = TypeVar("T")

_STEP = 512  # chips in one step: what a kill costs at most, a few seconds of work
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


class Known:
    """The chips that a gallery has, so that none is added twice."""

    def __init__(self, records: Records) -> None:
        snapshot = records.snapshot()
        sources = snapshot.texts("source")
        self._sources = dict(zip(snapshot.ids.to_pylist(), sources, strict=True))
        self._places = set(zip(sources, snapshot.texts("polygon"), strict=True))
        self.moved: dict[str, str] = {}  # where chips that are there are now, by their ids
        # Versions only rise, whatever is removed: a number that was given once never comes back.
        self.next_key = max(int(snapshot.keys.max(initial=-1)) + 1, snapshot.version << 32)

    def is_new_id(self, row: Row) -> bool:
        """Take a chip in that is known by its id alone, if it is not there."""
        return self._sources.setdefault(row["id"], row) is row

    def is_new(self, row: Row, *, named_by_path: bool) -> bool:
        """Take a chip in, if it is not there, by this name or another.

        Two files in different folders may go by the same name. The second gets a name of its own, unless the first is
        gone: then the archive was moved, and it is the same chip. A copy of a chip of a manifest is the same chip too.
        """
        place = row["source"], row["polygon"]
        if place in self._places:
            return False
        there = self._sources.get(row["id"])
        if there is not None:
            if not Path(there).exists():
                self.moved[row["id"]] = row["source"]
                return False
            if not named_by_path and _is_copy(there, row["source"]):
                return False
            row["id"] += "#" + hashlib.sha256(row["source"].encode()).hexdigest()[:8]
            if row["id"] in self._sources:
                return False
        self._sources[row["id"]] = row["source"]
        self._places.add(place)
        return True

    def forget(self, row: Row) -> None:
        """Take a chip out again that could not be read."""
        del self._sources[row["id"]]
        self._places.discard((row["source"], row["polygon"]))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Chips that are ready for the network."""

    rows: list[Row]
    squares: NDArray[np.uint8]  # (n, bands, size, size)
    present: int
    failed: int  # chips
    skipped: dict[str, str]  # files, of which one may have many chips
    known: int  # chips that have been met so far


def add_chips(records: Records, embedder: Embedder, parts: Iterable[Part], progress: Progress) -> Added:
    """Embed and add the chips that are not there yet; what was added stays, whatever happens to the rest."""
    known = Known(records)
    result = Added()
    done = 0
    for step, batch in enumerate(_ahead(_batches(parts, known, embedder)), start=1):
        result.present += batch.present
        result.skipped |= batch.skipped
        if batch.rows:
            embeddings = embedder.embed(batch.squares)
            rows, embeddings = _with_direction(batch.rows, embeddings, result.skipped)
            records.append(rows, embeddings, first_key=known.next_key)
            known.next_key += len(rows)
            result.added += len(rows)
        if step % _TIDY == 0:
            records.tidy()
        done += len(batch.rows) + batch.present + batch.failed
        progress(done, batch.known)
    if known.moved:
        records.move(known.moved)
    if result.added:
        records.tidy()
    return result


def add_vectors(records: Records, rows: Sequence[Row], embeddings: ArrayLike, dimension: int) -> Added:
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


def note_skipped(file: Path, skipped: dict[str, str], records: Records) -> None:
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


def _batches(parts: Iterable[Part], known: Known, embedder: Embedder) -> Iterator[_Batch]:
    """Yield chips that are not there yet, letterboxed, `_STEP` at a time, with their thumbnails."""
    size, bands = embedder.settings.size, embedder.settings.bands
    rows: list[Row] = []
    squares: list[Chip] = []
    skipped: dict[str, str] = {}
    present = failed = met = 0

    def ready() -> _Batch:
        pixels = np.stack(squares).transpose(0, 3, 1, 2) if squares else np.empty((0, bands, size, size), np.uint8)
        return _Batch(rows, np.ascontiguousarray(pixels), present, failed, skipped, met)

    for part in parts:
        met += len(part.rows)
        skipped |= {_shown(item): _shown(reason) for item, reason in part.skipped.items()}
        wanted = []
        for place, row in enumerate(part.rows):
            if not _is_text(row):
                skipped[_shown(row["source"])] = "its file name is not UTF-8; rename the file"
                failed += 1
            elif known.is_new(row, named_by_path=part.named_by_path):
                wanted.append(place)
            else:
                present += 1
        for place, pixels in part.pixels(wanted):
            row = part.rows[place]
            try:
                if isinstance(pixels, ImageError):
                    raise pixels
                square = letterbox(fitting(pixels, bands, row["id"]), size)
            except ImageError as error:
                skipped[row["source"]] = str(error)
                failed += 1
                known.forget(row)
                continue
            squares.append(square)
            rows.append(row | {"thumbnail": thumbnail(pixels)})
            if len(rows) == _STEP:
                yield ready()
                rows, squares, skipped, present, failed = [], [], {}, 0, 0
    yield ready()


def _with_direction(
    rows: list[Row], embeddings: NDArray[np.float32], skipped: dict[str, str]
) -> tuple[list[Row], NDArray[np.float32]]:
    """Leave out chips whose embedding is zero: no metric can put those on the unit sphere."""
    usable = np.linalg.norm(embeddings, axis=1) > 0
    for row in np.flatnonzero(~usable):
        skipped[rows[row]["source"]] = "its embedding is zero; the network sees nothing in it"
    return [row for row, good in zip(rows, usable, strict=True) if good], embeddings[usable]


def _ahead(batches: Iterator[T]) -> Iterator[T]:
    """Yield the same, each made in a thread while the one before is worked on."""
    end = object()
    with ThreadPoolExecutor(max_workers=1) as thread:

        def ask() -> Future[T | object]:
            return thread.submit(next, batches, end)

        coming = ask()
        while (batch := coming.result()) is not end:
            coming = ask()
            yield batch  # type: ignore[misc]


def _is_copy(file: str, other: str) -> bool:
    try:
        return filecmp.cmp(file, other, shallow=False)
    except OSError:
        return False  # reading it says what is wrong with it


def _is_text(row: Row) -> bool:
    return all(_shown(name) == name for name in (row["id"], row["source"]))


def _shown(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def _filled(row: Row, place: int) -> Row:
    """Fill in what a chip that comes with its vector may leave out."""
    if not (isinstance(row.get("id"), str) and row["id"]):
        raise InputError(f"row {place} has no id; give each chip a name of its own")
    for name, kind in _KINDS.items():
        if row.get(name) is not None and not isinstance(row[name], kind):
            raise InputError(f"row {place} ({row['id']}): {name} is {row[name]!r}; it must be of type {kind}")
        if isinstance(row.get(name), str) and _shown(row[name]) != row[name]:
            raise InputError(f"row {place} ({_shown(row['id'])}): {name} is no Unicode text")
    if row.get("time") is not None and np.isnat(parse_time(row["time"])):
        raise InputError(f"row {place} ({row['id']}): time {row['time']!r} is not ISO 8601")
    scene = row.get("scene") or row["id"]
    filled = {"source": "", "scene": scene, "scene_group": scene, "background": False, "thumbnail": b""}
    return filled | {name: value for name, value in row.items() if value is not None}
