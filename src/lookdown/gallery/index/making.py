"""A gallery for a run, or for a pretrained network whose projection is fitted to the archive itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookdown.chips.manifest import Manifest
from lookdown.chips.reading import letterbox
from lookdown.errors import GalleryError, ImageError, InputError, OutputError
from lookdown.gallery.gallery import Gallery
from lookdown.gallery.index.intake import Cutting, Part, parts_of
from lookdown.gallery.scale.bucket import BucketLocation, table_address
from lookdown.gallery.search.examples import fitting
from lookdown.gallery.store.gallery_folder import GalleryFolder
from lookdown.metrics import load_metric
from lookdown.networks.exports import copy_network, fastest, fingerprint_at, list_exports
from lookdown.progress import Progress, no_progress

__all__ = ["gallery_of_pretrained", "gallery_of_run", "is_run"]

_SAMPLE = 1_024  # chips that a projection is fitted to
_OF_A_SCENE = 128  # of these, from one scene at most


def is_run(path: Path) -> bool:
    """Whether a folder is one of `lookdown train`."""
    return (path / "run.json").is_file()


def gallery_of_run(path: Path, run: Path, *, table: str | None = None) -> Gallery:
    """Open the gallery at `path`, or make it with the network, in its fastest form, and the metric of a finished run.

    Exports that the run has got meanwhile are taken over. A table at an address is one that the gallery has there.
    """
    if not is_run(run):
        raise OutputError(f"{run} is no run of `lookdown train`; name the folder of a run")
    if not (run / "metric" / "metric.json").is_file():  # written last
        raise GalleryError(f"{run} is not finished; go on with `lookdown train --resume {run}`")
    if not (path / "gallery.json").exists():
        Gallery.create(path, fastest(run), load_metric(run / "metric"), about=f"trained in {run.name}", table=table)
    gallery = Gallery.open(path, table=table)
    known = {fingerprint_at(run), *(about.fingerprint for about in list_exports(run).values())}
    if gallery.stats().embedder not in known:
        raise GalleryError(
            f"{path} was made with another embedder than that of {run}, and embeddings of two networks cannot be "
            "compared; name another folder for a new gallery"
        )
    with gallery.writing():
        copy_network(run, path)
    return gallery


def gallery_of_pretrained(
    path: Path,
    backbone: str,
    images: Sequence[str | Path | Manifest],
    cutting: Cutting,
    *,
    dimension: int = 64,
    progress: Progress = no_progress,
    table: str | None = None,
) -> Gallery:
    """Open the gallery at `path`, or make it with a pretrained trunk and a projection fitted to some of the images."""
    from lookdown.networks.backbones import architecture, resolve_name  # torch: a run may have an export without it
    from lookdown.networks.embedder import Embedder

    if (path / "gallery.json").exists():
        gallery = Gallery.open(path, table=table)
        made_with = gallery.embedder.settings.backbone if gallery.embedder else None
        if made_with is None or architecture(made_with) != architecture(resolve_name(backbone)):
            raise GalleryError(
                f"{path} was made with the embedder {made_with}, not {backbone}; leave --embedder out to add to it, or "
                "name another folder"
            )
        return gallery
    GalleryFolder.refuse_foreign(path)  # before the work
    if table is not None:
        BucketLocation(path, table_address(table), "").check_reachable()
    sample = _sampled(parts_of(images, cutting), size=112)
    if len(sample) < 3:
        raise InputError(f"{len(sample)} images that can be read are too few to begin with; give at least three")
    embedder = Embedder.pretrained(backbone, sample, dimension=min(dimension, len(sample) - 1), progress=progress)
    return Gallery.create(path, embedder, about=f"the cosine, on {backbone} as it came", table=table)


def _sampled(parts: Iterable[Part], size: int) -> NDArray[np.uint8]:
    """Return up to `_SAMPLE` different chips as (n, 3, size, size), not too many of them from one scene."""
    squares: dict[bytes, NDArray[np.uint8]] = {}
    listed: list[tuple[Part, range]] = []
    met = 0
    for part in parts:
        step = math.ceil(len(part.rows) / _OF_A_SCENE) if part.of_one_scene else 1
        listed.append((part, range(0, len(part.rows), max(1, step))))
        met += len(listed[-1][1])
        if met >= 4 * _SAMPLE:
            break
    for part, places in listed:
        for place, pixels in part.pixels(places[:: math.ceil(met / _SAMPLE)], size):
            if isinstance(pixels, ImageError):
                continue
            try:
                square = letterbox(fitting(pixels, 3, part.rows[place]["id"]), size)
                squares[square.tobytes()] = square  # what is there twice, black margins say, spans no direction
            except ImageError:
                continue  # said when it is to be added
    return np.stack([*squares.values()]).transpose(0, 3, 1, 2) if squares else np.empty((0, 3, size, size), np.uint8)
