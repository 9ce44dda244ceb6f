"""Pixels of one chip: read from a file, fitted to the bands of a network, and letterboxed to a square."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from lookdown.chips.imagery import TIFF, open_scene
from lookdown.chips.photographs import FORMATS, MAX_PIXELS, decode_small_jpeg, open_photograph, refuse_remote
from lookdown.errors import ImageError, InputError

__all__ = ["Chip", "fit_bands", "letterbox", "read_chip", "turned_squares"]

Chip = NDArray[np.uint8]  # (h, w, bands)

# A JPEG is decoded at a fraction of its size if its long side then still has this many times the pixels of the square.
# At 2, letterboxed aircraft differ from those of a full decode by 0.25 to 0.5 of 255 levels in the mean: as much as
# JPEG of quality 85 differs from quality 90. At 1.5 it is 0.4 to 0.8, at 1 it is 0.5 to 1.2.
_MARGIN = 2
_THUMBNAIL_PIXELS = 96  # a decoded chip is never smaller than its thumbnail


def read_chip(path: Path, *, side: int | None = None, content: bytes | None = None) -> Chip:
    """Return the pixels of an image, (h, w, 3), or of a `.npy` file with uint8 (h, w, bands).

    Greyscale becomes three equal bands, palettes become RGB, and transparency is dropped. Pixels deeper than 8 bits are
    stretched, and a TIFF keeps its bands. EXIF orientation is ignored, because boxes refer to the stored pixels.

    side: the size to which the chip is letterboxed afterwards. A JPEG that is much larger is then decoded at a half, a
        quarter or an eighth of its size, which takes a fraction of the time. Without `side` it is decoded in full.
    content: the bytes of the file, if they have been read already.
    """
    refuse_remote(path)
    try:
        if content is None and path.stat().st_size == 0:
            raise ImageError(f"{path}: the file is empty; copy or download it again")
        return _read_array(path) if path.suffix.lower() == ".npy" else _read_image(path, side, content)
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

    Nothing is stretched, because the ratio of length to beam tells ships apart.

    fill: the colour of the padding, one value a band. By default it is the mean colour of the chip, which changes the
        statistics of the chip least.
    """
    if chip.ndim != 3 or chip.dtype != np.uint8 or 0 in chip.shape:
        raise InputError(f"chip must be uint8 (h, w, bands) with pixels, got {chip.dtype} {chip.shape}")
    if size < 1:
        raise InputError(f"size must be at least 1, got {size}")
    if fill is not None and len(fill) != chip.shape[2]:
        raise InputError(f"fill has {len(fill)} values but the chip has {chip.shape[2]} bands; give one value a band")
    h, w = (max(1, round(side * size / max(chip.shape[:2]))) for side in chip.shape[:2])
    square = np.empty((size, size, chip.shape[2]), np.uint8)
    if fill is not None and not all(0 <= value <= 255 for value in fill):
        raise InputError(f"fill must hold values from 0 to 255, got {fill}")
    if h < size or w < size:
        colour = _mean_colour(chip) if fill is None else fill
        square.reshape(size, -1)[:] = np.tile(np.asarray(colour, np.uint8), size)  # by rows: bands alone take longer
    top, left = (size - h) // 2, (size - w) // 2
    square[top : top + h, left : left + w] = _resized(chip, w, h)
    return square


def fit_bands(pixels: Chip, bands: int, name: str | Path) -> Chip:
    """Return pixels with the bands that a network takes; grey becomes that many equal bands.

    name: what an error calls the image.
    """
    if pixels.shape[2] == bands:
        return pixels
    if pixels.shape[2] in (1, 3) and (pixels == pixels[:, :, :1]).all():  # files with one band are read as three
        return np.repeat(pixels[:, :, :1], bands, axis=2)
    raise ImageError(
        f"{name} has {pixels.shape[2]} bands, this embedder takes {bands}; select {bands} of them, for example with "
        f"gdal_translate -b, or build an embedder with bands={pixels.shape[2]}"
    )


def turned_squares(pixels: Chip, size: int, turns: int) -> NDArray[np.uint8]:
    """Return (turns, bands, size, size) as a network takes them: the image as it is, and in further quarter turns."""
    square = letterbox(pixels, size).transpose(2, 0, 1)
    return np.stack([np.rot90(square, turn, (1, 2)) for turn in range(turns)])


def _resized(chip: Chip, w: int, h: int) -> Chip:
    """Return the chip at another size; bands are resized independently, together or one by one."""
    if chip.shape[2] == 3:
        image = Image.fromarray(np.ascontiguousarray(chip))
        return np.asarray(image.resize((w, h), Image.Resampling.LANCZOS))
    bands = (Image.fromarray(np.ascontiguousarray(chip[:, :, band])) for band in range(chip.shape[2]))
    return np.stack([np.asarray(band.resize((w, h), Image.Resampling.LANCZOS)) for band in bands], axis=2)


def _mean_colour(chip: Chip) -> NDArray[np.float64]:
    """Return the mean of each band, rounded; summing rows first takes a tenth of the time."""
    h, w, bands = chip.shape
    sums = chip.reshape(h, w * bands).sum(axis=0, dtype=np.uint64).reshape(w, bands).sum(axis=0)
    return np.asarray((sums / (h * w)).round())


def _read_image(path: Path, side: int | None, content: bytes | None) -> Chip:
    if path.suffix.lower() in TIFF:
        return _read_scene(path)
    small = None if content is None else decode_small_jpeg(content, 2 * _THUMBNAIL_PIXELS)
    if small is not None:
        return small
    with open_photograph(path if content is None else io.BytesIO(content)) as image:
        if min(image.size) < 1:
            raise ImageError(f"{path}: the image has no pixels; remove it from the list")
        if image.mode.startswith(("I", "F")):
            return _read_scene(path)
        if side is not None:
            _decode_no_larger_than_needed(image, side)
        if image.mode == "RGB":
            return np.array(image)
        if image.mode in ("1", "L"):
            return np.repeat(np.asarray(image.convert("L"))[:, :, None], 3, axis=2)
        if image.mode in ("P", "PA"):  # by RGBA: else Pillow warns if the palette has transparent colours
            return np.array(image.convert("RGBA").convert("RGB"))
        return np.array(image.convert("RGB"))


def _decode_no_larger_than_needed(image: Image.Image, side: int) -> None:
    """Have a JPEG decoded at a fraction of its size; other formats cannot do that and ignore the call.

    The fraction must divide both sides. Otherwise the content would shift by part of a pixel, which changes the square
    more than the coarser decoding.
    """
    width, height = image.size
    needed = max(_MARGIN * side, _THUMBNAIL_PIXELS)
    for part in (8, 4, 2):
        if width % part == height % part == 0 and max(width, height) // part >= needed:
            image.draft(None, (width // part, height // part))
            return


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
