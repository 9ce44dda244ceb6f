"""Images as users have them (an array, a tensor, files, a manifest) as batches of equal squares, or refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookdown.errors import InputError

if TYPE_CHECKING:  # reading needs the packages for chips; arrays do not
    from lookdown.chips.batches import ChipBatches
    from lookdown.chips.manifest import Manifest

__all__ = ["ImageBatch", "ImageBatches", "Images", "check_images"]

Images: TypeAlias = "NDArray[np.uint8] | Tensor | Sequence[str | Path] | Manifest | ChipBatches"


class ImageBatch(NamedTuple):
    """Some images and their places among all."""

    indices: Tensor  # int64 (n,)
    images: Tensor  # uint8 (n, bands, size, size)


class ImageBatches:
    """Batches of any images; after a pass `skipped` holds those that could not be read, with the reason, by index."""

    def __init__(self, images: Images, *, bands: int, size: int, batch_size: int) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise InputError(f"batch_size must be a whole number of at least 1, got {batch_size!r}")
        self.bands, self.size, self.batch_size = bands, size, batch_size
        self._pixels: NDArray[np.uint8] | Tensor | None = None
        self._chips: ChipBatches | None = None
        if isinstance(images, np.ndarray | Tensor):
            check_images(images, bands=bands, size=size)
            self._pixels, self.total = images, len(images)
        else:
            self._chips = _as_chips(images, size, batch_size)
            self.total = len(self._chips.dataset)
        if not self.total:
            raise InputError("there are no images; give at least one")

    @property
    def skipped(self) -> dict[int, str]:
        """Images of the pass so far that could not be read."""
        return self._chips.skipped if self._chips is not None else {}

    def __iter__(self) -> Iterator[ImageBatch]:
        if self._pixels is not None:
            for start in range(0, self.total, self.batch_size):
                part = self._pixels[start : start + self.batch_size]
                # An array is copied: it may be a file mapped for reading, which torch does not take.
                images = part if isinstance(part, Tensor) else torch.tensor(part)
                yield ImageBatch(torch.arange(start, start + len(part)), images)
        if self._chips is not None:
            for batch in self._chips:
                check_images(batch.images, bands=self.bands, size=self.size)
                yield ImageBatch(batch.indices, batch.images)


def check_images(images: NDArray[np.uint8] | Tensor, *, bands: int, size: int) -> None:
    """Refuse what is not uint8 (n, bands, size, size)."""
    if images.dtype not in (torch.uint8, np.uint8) or images.ndim != 4:
        found = f"{str(images.dtype).removeprefix('torch.')} {tuple(images.shape)}"
        raise InputError(f"images must be uint8 (n, {bands}, {size}, {size}), bands first, got {found}")
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


def _as_chips(images: Sequence[str | Path] | Manifest | ChipBatches, size: int, batch_size: int) -> ChipBatches:
    from lookdown.chips.batches import ChipBatches, chip_batches

    if isinstance(images, ChipBatches):
        if images.dataset.size != size:
            raise InputError(f"chips are read at {images.dataset.size} pixels, this embedder takes {size}")
        return images
    paths = getattr(images, "paths", images)  # of a manifest
    if isinstance(paths, str | Path) or not isinstance(paths, Sequence):
        raise InputError(
            f"images must be an array, a tensor, a list of files or a manifest, got {type(images).__name__}"
            + ("; put the file into a list" if isinstance(paths, str | Path) else "")
        )
    if not all(isinstance(path, str | Path) for path in paths):
        raise InputError("a list of images must hold files; stack pixels to one array (n, bands, size, size)")
    return chip_batches([Path(path) for path in paths], size=size, batch_size=batch_size)
