"""New galleries: for a run, or for a pretrained network whose projection is fitted to the archive."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookdown.chips.pixels import fit_bands, letterbox
from lookdown.errors import GalleryError, ImageError, InputError, OutputError
from lookdown.gallery.gallery import Gallery
from lookdown.gallery.index.sources import ChipGroup, Cutting, Images, chip_groups
from lookdown.gallery.scale.bucket import BucketLocation, table_address
from lookdown.gallery.store.gallery_folder import GalleryFolder
from lookdown.metrics import KindLikelihoodRatio, load_metric
from lookdown.networks.network_folder import copy_network, fastest, fingerprint_at, list_exports
from lookdown.progress import Progress, no_progress

__all__ = ["gallery_of_pretrained", "gallery_of_run", "is_run"]

_SAMPLE_CHIPS = 1_024  # chips that a projection is fitted to
_SCENE_CHIPS = 128  # chips from one scene at most


def is_run(path: Path) -> bool:
    """Whether `lookdown train` wrote a folder."""
    return (path / "run.json").is_file()


def gallery_of_run(path: Path, run: Path, *, table: str | None = None) -> Gallery:
    """Open the gallery at `path`, or create it with the fastest network and the metric of a finished run.

    Exports that the run has gained since are copied.

    table: the address of the gallery's table, if it lies in object storage.
    """
    if not is_run(run):
        raise OutputError(f"{run} is not a run of `lookdown train`; name the folder of a run")
    if not (run / "metric" / "metric.json").is_file():  # written last
        raise GalleryError(f"{run} is not finished; continue with `lookdown train --resume {run}`")
    if not (path / "gallery.json").exists():
        metric, kinds = load_metric(run / "metric"), _kinds_in_use(run)
        Gallery.create(path, fastest(run), metric, about=f"trained in {run.name}", kinds=kinds, table=table)
    gallery = Gallery.open(path, table=table)
    fingerprints = {fingerprint_at(run), *(export.fingerprint for export in list_exports(run).values())}
    if gallery.stats().embedder not in fingerprints:
        raise GalleryError(
            f"{path} was made with another embedder than that of {run}, and embeddings of two networks cannot be "
            "compared; name another folder for a new gallery"
        )
    with gallery.writing():
        copy_network(run, path)
    return gallery


def _kinds_in_use(run: Path) -> KindLikelihoodRatio | None:
    """Return the ratio of kinds of a run if it found the held-out chips better than the ratio of differences."""
    if (run / "metric_in_use").read_text().strip() != "kinds":
        return None
    kinds = load_metric(run / "kinds")
    assert isinstance(kinds, KindLikelihoodRatio)
    return kinds


def gallery_of_pretrained(
    path: Path,
    backbone: str,
    images: Images,
    cutting: Cutting,
    *,
    dimension: int = 64,
    progress: Progress = no_progress,
    table: str | None = None,
) -> Gallery:
    """Open the gallery at `path`, or create it with a pretrained trunk and a PCA fitted to a sample of the images."""
    from lookdown.networks.backbones import architecture, resolve_name  # torch: a run may have an export without it
    from lookdown.networks.embedder import Embedder

    if (path / "gallery.json").exists():
        gallery = Gallery.open(path, table=table)
        made_with = gallery.embedder.settings.backbone if gallery.embedder else None
        if made_with is None or architecture(made_with) != architecture(resolve_name(backbone)):
            raise GalleryError(
                f"{path} was made with the embedder {made_with}, not {backbone}; omit `embedder` to add to it, or "
                "name another folder"
            )
        return gallery
    GalleryFolder.refuse_foreign(path)  # before the work
    if table is not None:
        BucketLocation(path, table_address(table), "").check_reachable()
    sample = _sampled(chip_groups(images, cutting), size=112)
    if len(sample) < 3:
        raise InputError(f"{len(sample)} images that can be read are too few to begin with; give at least three")
    embedder = Embedder.pretrained(backbone, sample, dimension=min(dimension, len(sample) - 1), progress=progress)
    return Gallery.create(path, embedder, about=f"the cosine, on {backbone} as it came", table=table)


def _sampled(groups: Iterable[ChipGroup], size: int) -> NDArray[np.uint8]:
    """Return up to `_SAMPLE_CHIPS` different chips as (n, 3, size, size), at most `_SCENE_CHIPS` from one scene."""
    squares: dict[bytes, NDArray[np.uint8]] = {}
    listed: list[tuple[ChipGroup, range]] = []
    total = 0
    for group in groups:
        step = math.ceil(len(group.rows) / _SCENE_CHIPS) if group.of_one_scene else 1
        listed.append((group, range(0, len(group.rows), max(1, step))))
        total += len(listed[-1][1])
        if total >= 4 * _SAMPLE_CHIPS:
            break
    for group, positions in listed:
        for position, pixels in group.pixels(positions[:: math.ceil(total / _SAMPLE_CHIPS)], size):
            if not isinstance(pixels, ImageError):
                with suppress(ImageError):  # reported when the chip is added
                    square = letterbox(fit_bands(pixels, 3, group.rows[position]["id"]), size)
                    squares[square.tobytes()] = square  # copies, such as black margins, add no direction
    return np.stack([*squares.values()]).transpose(0, 3, 1, 2) if squares else np.empty((0, 3, size, size), np.uint8)
