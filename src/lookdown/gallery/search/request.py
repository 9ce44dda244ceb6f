"""The request of a search, and its examples as raw embeddings.

The names, defaults and meaning of a request are the same in Python, on the command line and over HTTP.
"""

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
from lookdown.gallery.search.filters import Where
from lookdown.gallery.store.snapshot import Embeddings, Rows, Snapshot
from lookdown.metrics import Metric

if TYPE_CHECKING:
    from lookdown.networks.network_folder import AnyEmbedder

__all__ = ["TIFF", "Example", "Examples", "SearchRequest", "as_examples", "picture"]

Example: TypeAlias = "str | Path | bytes | NDArray[Any]"

TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # what one begins with, which another library reads
_DEFAULT_HITS = 50  # without k and without a rate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchRequest:
    """What to find in a gallery: the `k` best chips, or all that a false-alarm rate accepts.

    examples: what to find. Each is an image (a path, the bytes of a file, or uint8 pixels (h, w, bands)), an embedding
        (d,), several embeddings of one object (views, d), or the id of a chip in the gallery. A score is the mean over
        the examples. Chips that are examples are not among the hits.
    kind: instead of examples, a kind that the metric knows by name, as one does that was taught. A score is that
        against an example which is surely of this kind.
    counter_examples: what the hits should not be like, in the same forms.
    k: how many hits; 50 if there is no `false_alarm_rate`.
    false_alarm_rate: instead of `k`, accept what a chip of another kind reaches this often, such as 1e-3.
    where: which chips to search.
    metric: the name of a metric of the gallery, `cosine`, or (in Python) a metric. None is the one in use.
    prior: the share of the archive that you assume to be of this kind; posteriors depend on it.
    turned: embed images in four quarter turns, so that their heading does not matter. A score is the mean over the
        turns, which a chip of another kind reaches less often than the rate says.
    overlap: windows of a scene that share more than this part of the smaller one are one hit; 1 keeps every window.
    expand: how many of the best hits join the examples for a second search.
    rerank: order the hits by their k-reciprocal neighbours; their scores stay.

    >>> from lookdown import SearchRequest, Where
    >>> request = SearchRequest(examples="tanker-0003", false_alarm_rate=1e-3, where=Where(sensor="Sentinel-2"))
    >>> request.examples, request.prior, request.turned
    (['tanker-0003'], 0.01, False)
    """

    examples: Example | Sequence[Example] = ()
    kind: str | None = None
    counter_examples: Example | Sequence[Example] = ()
    k: int | None = None
    false_alarm_rate: float | None = None
    where: Where | None = None
    metric: str | Metric | None = None
    prior: float = 0.01
    turned: bool = False
    overlap: float = 0.2
    expand: int = 0
    rerank: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "examples", _one_or_several(self.examples))
        object.__setattr__(self, "counter_examples", _one_or_several(self.counter_examples))
        if self.kind is None and not self.examples:  # a list now
            raise InputError("there is nothing to search for; give at least one example, or a `kind`")
        self._check_kind()
        if self.k is not None and self.false_alarm_rate is not None:
            raise InputError("give `k` or `false_alarm_rate`, not both: one says how many hits, the other how good")
        if self.k is not None and not (_is_whole(self.k) and self.k >= 1):
            raise InputError(f"`k` must be a whole number of at least 1, got {self.k!r}")
        for name, value in (("false_alarm_rate", self.false_alarm_rate), ("prior", self.prior)):
            if value is not None and not (_is_number(value) and 0 < value < 1):
                raise InputError(f"`{name}` must be between 0 and 1, both excluded; got {value!r}")
        if not (_is_number(self.overlap) and 0 <= self.overlap <= 1):
            raise InputError(f"`overlap` must be a share from 0 to 1, where 1 keeps every window; got {self.overlap!r}")
        if not (_is_whole(self.expand) and self.expand >= 0):
            raise InputError(f"`expand` must be a whole number of at least 0, got {self.expand!r}")

    def _check_kind(self) -> None:
        if self.kind is None:
            return
        if not isinstance(self.kind, str):
            raise InputError(f"`kind` must be the name of a kind, got {self.kind!r}")
        if self.examples:
            raise InputError("give `examples` or `kind`, not both: the kind takes the place of an example")
        if self.expand:
            raise InputError("`expand` lets hits join the examples, and a `kind` has none; omit one of the two")

    @property
    def hits(self) -> int | None:
        """How many hits to return; None for all that the rate accepts."""
        return _DEFAULT_HITS if self.k is None and self.false_alarm_rate is None else self.k


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
    several = _one_or_several(examples)
    embeddings: list[Embeddings] = [np.empty((0, snapshot.dimension), np.float32)]
    names = [example for example in several if isinstance(example, str)]
    positions = snapshot.find(names)
    if not files and any(isinstance(example, Path) for example in several):
        raise InputError("an example is an id, the bytes of an image, pixels or an embedding here, not a path")
    if not files and (positions < 0).any():
        raise GalleryError(f"{snapshot.folder} has no chip {names[int(np.argmin(positions))]!r}; see `lookdown search`")
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


