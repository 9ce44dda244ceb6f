"""Opening JPEG, PNG and the like from strangers: a limit of pixels, no format that starts a program, no address.

Small plain JPEGs are decoded by libjpeg-turbo directly: several times as fast as by Pillow, to the same pixels.
"""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

from lookdown.errors import ImageError

__all__ = ["FORMATS", "MAX_PIXELS", "decode_small_jpeg", "jpeg_size", "open_photograph", "quietly", "refuse_remote"]

MAX_PIXELS = 300_000_000  # what may be decoded at once
FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")  # not EPS, for which Pillow runs a program

_JPEG_COLOURS = ("YCbCr", "Gray")  # Pillow decodes CMYK, and files with Adobe's marker, in its own way
_REMOTE = re.compile(r"/+vsi|[a-z][a-z0-9+.-]+:/", re.IGNORECASE)  # two letters at least: C:/ is a drive

_one_at_a_time = threading.Lock()
if hasattr(os, "register_at_fork"):  # a worker forked while another thread reads must not inherit a held lock
    os.register_at_fork(
        before=_one_at_a_time.acquire, after_in_parent=_one_at_a_time.release, after_in_child=_one_at_a_time.release
    )


def open_photograph(file: Path | BinaryIO) -> Image.Image:
    """Open an image, not yet decoded; for a decompression bomb Pillow raises its error or its warning.

    Pillow has one limit of pixels for the whole process, so the limit is set here and restored.
    """
    with quietly():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, MAX_PIXELS
        try:
            return Image.open(file, formats=FORMATS)
        finally:
            Image.MAX_IMAGE_PIXELS = before


@contextmanager
def quietly() -> Iterator[None]:
    """Silence warnings about missing georeferences and odd EXIF fields; a user can do nothing about them.

    Warning filters belong to the whole process, so threads take turns. Decode outside of this block.
    """
    with _one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def refuse_remote(path: Path) -> None:
    """Refuse what a library would fetch or unpack by itself: a URL, or one of GDAL's virtual file systems."""
    if _REMOTE.match(path.as_posix()):  # Path turns https:// into https:/
        raise ImageError(f"{path} is not a local file; download it first, then give its path")


def jpeg_size(head: bytes) -> tuple[int, int] | None:
    """Return width and height from the first bytes of a JPEG; None if Pillow must decide."""
    try:
        height, width, colours, _ = simplejpeg.decode_jpeg_header(head, strict=True)
    except ValueError:
        return None
    return (width, height) if colours in _JPEG_COLOURS and width * height <= MAX_PIXELS else None


def decode_small_jpeg(content: bytes, below: int) -> NDArray[np.uint8] | None:
    """Return the pixels of a JPEG whose sides are shorter than `below`, (h, w, 3); grey as three equal bands.

    Return None for a file that is unusual, damaged or large, so that Pillow decides.
    """
    size = jpeg_size(content)
    if size is None or max(size) >= below:
        return None
    try:
        pixels: NDArray[np.uint8] = simplejpeg.decode_jpeg(content, "RGB", strict=True)  # a warning is an error
    except ValueError:
        return None
    return pixels
