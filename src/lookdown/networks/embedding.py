"""From batches of images to one array of embeddings, whatever computes them; torch is not needed for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import ImageError, InputError, WeightsError
from lookdown.networks.image_batches import ImageBatches
from lookdown.progress import Progress

__all__ = ["EmbeddedChips", "Embeddings", "Turns", "check_turns", "embed_batches", "evaluated", "told"]

Embeddings = NDArray[np.float32]
Turns = Literal[1, 4]


@dataclass(frozen=True, slots=True)
class EmbeddedChips:
    """Embeddings of the chips that could be read, in the order of the list."""

    embeddings: Embeddings  # (n, dimension), or (n, width) from `embed_features`
    indices: NDArray[np.int64]  # (n,), the place of each in the list
    skipped: dict[int, str]  # the others, with the reason


def check_turns(turns: int) -> None:
    """Refuse another number of quarter turns than one or all four."""
    if turns not in get_args(Turns):
        raise InputError(f"turns must be 1 or 4, got {turns!r}")


def embed_batches(
    batches: ImageBatches,
    function: Callable[[Any], Embeddings],
    width: int,
    progress: Progress,
    *,
    skip: bool,
) -> EmbeddedChips:
    """Return what a function makes of all images; without `skip` one that cannot be read is an error."""
    embeddings = np.empty((batches.total, width), np.float32)
    found = np.zeros(batches.total, np.bool_)
    for indices, values in evaluated(batches, function, progress):
        embeddings[indices], found[indices] = values, True
        if batches.skipped and not skip:
            break
    if batches.skipped and not skip:
        raise ImageError(f"{told(batches.skipped, batches.total)}; remove them, or use embed_chips to leave them out")
    return EmbeddedChips(embeddings[found], np.flatnonzero(found), dict(batches.skipped))


def evaluated(
    batches: ImageBatches, function: Callable[[Any], Embeddings], progress: Progress
) -> Iterator[tuple[NDArray[np.int64], Embeddings]]:
    """Yield what a function makes of each batch, with the places of its images; NaN and inf are refused."""
    done = reported = 0
    for indices, images in batches:
        values = function(images)
        if not np.isfinite(values).all():
            row = int(indices[int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])])
            raise WeightsError(
                f"the network returns NaN or inf for image {row}: its weights are damaged, or training has "
                "diverged; load the last good ones"
            )
        done += len(indices)
        reported = done + len(batches.skipped)
        progress(reported, batches.total, "chips")
        yield indices, values
    if reported < batches.total:  # the last ones could not be read
        progress(batches.total, batches.total, "chips")


def told(skipped: dict[int, str], total: int) -> str:
    """Say how many images could not be read, and why the first could not."""
    return f"{len(skipped)} of {total} images could not be read, the first: {next(iter(skipped.values()))}"
