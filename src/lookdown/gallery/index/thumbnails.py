"""Chips as small pictures, to look at."""

from __future__ import annotations

import io
import re

import numpy as np
from PIL import Image

from lookdown.chips.reading import Chip

__all__ = ["LARGEST", "own_thumbnail", "thumbnail"]

LARGEST = 8_192  # bytes of a file that is its own picture; most chips of 144 pixels take half of that

_SIDE = 96
_OWN_SIDE = 144  # of a file that is its own picture: to draw it anew takes as long as to decode it twice
_BEGIN = b"\xff\xd8"
_JFIF = b"\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"  # what each JPEG should say, and no more
_FRAME, _SCAN = 0xC0, 0xDA  # baseline
_TABLES = frozenset({0xC4, 0xDB, 0xDD})  # Huffman codes, quantisation, restarts
_NOTES = frozenset({*range(0xE0, 0xEE), 0xEF, 0xFE})  # EXIF, profiles, comments; Adobe's 0xEE changes colours
_AFTER_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7]", re.DOTALL)  # neither a byte of the scan nor a restart


def thumbnail(pixels: Chip) -> bytes:
    """Return a chip as a small JPEG; of many bands the first three are shown."""
    shown = pixels[:, :, :3] if pixels.shape[2] >= 3 else pixels[:, :, 0]
    image = Image.fromarray(np.ascontiguousarray(shown))
    image.thumbnail((_SIDE, _SIDE))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=85)
    return stream.getvalue()


def own_thumbnail(content: bytes) -> bytes | None:
    """Return a small JPEG that could be decoded without all but its pixels; None where it must be drawn anew.

    Kept is what decodes the pixels. What a camera or a person has noted in the file (EXIF with its place and its turn,
    comments, profiles) and what comes behind its end is left out: a gallery may be shown to others. Only the plainest
    kind is taken: baseline, grey or YCbCr, in one scan.
    """
    if len(content) > LARGEST or not content.startswith(_BEGIN):
        return None
    kept, bands, place = [_BEGIN, _JFIF], 0, len(_BEGIN)
    while content[place : place + 1] == b"\xff":
        kind = content[place + 1] if place + 1 < len(content) else 0
        end = place + 2 + int.from_bytes(content[place + 2 : place + 4], "big")
        segment = content[place:end]
        if kind == _SCAN:
            last = _AFTER_SCAN.search(content, end)
            if last is None or last[0] != b"\xff\xd9" or not bands or segment[4:5] != bytes([bands]):
                return None
            return b"".join([*kept, content[place : last.end()]])
        if kind == _FRAME:
            bands = 0 if bands else _bands(segment)
        if end < place + 4 or not (kind in _TABLES or kind in _NOTES or (kind == _FRAME and bands)):
            return None
        if kind not in _NOTES:
            kept.append(segment)
        place = end
    return None


def _bands(frame: bytes) -> int:
    """Return how many bands a plain picture has that is not too large, 0 for any other."""
    if len(frame) < 10 or len(frame) != 10 + 3 * frame[9]:
        return 0
    height, width = int.from_bytes(frame[5:7], "big"), int.from_bytes(frame[7:9], "big")
    plain = frame[4] == 8 and 0 < height <= _OWN_SIDE and 0 < width <= _OWN_SIDE
    return frame[9] if plain and frame[10::3] in (b"\x01", b"\x01\x02\x03") else 0
