"""JPEGs by libjpeg-turbo alone, several times as fast as by Pillow, to the same pixels.

Only plain ones: whatever is odd, damaged or large is None here, and Pillow's to judge.
"""

from __future__ import annotations

import numpy as np
import simplejpeg
from numpy.typing import NDArray

from lookdown.chips.photographs import MAX_PIXELS

__all__ = ["decode_small", "size_of"]

_COLOURS = ("YCbCr", "Gray")  # Pillow has its own mind on CMYK, and on what Adobe's marker says


def size_of(head: bytes) -> tuple[int, int] | None:
    """Return width and height as the first bytes of a file tell them."""
    try:
        height, width, colours, _ = simplejpeg.decode_jpeg_header(head, strict=True)
    except ValueError:
        return None
    return (width, height) if colours in _COLOURS and width * height <= MAX_PIXELS else None


def decode_small(content: bytes, below: int) -> NDArray[np.uint8] | None:
    """Return the pixels of a file whose sides are shorter than `below`, (h, w, 3); grey as three equal bands."""
    size = size_of(content)
    if size is None or max(size) >= below:
        return None
    try:
        pixels: NDArray[np.uint8] = simplejpeg.decode_jpeg(content, "RGB", strict=True)  # a warning is an error
    except ValueError:
        return None
    return pixels