def _one_or_several(examples: Example | Sequence[Example]) -> list[Example]:
    """Return a list of examples; a text, bytes or an array is one example, though it has a length."""
    return list(examples) if isinstance(examples, list | tuple) else [examples]  # type: ignore[list-item]


def picture(example: Example, snapshot: Snapshot) -> bytes | None:
    """Return an example as a small JPEG, None where it is only an embedding."""
    if _is_embedding(example):
        return None
    row = int(snapshot.find([example])[0]) if isinstance(example, str) else -1
    if row >= 0:
        return bytes(snapshot.read(np.array([row]), ["thumbnail"])[0]["thumbnail"]) or None
    _refuse_unknown(example, snapshot)
    return thumbnail(_pixels(example))


def _is_embedding(example: Example) -> bool:
    """Whether an example is an embedding, or several of one object: pixels are whole numbers."""
    return isinstance(example, np.ndarray) and (
        example.ndim == 1 or (example.ndim == 2 and np.issubdtype(example.dtype, np.floating))
    )


def _refuse_unknown(example: Example, snapshot: Snapshot) -> None:
    if isinstance(example, str) and not os.path.isfile(example):  # noqa: PTH113  # Path raises at some names
        name = example.encode("utf-8", "backslashreplace").decode()
        raise GalleryError(f"{name} is neither a chip of {snapshot.folder} nor a file; check the name")


def _embedded(example: Example, snapshot: Snapshot, load: Callable[[], AnyEmbedder | None], turns: int) -> Embeddings:
    """Return (views, d)."""
    if isinstance(example, np.ndarray) and _is_embedding(example):
        return _vectors(example, snapshot.dimension)
    _refuse_unknown(example, snapshot)  # before the network is loaded
    embedder = load()
    if embedder is None:
        raise GalleryError(
            f"{snapshot.folder} has no embedder, so it cannot be asked for images; give an embedding or an id"
        )
    pixels = _pixels(example, embedder.settings.size)  # as chips of the gallery were read
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


def _pixels(example: Example, side: int | None = None) -> Chip:
    if isinstance(example, np.ndarray):
        if example.dtype != np.uint8 or example.ndim not in (2, 3):
            raise InputError(f"pixels must be uint8 (h, w, bands), got {example.dtype} {example.shape}")
        return example if example.ndim == 3 else example[:, :, None]
    if isinstance(example, bytes | bytearray | memoryview):
        with tempfile.TemporaryDirectory() as folder:  # every reader of ours takes a file, and checks what is in it
            file = Path(folder, "example.tif" if bytes(example[:4]) in TIFF else "example.image")
            file.write_bytes(example)
            try:
                return read_chip(file, side=side)
            except ImageError as error:
                raise ImageError(str(error).replace(str(file), "the image").replace(file.name, "it")) from None
    if isinstance(example, str | Path):
        return read_chip(Path(example), side=side)
    raise InputError(
        f"an example is a file, bytes of an image, pixels, an embedding or an id, not {type(example).__name__}"
    )


def _described(example: Example) -> str:
    if isinstance(example, str | Path):
        return str(example)
    return "an embedding" if _is_embedding(example) else "an image"


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
