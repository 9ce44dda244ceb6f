"""Chips from files to equal squares; a bad file is refused with a sentence that says why."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from lookdown.chips.imagery import TIFF, open_scene
from lookdown.chips.photographs import FORMATS, MAX_PIXELS, open_photograph, refuse_remote
from lookdown.errors import ImageError, InputError

__all__ = ["Chip", "as_colour", "letterbox", "read_chip"]

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
    square[:] = chip.mean((0, 1)).round() if fill is None else as_colour(fill)
    top, left = (size - h) // 2, (size - w) // 2
    for band in range(chip.shape[2]):  # Pillow resizes no more than four bands together
        image = Image.fromarray(np.ascontiguousarray(chip[:, :, band]))
        square[top : top + h, left : left + w, band] = np.asarray(image.resize((w, h), Image.Resampling.LANCZOS))
    return square


def as_colour(fill: tuple[int, ...]) -> tuple[int, ...]:
    """Return a colour, if it is one."""
    if not all(0 <= value <= 255 for value in fill):
        raise InputError(f"fill must hold values from 0 to 255, got {fill}")
    return fill


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
