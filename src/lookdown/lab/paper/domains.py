"""Domains: every chip of a data set as a network reads it, and who of them trains, asks and is searched."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.chips.manifest import Manifest
from lookdown.chips.protocols import Split, uda
from lookdown.chips.reader import ImageReader
from lookdown.errors import ImageError, InputError
from lookdown.progress import Progress, no_progress
from lookdown.training.frozen_features import frozen_features
from lookdown.training.recipe import Recipe
from lookdown.training.samples import ChipSamples, FeatureSamples, Samples

__all__ = ["Domain", "Roles", "divide", "read_domain", "validation_roles"]

Rows = NDArray[np.int64]
Protocol = Callable[..., Split]


@dataclass(frozen=True, slots=True)
class Domain:
    """Every chip of a data set, objects and background, and what a network is given of each."""

    name: str
    ids: NDArray[np.str_]
    labels: NDArray[np.str_]  # empty for background
    groups: NDArray[np.str_]
    background: NDArray[np.bool_]
    paths: tuple[Path, ...]
    samples: Callable[[Rows], Samples]  # of some rows: features of a frozen trunk, or chips
    fingerprint: str  # of all of this

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Roles:
    """Rows that train, ask and are searched."""

    train: Rows
    query: Rows
    gallery: Rows

    @property
    def target(self) -> Rows:
        """What adaptation sees: queries and gallery, background and all."""
        return np.concatenate([self.query, self.gallery])


def read_domain(folder: Path, recipe: Recipe, progress: Progress = no_progress) -> Domain:
    """Return all chips of a prepared folder as a recipe's network reads them; features are kept beside the manifest."""
    manifest = Manifest.read(folder)
    samples: Callable[[Rows], Samples]
    inputs: NDArray[Any]
    if recipe.trunk == "frozen":
        embedder = recipe.network.embedder(recipe.seed)
        views = frozen_features(embedder, manifest.paths, folder / "features", views=recipe.views, progress=progress)
        read, inputs = views.indices, views.array
        samples = lambda rows: FeatureSamples(views, rows)  # noqa: E731
    else:
        images, read = _read_chips(manifest, recipe, progress)
        inputs = images
        samples = lambda rows: ChipSamples(images[rows], recipe.augmentation)  # noqa: E731
    ids, groups = (np.array(manifest.table[name].to_pylist())[read] for name in ("id", "scene_group"))
    background = np.asarray(manifest.background)[read]
    labels = np.where(background, "", np.array([label or "" for label in manifest.labels])[read])
    if not (labels != "").any():
        raise InputError(f"{folder} has no labelled chips, so nothing can be trained or scored; prepare it with labels")
    files = manifest.paths
    paths = tuple(files[row] for row in read)
    digest = _digest(ids, labels, groups, background, inputs[:1] if recipe.trunk == "frozen" else inputs)
    return Domain(folder.name, ids, labels, groups, background, paths, samples, digest)


def divide(domain: Domain, seed: int, rows: Rows | None = None, protocol: Protocol = uda) -> Roles:
    """Divide (some) rows so that no class and no place trains and is tested; `conventional` shares the classes."""
    divided = np.arange(len(domain)) if rows is None else rows
    split = protocol(
        domain.ids[divided].tolist(),
        [label or None for label in domain.labels[divided].tolist()],
        domain.groups[divided].tolist(),
        domain.background[divided].tolist(),
        seed=seed,
    )
    roles = np.array([role or "" for role in split.roles])
    return Roles(*(divided[roles == role] for role in ("train", "query", "gallery")))


def validation_roles(domain: Domain, seed: int, protocol: Protocol = uda) -> Roles:
    """Divide what trains once more, as the protocol divides the whole: the test is not looked at.

    Background of places that train is in no role of the test, so that it can be searched here.
    """
    whole = divide(domain, seed, protocol=protocol)
    used = np.zeros(len(domain), np.bool_)
    used[whole.target] = True
    training = np.isin(domain.groups, domain.groups[whole.train])
    rows = np.union1d(whole.train, np.flatnonzero(domain.background & training & ~used))
    return divide(domain, seed, rows, protocol)


def _read_chips(manifest: Manifest, recipe: Recipe, progress: Progress) -> tuple[NDArray[np.uint8], Rows]:
    reader = ImageReader(manifest.paths, bands=recipe.network.bands, size=recipe.network.size)
    images, rows = reader.read_all(progress)
    if not len(rows):
        raise ImageError(f"none of the {len(manifest)} chips can be read, the first: {reader.skipped[0]}")
    return images, rows


def _digest(*parts: NDArray[Any]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{part.dtype}{part.shape}".encode())
        digest.update(part.tobytes())
    return digest.hexdigest()
