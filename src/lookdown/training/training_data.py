"""The chips that a run learns from, and those of the places kept back: read, numbered and divided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookdown.chips.manifest import Manifest
from lookdown.chips.reader import ImageReader
from lookdown.errors import ImageError, InputError
from lookdown.networks import Embedder
from lookdown.progress import Progress
from lookdown.training.features import frozen_features
from lookdown.training.held_out import hold_out
from lookdown.training.recipe import Recipe
from lookdown.training.samples import ChipSamples, FeatureSamples, Samples

__all__ = ["TrainingData", "TrainingSet", "read_training_data", "refuse_untrainable"]

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Chips with their classes, counted from 0."""

    samples: Samples
    labels: Rows
    ids: list[str]  # to name a chip in an error


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The chips of a manifest that could be read: to fit, and of places kept back to validate and calibrate."""

    fit: TrainingSet
    validation: TrainingSet
    classes: list[str]  # of the validation chips, by their names
    places: list[str]  # of the validation chips


def refuse_untrainable(manifest: Manifest, recipe: Recipe) -> None:
    """Say what is wrong with the training chips of a manifest, as far as that shows without reading them."""
    if not len(manifest):
        raise InputError(f"{recipe.data.manifest} has no chips to train on; prepare it with roles (--split group)")
    if any(label is None for label in manifest.labels):
        raise InputError(f"{recipe.data.manifest} has training chips without a class; give each a label")
    hold_out([str(label) for label in manifest.labels], manifest.groups, recipe.data.held_out, recipe.seed)


def read_training_data(
    recipe: Recipe, embedder: Embedder, manifest: Manifest, *, progress: Progress, note: Callable[[str], None]
) -> TrainingData:
    """Read the chips, or the features of a frozen trunk, and divide them; `note` is told of chips left out."""
    pick: Callable[[Rows], Samples]
    if recipe.trunk == "frozen":
        beside = recipe.data.manifest
        folder = (beside.parent if beside.is_file() else beside) / "features"
        features = frozen_features(embedder, manifest.paths, folder, views=recipe.views, progress=progress)
        read, skipped = features.indices, features.skipped
        pick = lambda rows: FeatureSamples(features, rows)  # noqa: E731
    else:
        images, read, skipped = _read_chips(manifest, recipe, progress)
        pick = lambda rows: ChipSamples(images[rows], recipe.augmentation)  # noqa: E731
    if skipped:
        note(f"{len(skipped)} chips could not be read and are left out, the first: {next(iter(skipped.values()))}")
    columns = manifest.labels, manifest.groups, manifest.table["id"].to_pylist()
    classes, places, ids = ([str(column[row]) for row in read] for column in columns)
    labels = np.unique(classes, return_inverse=True)[1].astype(np.int64)
    kept_back = hold_out(classes, places, recipe.data.held_out, recipe.seed)
    fit, validation = (
        TrainingSet(pick(rows), labels[rows], [ids[row] for row in rows])
        for rows in (np.flatnonzero(~kept_back), np.flatnonzero(kept_back))
    )
    rows = np.flatnonzero(kept_back)
    return TrainingData(fit, validation, [classes[row] for row in rows], [places[row] for row in rows])


def _read_chips(
    manifest: Manifest, recipe: Recipe, progress: Progress
) -> tuple[NDArray[np.uint8], Rows, dict[int, str]]:
    reader = ImageReader(manifest.paths, bands=recipe.network.bands, size=recipe.network.size)
    images, rows = reader.read_all(progress)
    if not len(rows):
        reason = next(iter(reader.skipped.values()))
        raise ImageError(f"none of the {len(manifest)} training chips can be read, the first: {reason}")
    return images, rows, dict(reader.skipped)
