"""Chips as small pictures, to look at."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from lookdown.chips.reading import Chip

__all__ = ["thumbnail"]

_SIDE = 96


def thumbnail(pixels: Chip) -> bytes:
    """Return a chip as a small JPEG; of many bands the first three are shown."""
    shown = pixels[:, :, :3] if pixels.shape[2] >= 3 else pixels[:, :, 0]
    image = Image.fromarray(np.ascontiguousarray(shown))
    image.thumbnail((_SIDE, _SIDE))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=85)
    return stream.getvalue()
