"""Chips from files to batches of equal squares; a bad file is skipped with a sentence that says why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from lookdown.chips.imagery import TIFF, open_scene
from lookdown.chips.photographs import FORMATS, MAX_PIXELS, open_photograph, refuse_remote
from lookdown.errors import ImageError, InputError

__all__ = ["Batch", "ChipBatches", "ChipDataset", "Item", "chip_batches", "letterbox", "read_chip"]

Chip = NDArray[np.uint8]  # (h, w, bands)


def read_chip(path: Path) -> Chip:
    """Return the pixels of an image, (h, w, 3), or of a `.npy` file with uint8 (h, w, bands).

    Greyscale becomes three equal bands; palettes become RGB, and transparency is dropped. Pixels deeper than 8 bits
    are stretched, and a TIFF keeps its bands. An image that turns with an EXIF tag is not turned: boxes are drawn on
    the stored pixels.
    """
    refuse_remote(path)
    try:
        if path.stat().st_size == 0:
            raise ImageError(f"{path}: the file is empty; copy or download it again")
        return _read_array(path) if path.suffix.lower() == ".npy" else _read_image(path)
    except ImageError:
        raise
    except FileNotFoundError:
        raise ImageError(f"{path}: there is no such file; check the path, or remove it from the list") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large(path) from None
    except UnidentifiedImageError:
        raise ImageError(
            f"{path}: not an image of a known kind ({', '.join(FORMATS)}); convert it, or remove it from the list"
        ) from None
    except Exception as error:  # decoders meet broken files with a dozen kinds of error; none may end an epoch
        reason = str(error) or type(error).__name__
        raise ImageError(f"{path}: cannot be read ({reason}); copy or download it again") from error


def letterbox(chip: Chip, size: int, fill: tuple[int, ...] | None = None) -> Chip:
    """Return the chip in a square, (size, size, bands): its long side becomes `size`, the rest is padded evenly.

    Nothing is stretched, for the ratio of length to beam tells ships apart. Without `fill` the padding has the chip's
    mean colour, which moves the statistics of the chip least.
    """
    if chip.ndim != 3 or chip.dtype != np.uint8 or 0 in chip.shape:
        raise InputError(f"chip must be uint8 (h, w, bands) with pixels, got {chip.dtype} {chip.shape}")
    if size < 1:
        raise InputError(f"size must be at least 1, got {size}")
    if fill is not None and len(fill) != chip.shape[2]:
        raise InputError(f"fill has {len(fill)} values but the chip has {chip.shape[2]} bands; give one value a band")
    h, w = (max(1, round(side * size / max(chip.shape[:2]))) for side in chip.shape[:2])
    square = np.empty((size, size, chip.shape[2]), np.uint8)
    square[:] = chip.mean((0, 1)).round() if fill is None else _as_colour(fill)
    top, left = (size - h) // 2, (size - w) // 2
    for band in range(chip.shape[2]):  # Pillow resizes no more than four bands together
        image = Image.fromarray(np.ascontiguousarray(chip[:, :, band]))
        square[top : top + h, left : left + w, band] = np.asarray(image.resize((w, h), Image.Resampling.LANCZOS))
    return square


class Item(NamedTuple):
    """One chip, or the reason why there is none."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody asks of an item
    image: Tensor  # uint8 (bands, size, size); zeros where there is a problem
    problem: str | None


class Batch(NamedTuple):
    """The good chips of a batch, and what was wrong with the others."""

    indices: Tensor  # int64 (n,), places in the list of paths
    images: Tensor  # uint8 (n, bands, size, size)
    problems: list[tuple[int, str]]


class ChipDataset(Dataset[Item]):
    """Chips in a list of files, letterboxed to one size."""

    def __init__(self, paths: Sequence[Path], *, size: int = 64, fill: tuple[int, ...] | None = None) -> None:
        if size < 1:
            raise InputError(f"size must be at least 1, got {size}")
        self.paths = list(paths)
        self.size = size
        self.fill = None if fill is None else _as_colour(fill)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Item:
        """Return a chip; a file that cannot be read gives zeros and a sentence, never an error."""
        try:
            chip = read_chip(self.paths[index])
        except ImageError as error:
            return Item(index, torch.zeros(3, self.size, self.size, dtype=torch.uint8), str(error))
        square = letterbox(chip, self.size, self.fill)
        return Item(index, torch.from_numpy(np.ascontiguousarray(square.transpose(2, 0, 1))), None)

    def collate(self, items: Sequence[Item]) -> Batch:
        """Return the good items as one batch, in their order; chips with different numbers of bands are refused."""
        good = [item for item in items if item.problem is None]
        for item in good:
            _refuse_other_bands(self.paths, (good[0].index, len(good[0].image)), (item.index, len(item.image)))
        none = torch.empty(0, 3, self.size, self.size, dtype=torch.uint8)
        return Batch(
            indices=torch.tensor([item.index for item in good], dtype=torch.int64),
            images=torch.stack([item.image for item in good]) if good else none,
            problems=[(item.index, item.problem) for item in items if item.problem is not None],
        )


