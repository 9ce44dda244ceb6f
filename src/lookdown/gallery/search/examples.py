"""Examples of what to find: images, embeddings or chips of the gallery, as raw embeddings."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lookdown.chips.pixels import Chip, fit_bands, read_chip, turned_squares
from lookdown.errors import GalleryError, ImageError, InputError
from lookdown.gallery.index.thumbnails import thumbnail
from lookdown.gallery.store.snapshot import Rows, Snapshot

if TYPE_CHECKING:
    from lookdown.networks.network_folder import AnyEmbedder

__all__ = [
    "TIFF",
    "Example",
    "Examples",
    "as_examples",
    "is_embedding",
    "one_or_several",
    "picture",
]

Example: TypeAlias = "str | Path | bytes | NDArray[Any]"
Embeddings = NDArray[np.float32]

TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # what one begins with


@dataclass(frozen=True, slots=True)
class Examples:
    """Raw embeddings of examples, and which of them are chips of the gallery."""

    embeddings: Embeddings  # (n, d)
    weights: NDArray[np.float64]  # (n,): embeddings of one object share its weight of 1
    rows: Rows  # of those that are in the gallery
    description: str

    @property
    def objects(self) -> int:
        """How many objects they show."""
        return round(float(self.weights.sum()))


def as_examples(
    examples: Example | Sequence[Example],
    snapshot: Snapshot,
    embedder: Callable[[], AnyEmbedder | None],
    *,
    turned: bool = False,
    files: bool = True,
) -> Examples:
    """Read one example or several, in the forms that `SearchRequest` takes.

    embedder: loads the network; called only for images, since loading takes a second.
    turned: embed an image in its four quarter turns.
    files: whether a text that is not the id of a chip is the name of a file; False for texts from clients.
    """
    several = one_or_several(examples)
    embeddings: list[Embeddings] = [np.empty((0, snapshot.dimension), np.float32)]
    names = [example for example in several if isinstance(example, str)]
    positions = snapshot.find(names)
    if not files:
        _refuse_files(several, names, positions, snapshot)
    rows = positions[positions >= 0]
    ids = set(np.array(names, object)[positions >= 0])
    chips = iter(snapshot.embeddings(rows)[:, None] if len(rows) else ())
    for example in several:
        if isinstance(example, str) and example in ids:
            embeddings.append(next(chips))
        else:
            embeddings.append(_embedded(example, snapshot, embedder, 4 if turned else 1))
    description = _described(several[0]) if len(several) == 1 else f"{len(several)} examples"
    weights = np.concatenate([np.full(len(views), 1 / max(len(views), 1)) for views in embeddings])
    return Examples(np.concatenate(embeddings), weights, rows, description)


def one_or_several(examples: Example | Sequence[Example]) -> list[Example]:
    """Return a list of examples; a text, bytes or an array is one example, though it has a length."""
    return list(examples) if isinstance(examples, list | tuple) else [examples]  # type: ignore[list-item]


def picture(example: Example, snapshot: Snapshot) -> bytes | None:
    """Return an example as a small JPEG, None where it is only an embedding."""
    if is_embedding(example):
        return None
    row = int(snapshot.find([example])[0]) if isinstance(example, str) else -1
    if row >= 0:
        return bytes(snapshot.read(np.array([row]), ["thumbnail"])[0]["thumbnail"]) or None
    return thumbnail(_pixels(example, snapshot, None))


def is_embedding(example: Example) -> bool:
    """Whether an example is an embedding, or several of one object: pixels are whole numbers."""
    return isinstance(example, np.ndarray) and (
        example.ndim == 1 or (example.ndim == 2 and np.issubdtype(example.dtype, np.floating))
    )


def _refuse_files(examples: list[Example], names: list[str], positions: Rows, snapshot: Snapshot) -> None:
    if any(isinstance(example, Path) for example in examples):
        raise InputError("an example is an id, the bytes of an image, pixels or an embedding here, not a path")
    if (positions < 0).any():
        raise GalleryError(f"{snapshot.folder} has no chip {names[int(np.argmin(positions))]!r}; see `lookdown search`")


def _embedded(example: Example, snapshot: Snapshot, load: Callable[[], AnyEmbedder | None], turns: int) -> Embeddings:
    """Return (views, d)."""
    if isinstance(example, np.ndarray) and is_embedding(example):
        return _vectors(example, snapshot.dimension)
    if isinstance(example, str) and not os.path.isfile(example):  # noqa: PTH113  # Path raises at some names
        raise GalleryError(f"{_shown(example)} is neither a chip of {snapshot.folder} nor a file; check the name")
    embedder = load()
    if embedder is None:
        raise GalleryError(
            f"{snapshot.folder} has no embedder, so it cannot be asked for images; give an embedding or an id"
        )
    pixels = _pixels(example, snapshot, embedder.settings.size)  # as chips of the gallery were read
    pixels = fit_bands(pixels, embedder.settings.bands, _described(example))
    return np.asarray(embedder.embed(turned_squares(pixels, embedder.settings.size, turns)))


def _vectors(example: NDArray[Any], dimension: int) -> Embeddings:
    rows = example.reshape(-1, example.shape[-1]) if example.size else example
    if rows.shape[-1] != dimension or not np.issubdtype(rows.dtype, np.number) or not np.isfinite(rows).all():
        raise InputError(
            f"an embedding must be {dimension} finite numbers, got {example.dtype} {example.shape}; embed with the "
            "network of this gallery"
        )
    return rows.astype(np.float32)


def _pixels(example: Example, snapshot: Snapshot, side: int | None) -> Chip:
    if isinstance(example, np.ndarray):
        if example.dtype != np.uint8 or example.ndim not in (2, 3):
            raise InputError(f"pixels must be uint8 (h, w, bands), got {example.dtype} {example.shape}")
        return example if example.ndim == 3 else example[:, :, None]
    if isinstance(example, bytes | bytearray | memoryview):
        with tempfile.TemporaryDirectory() as folder:  # every reader of ours takes a file, and checks what is in it
            file = Path(folder, "example" + _suffix(bytes(example[:4])))
            file.write_bytes(example)
            try:
                return read_chip(file, side=side)
            except ImageError as error:
                raise ImageError(str(error).replace(str(file), "the image").replace(file.name, "it")) from None
    if isinstance(example, str | Path):
        if isinstance(example, str) and not os.path.isfile(example):  # noqa: PTH113  # Path raises at some names
            raise GalleryError(f"{_shown(example)} is neither a chip of {snapshot.folder} nor a file; check the name")
        return read_chip(Path(example), side=side)
    raise InputError(
        f"an example is a file, bytes of an image, pixels, an embedding or an id, not {type(example).__name__}"
    )


def _shown(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _suffix(beginning: bytes) -> str:
    """Tell a TIFF, which another library reads, by its first bytes."""
    return ".tif" if beginning[:4] in TIFF else ".image"


def _described(example: Example) -> str:
    if isinstance(example, str | Path):
        return str(example)
    return "an embedding" if is_embedding(example) else "an image"
