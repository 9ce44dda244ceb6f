"""The one reader of images: files, pixels or windows of scenes as batches of letterboxed squares.

Training, embedding and indexing all read by it. Images come in their order, several threads read them, and the next
batch is read while one is in the network. An image that cannot be read is left out, with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import ImageError, InputError
from lookdown.progress import Progress, no_progress

if TYPE_CHECKING:  # files need the packages for chips; arrays do not, and neither needs torch
    from torch import Tensor

    from lookdown.chips.manifest import Manifest

__all__ = ["Group", "ImageReader", "Images", "SquareBatch", "ahead", "check_images", "read_squares"]

T = TypeVar("T")
Square = NDArray[np.uint8]  # (size, size, bands)
Pixels: TypeAlias = "NDArray[np.uint8] | Tensor"
Images: TypeAlias = "Pixels | Sequence[str | Path] | Manifest"

_THREADS = min(4, os.cpu_count() or 1)  # decoding and resizing run in parallel; more threads would wait for Python
_CHUNK_IMAGES = 16  # images that a thread reads in a row


@dataclass(frozen=True, slots=True)
class Group(Generic[T]):
    """Images that are read together.

    positions: which images of the group to read.
    read: takes some of the positions; returns for each the item that stands for the image, and its square or the error.
    lazily: one thread reads the images one by one, as they are needed. A scene is opened once and may have millions of
        windows.
    """

    positions: Sequence[int]
    read: Callable[[Sequence[int]], Iterable[tuple[T, Square | ImageError]]]
    lazily: bool = False


@dataclass(frozen=True, slots=True)
class SquareBatch(Generic[T]):
    """Squares for the network; the next batch but one overwrites the images."""

    items: list[T]
    images: NDArray[np.uint8]  # (n, bands, size, size)
    failed: list[tuple[T, ImageError]]


def read_squares(
    groups: Iterable[Group[T]],
    *,
    bands: int,
    size: int,
    batch_size: int,
    first_batch: int | None = None,
    end_with_group: bool = False,
) -> Generator[SquareBatch[T]]:
    """Yield the images of all groups in their order; the last batch may be empty.

    first_batch: images in the first batch, doubled from batch to batch up to `batch_size`, so that the network soon
        has work.
    end_with_group: no batch has images of two groups.
    """
    # One array is filled while one is in the network; allocating new memory costs more than filling it.
    arrays = cycle([np.empty((batch_size, bands, size, size), np.uint8) for _ in range(2)])
    items: list[T] = []
    failed: list[tuple[T, ImageError]] = []
    images, full = next(arrays), min(first_batch or batch_size, batch_size)

    def finished() -> SquareBatch[T]:
        nonlocal items, images, failed, full
        batch = SquareBatch(items, images[: len(items)], failed)
        items, images, failed, full = [], next(arrays), [], min(2 * full, batch_size)
        return batch

    with ThreadPoolExecutor(_THREADS, thread_name_prefix="lookdown-reading") as threads:
        for group in groups:
            for item, square in _in_order(threads, group):
                if isinstance(square, ImageError):
                    failed.append((item, square))
                    continue
                images[len(items)] = square.transpose(2, 0, 1)
                items.append(item)
                if len(items) == full:
                    yield finished()
            if end_with_group and (items or failed):
                yield finished()
    yield finished()


def ahead(generator: Generator[T]) -> Generator[T]:
    """Yield the same values, each computed in a thread while the one before is in use."""
    end = object()
    with closing(generator), ThreadPoolExecutor(max_workers=1) as thread:

        def ask() -> Future[T | object]:
            return thread.submit(next, generator, end)

        coming = ask()
        while (value := coming.result()) is not end:
            coming = ask()
            yield value  # type: ignore[misc]


class ImageReader:
    """Batches of squares from an array, a tensor, files, or a manifest.

    images: uint8 (n, bands, size, size), a list of files, or a manifest.
    bands, size: what the network takes. Files are letterboxed to the size; other bands are refused.
    batch_size: images in a batch.

    After a pass, `skipped` has the reason for each file that could not be read, by its position.
    """

    def __init__(self, images: Images, *, bands: int, size: int, batch_size: int = 256) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise InputError(f"batch_size must be a whole number of at least 1, got {batch_size!r}")
        self.bands, self.size, self.batch_size = bands, size, batch_size
        self.skipped: dict[int, str] = {}
        self._of_files = not (isinstance(images, np.ndarray) or hasattr(images, "data_ptr"))  # a tensor, without torch
        self._images: Any = None
        if self._of_files:
            self._images = _as_paths(images)
        else:
            self._images = images
            check_images(self._images, bands=bands, size=size)
        self.total = len(self._images)
        if not self.total:
            raise InputError("there are no images; give at least one")

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], Pixels]]:
        """Yield positions and images, uint8 (n, bands, size, size); images are valid until the next batch is read."""
        self.skipped = {}
        parts = [range(self.total)[start : start + self.batch_size] for start in range(0, self.total, self.batch_size)]
        if not self._of_files:
            for part in parts:
                yield np.array(part), self._images[part.start : part.stop]
            return
        groups = (Group(part, self._read) for part in parts)
        largest = min(self.batch_size, self.total)
        batches = read_squares(groups, bands=self.bands, size=self.size, batch_size=largest, end_with_group=True)
        with closing(ahead(batches)) as coming:
            for batch in coming:
                self.skipped |= {position: str(error) for position, error in batch.failed}
                if batch.items:
                    yield np.array(batch.items, np.int64), batch.images

    def read_all(self, progress: Progress = no_progress) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return all images that can be read, uint8 (n, bands, size, size), and their positions."""
        images = np.empty((self.total, self.bands, self.size, self.size), np.uint8)
        is_read = np.zeros(self.total, np.bool_)
        for positions, batch in self:
            images[positions], is_read[positions] = batch, True
            progress(int(is_read.sum()) + len(self.skipped), self.total, "chips")
        return (images if is_read.all() else images[is_read]), np.flatnonzero(is_read)

    @property
    def summary_of_skipped(self) -> str:
        """How many images could not be read, and the reason for the first."""
        first = next(iter(self.skipped.values()))
        return f"{len(self.skipped)} of {self.total} images could not be read, the first: {first}"

    def _read(self, positions: Sequence[int]) -> list[tuple[int, Square | ImageError]]:
        return [(position, self._square(self._images[position])) for position in positions]

    def _square(self, path: Path) -> Square | ImageError:
        from lookdown.chips.pixels import fit_bands, letterbox, read_chip

        try:
            pixels = read_chip(path, side=self.size)
        except ImageError as error:
            return error
        try:
            return letterbox(fit_bands(pixels, self.bands, path), self.size)
        except ImageError as error:  # all files of a list have the same bands, and another network is needed
            raise InputError(str(error)) from None


