"""Features of a frozen trunk: each chip is embedded once in each view and kept on disk; heads then train in seconds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookdown.chips.reader import ImageReader
from lookdown.errors import ImageError, InputError, WeightsError
from lookdown.networks.embedder import Embedder
from lookdown.progress import Progress, no_progress
from lookdown.training.feature_file import FeatureFile
from lookdown.training.recipe import VIEWS

__all__ = ["FrozenFeatures", "frozen_features", "turned"]

_BLOCK_CHIPS = 256  # between two points of resumption, rounded up to whole batches


@dataclass(frozen=True, slots=True)
class FrozenFeatures:
    """Features of the chips that could be read, in the order of the list."""

    array: NDArray[np.float32]  # (views, n, width), mapped from the disk and not to be written
    indices: NDArray[np.int64]  # (n,), the position of each in the list
    skipped: dict[int, str]  # the others, with the reason


def frozen_features(
    embedder: Embedder,
    paths: Sequence[str | Path],
    folder: str | Path,
    *,
    views: int = 4,
    batch_size: int = 64,
    progress: Progress = no_progress,
) -> FrozenFeatures:
    """Return the input of the head for each view of each chip, from the disk if it was computed before.

    Features are kept below `folder`, under a digest of the trunk, the bytes of the chips and their order, the views,
    the batches and the versions of packages; where one of these differs they are computed anew, and nothing is ever
    removed. Interrupted work is resumed at the last whole block, with the same batches and so with the same bits; only
    another number of threads may change the last of them. Chips are identified by their bytes, since files of the same
    size and time can differ, and the same chips can be moved: reading takes a thousandth of the time of embedding.
    Several processes may call this at once: one works, and the others wait for it.
    """
    files = _as_files(paths)
    if views not in VIEWS or batch_size < 1:
        raise InputError(f"views must be 1, 4 or 8 and batch_size at least 1, got {views!r} and {batch_size!r}")
    digests = [_digest(file) for file in files]
    key = _key(embedder, files, digests, views, batch_size)
    stored = FeatureFile(
        Path(folder) / f"features-{key[:16]}", key, views=views, width=embedder.trunk.width, chips=len(files)
    )
    with stored.locked(), embedder.evaluating():
        while (first := stored.done) < len(files):
            block = range(first, min(first + -(-_BLOCK_CHIPS // batch_size) * batch_size, len(files)))
            rows, problems = _embed_block(embedder, files, block, views, batch_size, progress)
            for chip in block:
                if _digest(files[chip]) != digests[chip]:
                    raise InputError(f"{files[chip]} changed while it was read; start again when the data are complete")
            stored.append(rows, problems)
        skipped = {
            chip: f"{files[chip]}: {reason}" for block in stored.blocks for chip, reason in block.problems.items()
        }
        if len(skipped) == len(files):
            raise ImageError(f"none of the {len(files)} chips can be read, the first: {skipped[0]}")
        array = stored.features()
    progress(len(files), len(files), "chips")
    good = np.ones(len(files), np.bool_)
    good[list(skipped)] = False
    return FrozenFeatures(array, np.flatnonzero(good), skipped)


def turned(images: Tensor, views: int) -> Iterator[Tensor]:
    """Yield the views of square images, (n, bands, size, size): quarter turns, then those of the mirror image."""
    for view in range(views):
        yield torch.rot90(images.flip(3) if view >= 4 else images, view % 4, (2, 3))


def _embed_block(
    embedder: Embedder, files: list[Path], block: range, views: int, batch_size: int, progress: Progress
) -> tuple[NDArray[np.float32], dict[int, str]]:
    """Return the features of a block, (chips without a problem, views, width), and the problems by chip."""
    chips = files[block.start : block.stop]
    reader = ImageReader(chips, bands=embedder.settings.bands, size=embedder.settings.size, batch_size=batch_size)
    parts = [np.empty((0, views, embedder.trunk.width), np.float32)]
    for positions, images in reader:
        with torch.inference_mode():
            seen = turned(torch.tensor(images), views)
            values = torch.stack([embedder.features(view).float() for view in seen], dim=1)
        finite = values.isfinite().all(dim=2).all(dim=1)
        if not finite.all():
            damaged = chips[int(positions[int(finite.logical_not().nonzero()[0])])]
            raise WeightsError(
                f"the network returns NaN or inf for {damaged}: its weights are damaged, or training has diverged; "
                "load the last good ones"
            )
        parts.append(values.cpu().numpy())
        progress(block.start + sum(map(len, parts)) + len(reader.skipped), len(files), "chips")
    problems = {  # without the path, since the same chips may be elsewhere the next time
        block[chip]: reason.removeprefix(f"{chips[chip]}: ") for chip, reason in sorted(reader.skipped.items())
    }
    return np.concatenate(parts), problems


def _as_files(paths: Sequence[str | Path]) -> list[Path]:
    if isinstance(paths, str | Path) or not all(isinstance(path, str | Path) for path in paths):
        raise InputError("paths must be a list of files; for a manifest, give `manifest.paths`")
    if not len(paths):
        raise InputError("there are no chips; give at least one")
    return [Path(path) for path in paths]


def _key(embedder: Embedder, files: list[Path], digests: list[str], views: int, batch_size: int) -> str:
    work = {
        "trunk": embedder.trunk_fingerprint,  # size, bands and normalisation included
        "device": embedder.mean.device.type,
        "made with": {package: version(package) for package in ("lookdown", "pillow", "timm", "torch")},
        "views": views,
        "batch size": batch_size,
        "chips": [(file.suffix.lower(), digest) for file, digest in zip(files, digests, strict=True)],
    }
    return hashlib.sha256(json.dumps(work).encode()).hexdigest()


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else "no file"
    except OSError:
        return "not readable"
