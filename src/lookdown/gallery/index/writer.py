"""Chips into the table: new ones are selected, read ahead, embedded, and written while the next are embedded."""

from __future__ import annotations

import csv
import filecmp
import hashlib
import io
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lookdown.atomic import explained, write_file
from lookdown.chips.pixels import Chip, fit_bands, letterbox
from lookdown.chips.reader import Group, ahead, read_squares
from lookdown.errors import ImageError
from lookdown.gallery.index.sources import ChipGroup, Row
from lookdown.gallery.index.thumbnails import thumbnail
from lookdown.gallery.store.snapshot import Embeddings
from lookdown.gallery.store.table import ChipTable
from lookdown.progress import Progress

if TYPE_CHECKING:
    from lookdown.networks.network_folder import AnyEmbedder

__all__ = [
    "AddReport", "ChipBatch", "ChipRegistry", "Selection", "add_chips", "as_text", "embedded_batches", "note_skipped",
    "read_chips", "select_new",
]  # fmt: skip

_BATCH_CHIPS = 512  # written in one step: a killed process loses at most these, a few seconds of work
_FIRST_BATCH_CHIPS = 64  # doubled from batch to batch, so that the network soon has work
_TIDY_STEPS = 128  # steps between two merges of small files


@dataclass(slots=True)
class AddReport:
    """What `add` did."""

    added: int = 0
    present: int = 0  # chips that were in the gallery already
    skipped: dict[str, str] = field(default_factory=dict)  # the reason for each file that could not be used


class ChipRegistry:
    """The ids and files that are already in the gallery."""

    def __init__(self, records: ChipTable) -> None:
        snapshot = records.snapshot()
        sources = snapshot.texts("source")
        self._sources = dict(zip(snapshot.ids.to_pylist(), sources, strict=True))
        self._windows = set(zip(sources, snapshot.texts("polygon"), strict=True))
        self.moved: dict[str, str] = {}  # the new file of each chip whose file was moved, by its id
        # Versions only rise, whatever is removed, so no key is ever used twice.
        self.next_key = max(int(snapshot.keys.max(initial=-1)) + 1, snapshot.version << 32)

    def add_id(self, row: Row) -> bool:
        """Register a chip by its id alone; return whether it is new."""
        return self._sources.setdefault(row["id"], row) is row

    def add(self, row: Row, *, named_by_path: bool) -> bool:
        """Register a chip; return whether it is new, under this id or another.

        Two files in different folders may have the same name. The second then gets an id of its own, unless the first
        is gone: then the archive was moved, and it is the same chip. A copy of a manifest's chip is also the same chip.
        """
        window = row["source"], row["polygon"]
        if window in self._windows:
            return False
        source = self._sources.get(row["id"])
        if source is not None:
            if not Path(source).exists():
                self.moved[row["id"]] = row["source"]
                return False
            if not named_by_path and _is_copy(source, row["source"]):
                return False
            row["id"] += "#" + hashlib.sha256(row["source"].encode()).hexdigest()[:8]
            if row["id"] in self._sources:
                return False
        self._sources[row["id"]] = row["source"]
        self._windows.add(window)
        return True

    def forget(self, row: Row) -> None:
        """Remove a chip that could not be read."""
        del self._sources[row["id"]]
        self._windows.discard((row["source"], row["polygon"]))


@dataclass(slots=True)
class Selection:
    """The chips of a group that are to be added, and what became of the others."""

    positions: list[int] = field(default_factory=list)
    present: int = 0  # chips that are in the gallery already
    failed: int = 0  # chips that cannot be added
    skipped: dict[str, str] = field(default_factory=dict)  # the reason for each file that cannot be used

    def count(self, other: Selection) -> None:
        """Add the counts of another selection, apart from its positions."""
        self.present += other.present
        self.failed += other.failed
        self.skipped |= other.skipped


@dataclass(frozen=True, slots=True)
class ChipBatch:
    """Chips that are ready for the network, and what happened to the others since the last batch."""

    rows: list[Row]
    squares: NDArray[np.uint8]  # (n, bands, size, size), which the next batch but one overwrites
    unreadable: list[Row]
    skipped: dict[str, str]  # the reason for each file that could not be used
    present: int  # chips that are in the gallery already
    done: int  # chips of this batch, added or not
    total: int  # chips listed so far