class ChipBatches:
    """Batches of the chips that can be read; `skipped` holds the others of the current epoch, by index."""

    def __init__(self, dataset: ChipDataset, *, batch_size: int, workers: int = 0, seed: int | None = None) -> None:
        if batch_size < 1 or workers < 0:
            raise InputError(f"batch_size must be at least 1 and workers at least 0, got {batch_size} and {workers}")
        self.dataset, self.batch_size, self.workers, self.seed = dataset, batch_size, workers, seed
        self.skipped: dict[int, str] = {}

    def __len__(self) -> int:
        """Batches in an epoch, counting any that will be left out because none of its chips can be read."""
        return math.ceil(len(self.dataset) / self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        self.skipped = {}
        first: tuple[int, int] | None = None
        for batch in self._loader():
            if isinstance(batch, InputError):
                raise batch
            self.skipped.update(batch.problems)
            if not len(batch.indices):
                continue
            found = int(batch.indices[0]), batch.images.shape[1]
            first = first or found
            _refuse_other_bands(self.dataset.paths, first, found)
            yield batch

    def _loader(self) -> DataLoader[Item]:
        return DataLoader(
            self.dataset,
            batch_size=self.batch_size,
            sampler=self._order(),
            num_workers=self.workers,
            collate_fn=self._collate,
            generator=torch.Generator(),  # its own, or the loader would draw from the global one
        )

    def _order(self) -> Sequence[int]:
        if self.seed is None:
            return range(len(self.dataset))
        order: list[int] = np.random.default_rng(self.seed).permutation(len(self.dataset)).tolist()
        return order

    def _collate(self, items: Sequence[Item]) -> Batch | InputError:
        """Return a refusal rather than raise it: a worker would bury the sentence in a traceback."""
        try:
            return self.dataset.collate(items)
        except InputError as error:
            return error


def chip_batches(
    paths: Sequence[Path],
    *,
    size: int,
    batch_size: int,
    workers: int = 0,
    seed: int | None = None,
    fill: tuple[int, ...] | None = None,
) -> ChipBatches:
    """Return batches of letterboxed chips, in the order of the paths or, with a seed, in a shuffled one.

    The order depends on the seed and the number of paths alone, so it is the same at every pass and for any number of
    workers; give each epoch of a training its own seed.
    """
    return ChipBatches(ChipDataset(paths, size=size, fill=fill), batch_size=batch_size, workers=workers, seed=seed)


def _read_image(path: Path) -> Chip:
    if path.suffix.lower() in TIFF:
        return _read_scene(path)
    with open_photograph(path) as image:
        if min(image.size) < 1:
            raise ImageError(f"{path}: the image has no pixels; remove it from the list")
        if image.mode.startswith(("I", "F")):
            return _read_scene(path)
        if image.mode in ("1", "L"):
            return np.repeat(np.asarray(image.convert("L"))[:, :, None], 3, axis=2)
        if image.mode in ("P", "PA"):  # by way of RGBA, or Pillow warns where the palette has transparent colours
            return np.array(image.convert("RGBA").convert("RGB"))
        return np.array(image.convert("RGB"))


def _read_scene(path: Path) -> Chip:
    """Read a TIFF, or pixels deeper than 8 bits, as scenes are read: any number of bands, stretched to 8 bits."""
    with open_scene(path) as scene:
        if scene.width * scene.height > MAX_PIXELS:
            raise _too_large(path)
        pixels = scene.read((0, 0, scene.width, scene.height))
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels


def _read_array(path: Path) -> Chip:
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = read_header[version](file)
        if dtype != np.uint8 or len(shape) != 3:
            raise ImageError(
                f"{path}: holds {dtype} of shape {shape}, not uint8 (h, w, bands); save it as 8-bit with the bands last"
            )
        if 0 in shape:
            raise ImageError(f"{path}: the array has no pixels (shape {shape}); remove it from the list")
        if shape[0] * shape[1] > MAX_PIXELS:
            raise _too_large(path)
        if path.stat().st_size - file.tell() < math.prod(shape):  # before the memory for it is taken
            raise ImageError(f"{path}: the file is truncated; copy or download it again")
        file.seek(0)
        return np.ascontiguousarray(np.load(file, allow_pickle=False))


def _too_large(path: Path) -> ImageError:
    return ImageError(
        f"{path}: more than {MAX_PIXELS // 10**6} megapixels, too large for a chip (or a decompression bomb); "
        "cut chips from it first"
    )


def _as_colour(fill: tuple[int, ...]) -> tuple[int, ...]:
    if not all(0 <= value <= 255 for value in fill):
        raise InputError(f"fill must hold values from 0 to 255, got {fill}")
    return fill


def _refuse_other_bands(paths: Sequence[Path], first: tuple[int, int], second: tuple[int, int]) -> None:
    (i, bands), (j, other) = first, second
    if bands != other:
        raise InputError(
            f"chips of one run need the same bands, but {paths[i]} has {bands} and {paths[j]} has {other}; "
            "list them apart, or save them with the same bands"
        )
