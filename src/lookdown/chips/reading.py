"""Chips from files to equal squares; a bad file is refused with a sentence that says why."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from lookdown.chips.imagery import TIFF, open_scene
from lookdown.chips.jpegs import decode_small
from lookdown.chips.photographs import FORMATS, MAX_PIXELS, open_photograph, refuse_remote
from lookdown.errors import ImageError, InputError

__all__ = ["Chip", "as_colour", "letterbox", "read_chip"]

Chip = NDArray[np.uint8]  # (h, w, bands)

# A JPEG decoded at a half or less has a long side of so many times the letterbox at least. Letterboxed aircraft differ
# from those of a full decode by 0.5 (1/2) to 1.2 (1/8) of 255 levels in the mean where it is 1, by 0.4 to 0.8 at 1.5,
# and by 0.25 to 0.5 at 2: as much as JPEG of quality 85 differs from quality 90.
_MARGIN = 2
_SHOWN = 96  # and not less than what a picture of the chip shows


def read_chip(path: Path, *, side: int | None = None, content: bytes | None = None) -> Chip:
    """Return the pixels of an image, (h, w, 3), or of a `.npy` file with uint8 (h, w, bands).

    Greyscale becomes three equal bands; palettes become RGB, and transparency is dropped. Pixels deeper than 8 bits
    are stretched, and a TIFF keeps its bands. An image that turns with an EXIF tag is not turned: boxes are drawn on
    the stored pixels.

    side: what the chip is letterboxed to afterwards; a JPEG that is much larger is then decoded at a half, a quarter or
        an eighth of its size, which takes a fraction of the time. Without it every pixel is there.
    content: the bytes of the file, where they have been read already.
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
    given = None if fill is None else as_colour(fill)
    if h < size or w < size:
        colour = _mean_colour(chip) if given is None else given
        square.reshape(size, -1)[:] = np.tile(np.asarray(colour, np.uint8), size)  # by rows: bands alone take longer
    top, left = (size - h) // 2, (size - w) // 2
    square[top : top + h, left : left + w] = _resized(chip, w, h)
    return square


def as_colour(fill: tuple[int, ...]) -> tuple[int, ...]:
    """Return a colour, if it is one."""
    if not all(0 <= value <= 255 for value in fill):
        raise InputError(f"fill must hold values from 0 to 255, got {fill}")
    return fill


def _resized(chip: Chip, w: int, h: int) -> Chip:
    """Return the chip at another size; bands do not mix, so that it does not matter which are resized together."""
    if chip.shape[2] == 3:
        image = Image.fromarray(np.ascontiguousarray(chip))
        return np.asarray(image.resize((w, h), Image.Resampling.LANCZOS))
    bands = (Image.fromarray(np.ascontiguousarray(chip[:, :, band])) for band in range(chip.shape[2]))
    return np.stack([np.asarray(band.resize((w, h), Image.Resampling.LANCZOS)) for band in bands], axis=2)


def _mean_colour(chip: Chip) -> NDArray[np.float64]:
    """Return the mean of each band, rounded; rows are added up first, which takes a tenth of the time."""
    h, w, bands = chip.shape
    sums = chip.reshape(h, w * bands).sum(axis=0, dtype=np.uint64).reshape(w, bands).sum(axis=0)
    return np.asarray((sums / (h * w)).round())


def _read_image(path: Path, side: int | None, content: bytes | None) -> Chip:
    if path.suffix.lower() in TIFF:
        return _read_scene(path)
    if content is not None and (pixels := decode_small(content, 2 * _SHOWN)) is not None:  # at no part of its size
        return pixels
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
        if image.mode in ("P", "PA"):  # by way of RGBA, or Pillow warns where the palette has transparent colours
            return np.array(image.convert("RGBA").convert("RGB"))
        return np.array(image.convert("RGB"))


def _decode_no_larger_than_needed(image: Image.Image, side: int) -> None:
    """Let a JPEG be decoded at a fraction of its size; other formats know nothing of that, and stay as they are.

    Only a fraction that both sides have is taken: another would shift what the chip shows by part of a pixel, and that
    changes the square more than everything else.
    """
    width, height = image.size
    needed = max(_MARGIN * side, _SHOWN)
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