def add_chips(records: ChipTable, embedder: AnyEmbedder, groups: Iterable[ChipGroup], progress: Progress) -> AddReport:
    """Embed and add the chips that are not in the table; what was added stays, whatever happens to the rest.

    The network runs in this thread. Other threads read the next batch, and write the previous one.
    """
    registry, report, done = ChipRegistry(records), AddReport(), 0
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
) -> Generator[tuple[ChipBatch, Embeddings]]:
    """Yield the chips that are not in the registry, or all without one, with their embeddings.

    Chips whose embedding is zero are left out: no metric can put those on the unit sphere.
    """
    settings = embedder.settings
    with closing(ahead(read_chips(groups, registry, bands=settings.bands, size=settings.size))) as batches:
        for batch in batches:
            embeddings = np.empty((0, settings.dimension), np.float32)
            if batch.rows:
                embeddings = embedder.embed(batch.squares)
            usable = np.linalg.norm(embeddings, axis=1) > 0
            for row in compress(batch.rows, ~usable):
                batch.skipped[row["source"]] = "its embedding is zero; the network sees nothing in it"
            yield replace(batch, rows=[*compress(batch.rows, usable)]), embeddings[usable]


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
            read = partial(_squares, group, registry=registry, bands=bands, size=size)
            yield Group(selection.positions, read, lazily=group.of_one_scene)

    batches = read_squares(selected(), bands=bands, size=size, batch_size=_BATCH_CHIPS, first_batch=_FIRST_BATCH_CHIPS)
    for batch in batches:
        others.skipped |= {row["source"]: str(error) for row, error in batch.failed}
        yield ChipBatch(
            rows=batch.items,
            squares=batch.images,
            unreadable=[row for row, _ in batch.failed],
            skipped=others.skipped,
            present=others.present,
            done=len(batch.items) + others.present + others.failed + len(batch.failed),
            total=total,
        )
        others = Selection()


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
    group: ChipGroup, positions: Sequence[int], *, registry: ChipRegistry | None, bands: int, size: int
) -> Iterator[tuple[Row, Chip | ImageError]]:
    """Yield rows with their thumbnails, and the letterboxed chips or the reasons why there are none."""
    for position, pixels in group.pixels(positions, size):
        row, square = group.rows[position], pixels
        if not isinstance(pixels, ImageError):
            try:
                square = letterbox(fit_bands(pixels, bands, row["id"]), size)
            except ImageError as error:
                square = error
            else:
                row = row if "thumbnail" in row else row | {"thumbnail": thumbnail(pixels)}
        if registry is not None and isinstance(square, ImageError):
            registry.forget(row)
        yield row, square


def _written(
    records: ChipTable, registry: ChipRegistry, batches: Generator[tuple[ChipBatch, Embeddings]]
) -> Generator[ChipBatch]:
    """Yield batches once they are in the table; each is written in a thread while the next is in the network.

    A batch is written only after the one before, so the table never has a gap.
    """

    def write(batch: ChipBatch, embeddings: Embeddings, number: int) -> ChipBatch:
        if batch.rows:
            records.append(batch.rows, embeddings, first_key=registry.next_key)
            registry.next_key += len(batch.rows)
        if number % _TIDY_STEPS == 0:
            records.tidy()
        return batch

    with closing(batches), ThreadPoolExecutor(max_workers=1) as thread:
        last: Future[ChipBatch] | None = None
        for number, (batch, embeddings) in enumerate(batches, start=1):
            if last is not None:
                yield last.result()
            last = thread.submit(write, batch, embeddings, number)
        if last is not None:
            yield last.result()


def select_new(group: ChipGroup, registry: ChipRegistry | None) -> Selection:
    """Register the chips of a group, and select those that are new; without a registry, all are."""
    selection = Selection(skipped={as_text(item): as_text(reason) for item, reason in group.skipped.items()})
    for position, row in enumerate(group.rows):
        if any(as_text(name) != name for name in (row["id"], row["source"])):
            selection.skipped[as_text(row["source"])] = "its file name is not UTF-8; rename the file"
            selection.failed += 1
        elif registry is None or registry.add(row, named_by_path=group.named_by_path):
            selection.positions.append(position)
        else:
            selection.present += 1
    return selection


def as_text(name: str) -> str:
    """Return a name as valid Unicode, whatever bytes it came from."""
    return name.encode("utf-8", "backslashreplace").decode()


def _is_copy(file: str, other: str) -> bool:
    try:
        return filecmp.cmp(file, other, shallow=False)
    except OSError:
        return False  # reading the file reports what is wrong
