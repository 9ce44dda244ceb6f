"""Images from strangers: what they are is told by their first bytes, and how large by their header, before decoding."""

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
from lookdown.chips.reading import read_chip
from lookdown.errors import ImageError
from lookdown.gallery.index.thumbnails import thumbnail
from lookdown.gallery.search.examples import TIFF, fitting, squares
from lookdown.service.problems import Problem

__all__ = ["Upload", "kind_of", "read_upload"]

_SCANS = 64  # of a progressive JPEG: each goes over all pixels, and an honest one has about ten
_TURNS = 4
_DEEP = {"I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2, "I": 4, "F": 4}  # bytes of a pixel by the mode; else 1 a band


@dataclass(frozen=True, slots=True)
class Upload:
    """An image that was read."""

    squares: NDArray[np.uint8]  # (views, bands, size, size): as it lies, and in its other quarter turns
    thumbnail: bytes  # JPEG, drawn anew


def read_upload(content: bytes, *, pixels: int, bands: int, size: int, turned: bool) -> Upload:
    """Read an image for a network that takes `bands` and `size`, refusing one of more than `pixels`."""
    kind = kind_of(content)
    with tempfile.TemporaryDirectory(prefix="lookdown-") as folder:  # every reader of ours takes a file
        file = Path(folder, f"image.{kind}")
        file.write_bytes(content)
        try:
            _refuse_large(_MEASURES[kind](content, file), pixels)
            chip = fitting(read_chip(file, side=size), bands, "the image")
        except ImageError as error:
            told = str(error).replace(str(file), "the image").replace(file.name, "the image")
            raise ImageError(told) from None
    return Upload(squares(chip, size, _TURNS if turned else 1), thumbnail(chip))


def kind_of(content: bytes) -> str:
    """Return jpeg, png, tif or webp, whatever the file or its type is called; anything else is refused."""
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
    raise Problem(415, "image", "this is no image of a known kind; send a JPEG, PNG, TIFF or WebP")


def _refuse_large(found: int, pixels: int) -> None:
    if found > pixels:
        raise Problem(
            413,
            "too-large",
            f"an image may have {pixels / 1e6:.3g} megapixels, fewer where it has many bands or more than 8 bits; cut "
            "it to the object, or make it smaller",
        )


def _photograph(content: bytes, file: Path) -> int:
    """Return the pixels that a JPEG or PNG says it has, or the bytes of deep ones; only its header is read."""
    if content[:2] == b"\xff\xd8" and content.count(b"\xff\xda") > _SCANS:
        raise ImageError("the image is stored in too many scans; save it as a plain JPEG")
    try:
        with open_photograph(file) as image:
            return image.width * image.height * _DEEP.get(image.mode, 1)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return 1 << 62
    except Exception as error:  # decoders meet broken files with a dozen kinds of error
        raise ImageError("the image is damaged or truncated; send it again") from error


def _webp(content: bytes, file: Path) -> int:
    """Return the pixels that a WebP says it has; Pillow would take the memory for them when it opens one."""
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
    """Return the bytes of the numbers that a TIFF holds, or of one of its blocks, which is decoded as a whole."""
    try:
        with quietly(), rasterio.Env(**NO_SIDECARS), rasterio.open(file, driver="GTiff") as image:
            block = max(rows * columns for rows, columns in image.block_shapes)
            widest = max(_itemsize(dtype) for dtype in image.dtypes)
            return int(max(image.width * image.height, block) * image.count * widest)
    except GDAL_ERRORS as error:
        raise ImageError("the image is damaged or truncated; send it again") from error


def _itemsize(dtype: str) -> int:
    """Return the bytes of a number; GDAL knows kinds that numpy does not, and none is wider than this."""
    return np.dtype(dtype).itemsize if dtype in np.sctypeDict else 16


_MEASURES: dict[str, Callable[[bytes, Path], int]] = {
    "jpeg": _photograph,
    "png": _photograph,
    "webp": _webp,
    "tif": _tiff,
}