def check_images(images: Pixels, *, bands: int, size: int) -> None:
    """Refuse what is not uint8 (n, bands, size, size)."""
    kind = str(images.dtype).removeprefix("torch.")
    if kind != "uint8" or images.ndim != 4:
        raise InputError(
            f"images must be uint8 (n, {bands}, {size}, {size}), bands first, got {kind} {tuple(images.shape)}"
        )
    if images.shape[1] != bands:
        raise InputError(
            f"images have {images.shape[1]} bands (shape {tuple(images.shape)}, bands first), this embedder takes "
            f"{bands}; select bands, or build an embedder with bands={images.shape[1]}"
        )
    if tuple(images.shape[2:]) != (size, size):
        raise InputError(
            f"images are {images.shape[2]} x {images.shape[3]} pixels, this embedder takes {size} x {size}; letterbox "
            f"them to {size} (lookdown.chips.pixels.letterbox)"
        )


def _in_order(threads: ThreadPoolExecutor, group: Group[T]) -> Iterator[tuple[T, Square | ImageError]]:
    if group.lazily:
        yield from group.read(group.positions)
        return
    positions = group.positions
    chunks = [positions[begin : begin + _CHUNK_IMAGES] for begin in range(0, len(positions), _CHUNK_IMAGES)]
    for squares in threads.map(lambda chunk: list(group.read(chunk)), chunks):
        yield from squares


def _as_paths(images: Any) -> list[Path]:
    paths = getattr(images, "paths", images)  # of a manifest
    if isinstance(paths, str | Path) or not isinstance(paths, Sequence):
        raise InputError(
            f"images must be an array, a tensor, a list of files or a manifest, got {type(images).__name__}"
            + ("; put the file into a list" if isinstance(paths, str | Path) else "")
        )
    if not all(isinstance(path, str | Path) for path in paths):
        raise InputError("a list of images must hold files; stack pixels to one array (n, bands, size, size)")
    return [Path(path) for path in paths]
