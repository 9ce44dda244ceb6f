"""Small JPEG pictures of chips."""

from __future__ import annotations

import io
import re

import numpy as np
from PIL import Image

from lookdown.chips.pixels import Chip

__all__ = ["MAX_OWN_BYTES", "own_thumbnail", "thumbnail"]

MAX_OWN_BYTES = 8_192  # of a file that serves as its own thumbnail; most chips of 144 pixels take half of that

_SIDE_PIXELS = 96
_OWN_SIDE_PIXELS = 144  # of a file that serves as its own thumbnail: encoding takes as long as decoding it twice
_BEGIN = b"\xff\xd8"
_JFIF = b"\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"  # the minimal header of a JPEG
_FRAME, _SCAN = 0xC0, 0xDA  # baseline
_TABLES = frozenset({0xC4, 0xDB, 0xDD})  # Huffman codes, quantisation, restarts
_NOTES = frozenset({*range(0xE0, 0xEE), 0xEF, 0xFE})  # EXIF, profiles, comments; Adobe's 0xEE changes colours
_AFTER_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7]", re.DOTALL)  # neither a byte of the scan nor a restart


def thumbnail(pixels: Chip) -> bytes:
    """Return a chip as a small JPEG; of many bands it shows the first three."""
    colours = pixels[:, :, :3] if pixels.shape[2] >= 3 else pixels[:, :, 0]
    image = Image.fromarray(np.ascontiguousarray(colours))
    image.thumbnail((_SIDE_PIXELS, _SIDE_PIXELS))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=85)
    return stream.getvalue()


def own_thumbnail(content: bytes) -> bytes | None:
    """Return a small JPEG with nothing but its pixels; None if the thumbnail must be encoded anew.

    Only the segments that decode the pixels are kept. A gallery may be shown to others, so metadata (EXIF with location
    and orientation, comments, profiles) and bytes after the end are removed. Only the plainest JPEGs are taken:
    baseline, grey or YCbCr, in one scan.

    content: the bytes of a file that can be decoded.
    """
    if len(content) > MAX_OWN_BYTES or not content.startswith(_BEGIN):
        return None
    kept, bands, offset = [_BEGIN, _JFIF], 0, len(_BEGIN)
    while content[offset : offset + 1] == b"\xff":
        kind = content[offset + 1] if offset + 1 < len(content) else 0
        end = offset + 2 + int.from_bytes(content[offset + 2 : offset + 4], "big")
        segment = content[offset:end]
        if kind == _SCAN:
            last = _AFTER_SCAN.search(content, end)
            if last is None or last[0] != b"\xff\xd9" or not bands or segment[4:5] != bytes([bands]):
                return None
            return b"".join([*kept, content[offset : last.end()]])
        if kind == _FRAME:
            bands = 0 if bands else _bands(segment)
        if end < offset + 4 or not (kind in _TABLES or kind in _NOTES or (kind == _FRAME and bands)):
            return None
        if kind not in _NOTES:
            kept.append(segment)
        offset = end
    return None


def _bands(frame: bytes) -> int:
    """Return the number of bands of a plain JPEG that is small enough, 0 for any other."""
    if len(frame) < 10 or len(frame) != 10 + 3 * frame[9]:
        return 0
    height, width = int.from_bytes(frame[5:7], "big"), int.from_bytes(frame[7:9], "big")
    plain = frame[4] == 8 and 0 < height <= _OWN_SIDE_PIXELS and 0 < width <= _OWN_SIDE_PIXELS
    return frame[9] if plain and frame[10::3] in (b"\x01", b"\x01\x02\x03") else 0
