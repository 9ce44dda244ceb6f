"""The embeddings of a list of images, whichever runtime computes them; torch is not needed here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lookdown.chips.reader import ImageReader
from lookdown.errors import ImageError, InputError, WeightsError
from lookdown.progress import Progress

__all__ = ["EmbeddedChips", "Embeddings", "Turns", "check_turns", "compute", "embed_all", "summary_of_skipped"]

Embeddings = NDArray[np.float32]
Turns = Literal[1, 4]


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
        raise ImageError(f"{summary_of_skipped(reader)}; remove them, or use embed_chips to leave them out")
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


def summary_of_skipped(reader: ImageReader) -> str:
    """Return how many images could not be read, and the reason for the first."""
    first = next(iter(reader.skipped.values()))
    return f"{len(reader.skipped)} of {reader.total} images could not be read, the first: {first}"
