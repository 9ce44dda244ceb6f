"""Chips on their way to the network: read by several threads, in order, and a batch before they are needed."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import cycle
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lookdown.chips.reading import Chip, letterbox
from lookdown.errors import ImageError
from lookdown.gallery.index.intake import Part, Row
from lookdown.gallery.index.known import AllNew, Known
from lookdown.gallery.index.thumbnails import thumbnail
from lookdown.gallery.search.examples import fitting

__all__ = ["Batch", "Sifted", "ahead", "batches", "shown", "sift"]

T = TypeVar("T")

_STEP = 512  # chips in one step: what a kill costs at most, a few seconds of work
_FIRST = 64  # chips in the first step, doubled from step to step: the network soon has work
_IN_TURN = 2  # arrays of squares: one is filled while one is in the network; fresh memory costs more than to fill it
_READERS = min(4, os.cpu_count() or 1)  # decoders and resizing run beside each other; more would only wait for Python
_AT_ONCE = 16  # images that one of them reads in a row


@dataclass(frozen=True, slots=True)
class Batch:
    """Chips that are ready for the network."""

    rows: list[Row]
    squares: NDArray[np.uint8]  # (n, bands, size, size), which the next batch but one overwrites
    present: int
    failed: int  # chips
    skipped: dict[str, str]  # files, of which one may have many chips
    known: int  # chips that have been met so far


@dataclass(slots=True)
class Sifted:
    """Which chips of a part are wanted, and what is to be said of the others."""

    wanted: list[int] = field(default_factory=list)
    present: int = 0
    failed: int = 0
    skipped: dict[str, str] = field(default_factory=dict)


def sift(part: Part, known: Known | AllNew) -> Sifted:
    """Find the chips of a part that are not there yet."""
    found = Sifted(skipped={shown(item): shown(reason) for item, reason in part.skipped.items()})
    for place, row in enumerate(part.rows):
        if not _is_text(row):
            found.skipped[shown(row["source"])] = "its file name is not UTF-8; rename the file"
            found.failed += 1
        elif known.is_new(row, named_by_path=part.named_by_path):
            found.wanted.append(place)
        else:
            found.present += 1
    return found


def batches(parts: Iterable[Part], known: Known | AllNew, *, size: int, bands: int) -> Generator[Batch]:
    """Yield chips that are not there yet, letterboxed, up to `_STEP` at a time, with their thumbnails."""
    rows: list[Row] = []
    arrays = cycle([np.empty((_STEP, bands, size, size), np.uint8) for _ in range(_IN_TURN)])
    squares = next(arrays)
    full = min(_FIRST, _STEP)
    skipped: dict[str, str] = {}
    present = failed = met = 0

    def ready() -> Batch:
        return Batch(rows, squares[: len(rows)], present, failed, skipped, met)

    with ThreadPoolExecutor(_READERS) as readers:
        for part in parts:
            met += len(part.rows)
            found = sift(part, known)
            skipped |= found.skipped
            present += found.present
            failed += found.failed
            for row, square in _read(readers, part, found.wanted, size, bands):
                if isinstance(square, ImageError):
                    skipped[row["source"]] = str(square)
                    failed += 1
                    known.forget(row)
                    continue
                squares[len(rows)] = square.transpose(2, 0, 1)
                rows.append(row)
                if len(rows) == full:
                    yield ready()
                    rows, squares, skipped, present, failed = [], next(arrays), {}, 0, 0
                    full = min(2 * full, _STEP)
    yield ready()


def ahead(made: Generator[T]) -> Generator[T]:
    """Yield the same, each made in a thread while the one before is worked on."""
    end = object()
    with closing(made), ThreadPoolExecutor(max_workers=1) as thread:

        def ask() -> Future[T | object]:
            return thread.submit(next, made, end)

        coming = ask()
        while (item := coming.result()) is not end:
            coming = ask()
            yield item  # type: ignore[misc]


def shown(name: str) -> str:
    """Return a name as text, whatever bytes it is made of."""
    return name.encode("utf-8", "backslashreplace").decode()


def _read(
    readers: ThreadPoolExecutor, part: Part, wanted: Sequence[int], size: int, bands: int
) -> Iterator[tuple[Row, Chip | ImageError]]:
    """Yield the wanted chips in their order; images are read by all threads, and a scene, which is opened once, by one.

    A scene has any number of windows: those are made as they are asked for.
    """
    if part.of_one_scene:
        yield from _ready(part, wanted, size, bands)
        return
    some = [wanted[begin : begin + _AT_ONCE] for begin in range(0, len(wanted), _AT_ONCE)]
    for read in readers.map(lambda places: [*_ready(part, places, size, bands)], some):
        yield from read


def _ready(part: Part, places: Sequence[int], size: int, bands: int) -> Iterator[tuple[Row, Chip | ImageError]]:
    """Yield rows with their thumbnails, and the chips in a square or the reason why there is none."""
    for place, pixels in part.pixels(places, size):
        row = part.rows[place]
        if isinstance(pixels, ImageError):
            yield row, pixels
            continue
        try:
            square = letterbox(fitting(pixels, bands, row["id"]), size)
        except ImageError as error:
            yield row, error
            continue
        yield row if "thumbnail" in row else row | {"thumbnail": thumbnail(pixels)}, square


def _is_text(row: Row) -> bool:
    return all(shown(name) == name for name in (row["id"], row["source"]))
