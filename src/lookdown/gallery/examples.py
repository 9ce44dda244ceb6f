"""What is searched for: images, embeddings or chips of the gallery, as raw embeddings."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lookdown.chips.reading import Chip, letterbox, read_chip
from lookdown.errors import GalleryError, ImageError, InputError
from lookdown.gallery.columns import Rows
from lookdown.gallery.records import Snapshot
from lookdown.gallery.thumbnails import thumbnail

if TYPE_CHECKING:
    from lookdown.networks import Embedder

__all__ = ["Example", "Examples", "as_examples", "fitting", "one_or_several", "picture"]

Example: TypeAlias = "str | Path | bytes | NDArray[Any]"
Embeddings = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Examples:
    """Raw embeddings of what is to be found, and which of them are chips of the gallery itself."""

    embeddings: Embeddings  # (n, d)
    rows: Rows  # of those that are in the gallery
    told: str  # in words


def as_examples(given: Example | Sequence[Example], snapshot: Snapshot, embedder: Embedder | None) -> Examples:
    """Read one example or several.

    Each is an image (a file, the bytes of one, or pixels as uint8 (h, w, bands)), an embedding (d,), or the id of a
    chip in the gallery. A text is an id if there is such a chip, else the name of a file.
    """
    several = one_or_several(given)
    embeddings: list[Embeddings] = []
    rows: list[int] = []
    for example in several:
        row = int(snapshot.find([example])[0]) if isinstance(example, str) else -1
        if row >= 0:
            rows.append(row)
            embeddings.append(snapshot.embeddings(np.array([row]))[0])
        else:
            embeddings.append(_embedded(example, snapshot, embedder))
    told = _told(several[0]) if len(several) == 1 else f"{len(several)} examples"
    width = snapshot.dimension
    return Examples(np.array(embeddings, np.float32).reshape(-1, width), np.array(rows, np.intp), told)


def one_or_several(given: Example | Sequence[Example]) -> list[Example]:
    """Return a list of examples: a text, bytes or an array is one, though it has a length."""
    return list(given) if isinstance(given, list | tuple) else [given]  # type: ignore[list-item]


def picture(example: Example, snapshot: Snapshot) -> bytes | None:
    """Return an example as a small JPEG, None where it is only an embedding."""
    if isinstance(example, np.ndarray) and example.ndim == 1:
        return None
    row = int(snapshot.find([example])[0]) if isinstance(example, str) else -1
    if row >= 0:
        return bytes(snapshot.read(np.array([row]), ["thumbnail"])[0]["thumbnail"]) or None
    return thumbnail(_pixels(example, snapshot))


def fitting(pixels: Chip, bands: int, name: str) -> Chip:
    """Return pixels with the bands that a network takes; grey becomes that many equal bands."""
    if pixels.shape[2] != bands:
        if pixels.shape[2] in (1, 3) and (pixels == pixels[:, :, :1]).all():  # files with one band are read as three
            return np.repeat(pixels[:, :, :1], bands, axis=2)
        raise ImageError(
            f"{name}: has {pixels.shape[2]} bands, and this embedder takes {bands}; write out the right ones, with "
            "gdal_translate -b, say"
        )
    return pixels


def _embedded(example: Example, snapshot: Snapshot, embedder: Embedder | None) -> Embeddings:
    if isinstance(example, np.ndarray) and example.ndim == 1:
        return _vector(example, snapshot.dimension)
    if isinstance(example, str) and not os.path.isfile(example):  # noqa: PTH113  # Path raises at some names
        raise GalleryError(f"{_shown(example)} is neither a chip of {snapshot.folder} nor a file; check the name")
    if embedder is None:
        raise GalleryError(
            f"{snapshot.folder} has no embedder, so it cannot be asked for images; give an embedding or an id"
        )
    pixels = fitting(_pixels(example, snapshot), embedder.settings.bands, _told(example))
    square = letterbox(pixels, embedder.settings.size)
    return np.asarray(embedder.embed(square.transpose(2, 0, 1)[None])[0])


def _vector(example: NDArray[Any], dimension: int) -> Embeddings:
    if example.shape != (dimension,) or not np.issubdtype(example.dtype, np.number) or not np.isfinite(example).all():
        raise InputError(
            f"an embedding must be {dimension} finite numbers, got {example.dtype} {example.shape}; embed with the "
            "network of this gallery"
        )
    return example.astype(np.float32)


def _pixels(example: Example, snapshot: Snapshot) -> Chip:
    if isinstance(example, np.ndarray):
        if example.dtype != np.uint8 or example.ndim not in (2, 3):
            raise InputError(f"pixels must be uint8 (h, w, bands), got {example.dtype} {example.shape}")
        return example if example.ndim == 3 else example[:, :, None]
    if isinstance(example, bytes | bytearray | memoryview):
        with tempfile.TemporaryDirectory() as folder:  # every reader of ours takes a file, and checks what is in it
            file = Path(folder, "example" + _suffix(bytes(example[:4])))
            file.write_bytes(example)
            try:
                return read_chip(file)
            except ImageError as error:
                raise ImageError(str(error).replace(str(file), "the image").replace(file.name, "it")) from None
    if isinstance(example, str | Path):
        if isinstance(example, str) and not os.path.isfile(example):  # noqa: PTH113  # Path raises at some names
            raise GalleryError(f"{_shown(example)} is neither a chip of {snapshot.folder} nor a file; check the name")
        return read_chip(Path(example))
    raise InputError(
        f"an example is a file, bytes of an image, pixels, an embedding or an id, not {type(example).__name__}"
    )


def _shown(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _suffix(beginning: bytes) -> str:
    """Tell a TIFF, which another library reads, by its first bytes."""
    return ".tif" if beginning[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+") else ".image"


def _told(example: Example) -> str:
    if isinstance(example, str | Path):
        return str(example)
    return "an embedding" if isinstance(example, np.ndarray) and example.ndim == 1 else "an image"
