"""Images as users have them (an array, a tensor, files, a manifest) as batches of equal squares, or refused."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import ImageError, InputError

if TYPE_CHECKING:  # reading needs the packages for chips; arrays do not, and neither needs torch
    from torch import Tensor

    from lookdown.chips.manifest import Manifest

__all__ = ["ImageBatch", "ImageBatches", "Images", "check_images"]

Pixels: TypeAlias = "NDArray[np.uint8] | Tensor"
Images: TypeAlias = "Pixels | Sequence[str | Path] | Manifest"

_READERS = min(8, os.cpu_count() or 1)


class ImageBatch(NamedTuple):
    """Some images and their places among all."""

    indices: NDArray[np.int64]  # (n,)
    images: Pixels  # uint8 (n, bands, size, size); a tensor where tensors were given


class ImageBatches:
    """Batches of any images; after a pass `skipped` holds those that could not be read, with the reason, by index."""

    def __init__(self, images: Images, *, bands: int, size: int, batch_size: int) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise InputError(f"batch_size must be a whole number of at least 1, got {batch_size!r}")
        self.bands, self.size, self.batch_size = bands, size, batch_size
        self.skipped: dict[int, str] = {}
        self._pixels: Pixels | None = None
        self._paths: list[Path] = []
        if isinstance(images, np.ndarray) or hasattr(images, "data_ptr"):  # a tensor, told without torch
            self._pixels = images  # type: ignore[assignment]
            check_images(images, bands=bands, size=size)  # type: ignore[arg-type]
        else:
            self._paths = _as_paths(images)
        self.total = len(self._paths if self._pixels is None else self._pixels)
        if not self.total:
            raise InputError("there are no images; give at least one")

    def __iter__(self) -> Iterator[ImageBatch]:
        self.skipped = {}
        if self._pixels is None:
            yield from self._read()
            return
        for start in range(0, self.total, self.batch_size):
            part = self._pixels[start : start + self.batch_size]
            yield ImageBatch(np.arange(start, start + len(part)), part)

    def _read(self) -> Iterator[ImageBatch]:
        """Yield the files that can be read, the next batch being read while one is worked on."""
        with ThreadPoolExecutor(_READERS, thread_name_prefix="lookdown-reading") as threads:
            starts = range(0, self.total, self.batch_size)
            coming = threads.map(self._square, self._paths[: self.batch_size])
            for start in starts:
                squares, end = list(coming), start + self.batch_size
                coming = threads.map(self._square, self._paths[end : end + self.batch_size])
                good = [place for place, square in enumerate(squares) if isinstance(square, np.ndarray)]
                self.skipped |= {
                    start + place: square for place, square in enumerate(squares) if isinstance(square, str)
                }
                if good:
                    images = np.stack([squares[place] for place in good])
                    yield ImageBatch(start + np.array(good, np.int64), images)

    def _square(self, path: Path) -> NDArray[np.uint8] | str:
        """Return a file as (bands, size, size), or the reason why it is none."""
        from lookdown.chips.reading import letterbox, read_chip

        try:
            chip = read_chip(path, side=self.size)
        except ImageError as error:
            return str(error)
        if chip.shape[2] != self.bands:
            raise InputError(
                f"{path} has {chip.shape[2]} bands, this embedder takes {self.bands}; choose bands of the images, or "
                f"build an embedder with bands={chip.shape[2]}"
            )
        return np.ascontiguousarray(letterbox(chip, self.size).transpose(2, 0, 1))


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
            f"{bands}; choose bands of the images, or build an embedder with bands={images.shape[1]}"
        )
    if tuple(images.shape[2:]) != (size, size):
        raise InputError(
            f"images are {images.shape[2]} x {images.shape[3]} pixels, this embedder takes {size} x {size}; letterbox "
            f"them to {size} (lookdown.chips.reading.letterbox)"
        )


def _as_paths(images: Sequence[str | Path] | Manifest) -> list[Path]:
    paths = getattr(images, "paths", images)  # of a manifest
    if isinstance(paths, str | Path) or not isinstance(paths, Sequence):
        raise InputError(
            f"images must be an array, a tensor, a list of files or a manifest, got {type(images).__name__}"
            + ("; put the file into a list" if isinstance(paths, str | Path) else "")
        )
    if not all(isinstance(path, str | Path) for path in paths):
        raise InputError("a list of images must hold files; stack pixels to one array (n, bands, size, size)")
    return [Path(path) for path in paths]
