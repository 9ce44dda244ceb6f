"""Stored thumbnails, drawn anew before they are sent: what lies in a gallery came from strangers too."""

from __future__ import annotations

import io

from PIL import Image

from lookdown.gallery.store.snapshot import Rows, Snapshot

__all__ = ["redrawn", "stored"]

_SIDE = 256  # pixels: thumbnails of ours have up to 144


def stored(snapshot: Snapshot, row: Rows) -> bytes | None:
    """Return the picture of a chip, None where there is none."""
    return redrawn(bytes(snapshot.read(row, ["thumbnail"])[0]["thumbnail"]))


def redrawn(content: bytes) -> bytes | None:
    """Return the pixels of a JPEG as a JPEG of our own, without anything else it may hold; None where it is none."""
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG",)) as image:
            if image.width * image.height > _SIDE * _SIDE:
                return None
            plain = image.convert("L" if image.mode == "L" else "RGB")
    except Exception:  # decoders meet broken files with a dozen kinds of error
        return None
    stream = io.BytesIO()
    Image.frombytes(plain.mode, plain.size, plain.tobytes()).save(stream, "JPEG", quality=88)
    return stream.getvalue()
