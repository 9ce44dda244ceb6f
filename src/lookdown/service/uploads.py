"""Uploaded images: the first bytes give their format and the header their size, before anything is decoded."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rasterio
from numpy.typing import NDArray
from PIL import Image

from lookdown.chips.imagery import GDAL_ERRORS, NO_SIDECARS
from lookdown.chips.photographs import open_photograph, quietly
from lookdown.chips.pixels import fit_bands, read_chip, turned_squares
from lookdown.errors import ImageError
from lookdown.gallery.index.thumbnails import thumbnail
from lookdown.gallery.search.request import TIFF
from lookdown.service.problems import Problem

__all__ = ["Upload", "kind_of", "read_upload"]

_MAX_SCANS = 64  # of a progressive JPEG: each decodes all pixels again, and about ten are normal
_TURNS = 4
_PIXEL_BYTES = {"I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2, "I": 4, "F": 4}  # by mode; 1 for the others


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded image, read and prepared for the network."""

    squares: NDArray[np.uint8]  # (views, bands, size, size): as it is, and turned by quarters
    thumbnail: bytes  # JPEG, encoded anew


def read_upload(content: bytes, *, pixels: int, bands: int, size: int, turned: bool) -> Upload:
    """Read an image for a network that takes `bands` and `size`; refuse it if it has more than `pixels`."""
    kind = kind_of(content)
    with tempfile.TemporaryDirectory(prefix="lookdown-") as folder:  # our readers take files
        file = Path(folder, f"image.{kind}")
        file.write_bytes(content)
        try:
            if _MEASURES[kind](content, file) > pixels:
                raise Problem(
                    413,
                    "too-large",
                    f"an image may have {pixels / 1e6:.3g} megapixels, fewer where it has many bands or more than "
                    "8 bits; cut it to the object, or make it smaller",
                )
            chip = fit_bands(read_chip(file, side=size), bands, "the image")
        except ImageError as error:
            sentence = str(error).replace(str(file), "the image").replace(file.name, "the image")
            raise ImageError(sentence) from None
    return Upload(turned_squares(chip, size, _TURNS if turned else 1), thumbnail(chip))


def kind_of(content: bytes) -> str:
    """Return jpeg, png, tif or webp, judged by the first bytes; refuse any other format."""
    if content[:3] == b"\xff\xd8\xff":
        return "jpeg"
    if content[:8] == b"\x89PNG\r\n\x1a\n":
        return "png"
    if content[:4] in TIFF:
        return "tif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    if not content:
        raise Problem(422, "image", "the image is empty; send one with pixels")
    raise Problem(415, "image", "this is not an image of a known format; send a JPEG, PNG, TIFF or WebP")


def _photograph(content: bytes, file: Path) -> int:
    """Return the pixels of a JPEG or PNG by its header, counted once for each byte of a pixel."""
    if content[:2] == b"\xff\xd8" and content.count(b"\xff\xda") > _MAX_SCANS:
        raise ImageError("the image is stored in too many scans; save it as a plain JPEG")
    try:
        with open_photograph(file) as image:
            return image.width * image.height * _PIXEL_BYTES.get(image.mode, 1)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return 1 << 62
    except Exception as error:  # decoders raise a dozen kinds of error for damaged files
        raise ImageError("the image is damaged or truncated; send it again") from error


def _webp(content: bytes, file: Path) -> int:
    """Return the pixels of a WebP by its header; Pillow allocates memory for all of them as soon as it opens one."""
    kind, head = content[12:16], content[20:30]
    if len(head) == 10 and kind == b"VP8X":
        width, height = (int.from_bytes(head[i : i + 3], "little") + 1 for i in (4, 7))
    elif len(head) == 10 and kind == b"VP8L":
        (bits,) = struct.unpack("<I", head[1:5])
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif len(head) == 10 and kind == b"VP8 ":
        width, height = (side & 0x3FFF for side in struct.unpack("<HH", head[6:10]))
    else:
        raise ImageError("the image is damaged or truncated; send it again")
    return width * height


def _tiff(content: bytes, file: Path) -> int:
    """Return the bytes of a TIFF's pixels, or of its largest block, which is decoded as a whole."""
    try:
        with quietly(), rasterio.Env(**NO_SIDECARS), rasterio.open(file, driver="GTiff") as image:
            block = max(rows * columns for rows, columns in image.block_shapes)
            widest = max(_itemsize(dtype) for dtype in image.dtypes)
            return int(max(image.width * image.height, block) * image.count * widest)
    except GDAL_ERRORS as error:
        raise ImageError("the image is damaged or truncated; send it again") from error


def _itemsize(dtype: str) -> int:
    """Return the bytes of a number; none of the types that GDAL has and numpy has not is wider than 16 bytes."""
    return np.dtype(dtype).itemsize if dtype in np.sctypeDict else 16


_MEASURES: dict[str, Callable[[bytes, Path], int]] = {
    "jpeg": _photograph, "png": _photograph, "webp": _webp, "tif": _tiff,
}  # fmt: skip
