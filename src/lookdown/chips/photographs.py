"""Opening JPEG, PNG and the like from strangers: a limit of pixels, no format that starts a program, no address."""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from PIL import Image

from lookdown.errors import ImageError

__all__ = ["FORMATS", "MAX_PIXELS", "open_photograph", "quietly", "refuse_remote"]

MAX_PIXELS = 300_000_000  # what may be decoded at once
FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")  # not EPS, for which Pillow runs a program

_REMOTE = re.compile(r"/+vsi|[a-z][a-z0-9+.-]+:/", re.IGNORECASE)  # two letters at least: C:/ is a drive

_one_at_a_time = threading.Lock()
if hasattr(os, "register_at_fork"):  # a worker forked while another thread reads must not inherit a held lock
    os.register_at_fork(
        before=_one_at_a_time.acquire, after_in_parent=_one_at_a_time.release, after_in_child=_one_at_a_time.release
    )


def open_photograph(file: Path | BinaryIO) -> Image.Image:
    """Open an image, not yet decoded; a bomb raises one of Pillow's two kinds, an error or a warning.

    Pillow keeps one limit of pixels for the whole process, so it is lent and given back.
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
    """Silence notes on missing places and odd EXIF fields; a user can do nothing about them.

    Filters of warnings belong to the whole process too, so threads take turns; decoding itself is outside.
    """
    with _one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def refuse_remote(path: Path) -> None:
    """Refuse what a library would fetch or unpack on its own: an address, or one of GDAL's virtual file systems."""
    if _REMOTE.match(path.as_posix()):  # Path turns https:// into https:/
        raise ImageError(f"{path} is not a local file; download it first, then give its path")
