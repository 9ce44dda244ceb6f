"""How chips are embedded, whichever runtime does it: the settings, the turns, and the pass over a list of images.

torch is not needed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lookdown.chips.reader import ImageReader
from lookdown.errors import ImageError, InputError, WeightsError
from lookdown.progress import Progress

__all__ = [
    "LIMITS", "EmbeddedChips", "EmbedderSettings", "Embeddings", "HeadKind", "PoolingKind", "Turns", "check_limits",
    "check_turns", "compute", "embed_all",
]  # fmt: skip

# Wide enough for any use, and narrow enough that a stranger's file cannot claim all memory.
LIMITS = {"bands": (1, 256), "size": (8, 2048), "dimension": (1, 65_536)}

PoolingKind = Literal["average", "gem"]
HeadKind = Literal["linear", "mlp", "pca"]
Turns = Literal[1, 4]
Embeddings = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderSettings:
    """Everything but the weights that determines what an embedder returns.

    An image is a square of `size` pixels with `bands` bands. It is scaled to 0..1; then `mean` is subtracted and the
    result divided by `std`, one value a band each.
    """

    backbone: str
    bands: int
    size: int
    pooling: PoolingKind
    head: HeadKind
    dimension: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> EmbedderSettings:
        """Return settings as JSON keeps them: with lists in place of tuples."""
        return cls(**{**values, "mean": tuple(values["mean"]), "std": tuple(values["std"])})

    def __post_init__(self) -> None:
        for name in LIMITS:
            check_limits(name, getattr(self, name))
        for name, known in (("pooling", get_args(PoolingKind)), ("head", get_args(HeadKind))):
            if getattr(self, name) not in known:
                raise InputError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")
        if not len(self.mean) == len(self.std) == self.bands:
            raise InputError(f"mean and std need {self.bands} values, one a band; got {self.mean} and {self.std}")
        if not all(math.isfinite(value) for value in self.mean) or not all(0 < value < math.inf for value in self.std):
            raise InputError(f"mean must be finite and std positive, got {self.mean} and {self.std}")


def check_limits(name: str, value: object) -> None:
    """Refuse a value that is not a whole number within the limits of a setting."""
    least, most = LIMITS[name]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"{name} must be a whole number from {least} to {most}, got {value!r}")


@dataclass(frozen=True, slots=True)
class EmbeddedChips:
    """Embeddings of the chips that could be read, in the order of the list."""

    embeddings: Embeddings  # (n, dimension), or (n, width) from `embed_features`
    indices: NDArray[np.int64]  # (n,), the position of each in the list
    skipped: dict[int, str]  # the reason for each of the others


def check_turns(turns: int) -> None:
    """Refuse any number of quarter turns but one and four."""
    if turns not in get_args(Turns):
        raise InputError(f"turns must be 1 or 4, got {turns!r}")


def embed_all(
    reader: ImageReader, function: Callable[[Any], Embeddings], width: int, progress: Progress, *, skip: bool
) -> EmbeddedChips:
    """Return what a function computes for all images.

    width: numbers that the function returns for an image.
    skip: leave out images that cannot be read; without it, they are an error.
    """
    embeddings = np.empty((reader.total, width), np.float32)
    is_embedded = np.zeros(reader.total, np.bool_)
    for positions, values in compute(reader, function, progress):
        embeddings[positions], is_embedded[positions] = values, True
        if reader.skipped and not skip:
            break
    if reader.skipped and not skip:
        raise ImageError(f"{reader.summary_of_skipped}; remove them, or use embed_chips to leave them out")
    return EmbeddedChips(embeddings[is_embedded], np.flatnonzero(is_embedded), dict(reader.skipped))


def compute(
    reader: ImageReader, function: Callable[[Any], Embeddings], progress: Progress
) -> Iterator[tuple[NDArray[np.int64], Embeddings]]:
    """Yield positions, and what a function computes for the images there; NaN and infinite values are refused."""
    done = reported = 0
    for positions, images in reader:
        values = function(images)
        if not np.isfinite(values).all():
            position = int(positions[int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])])
            raise WeightsError(
                f"the network returns NaN or inf for image {position}: its weights are damaged, or training has "
                "diverged; load the last good ones"
            )
        done += len(positions)
        reported = done + len(reader.skipped)
        progress(reported, reader.total, "chips")
        yield positions, values
    if reported < reader.total:  # the last images could not be read
        progress(reader.total, reader.total, "chips")
