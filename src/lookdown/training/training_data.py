"""The chips that a run learns from, and those of whole places that are held out to validate and calibrate on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookdown.chips.manifest import Manifest
from lookdown.chips.reader import ImageReader
from lookdown.errors import ImageError, InputError
from lookdown.networks import Embedder
from lookdown.progress import Progress
from lookdown.training.frozen_features import frozen_features
from lookdown.training.recipe import Recipe
from lookdown.training.samples import ChipSamples, FeatureSamples, Samples

__all__ = ["TrainingData", "TrainingSet", "hold_out", "read_training_data", "refuse_untrainable"]

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Chips with their classes, counted from 0."""

    samples: Samples
    labels: Rows
    ids: list[str]  # to name a chip in an error


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The chips of a manifest that could be read: those to train on, and those of places that are held out."""

    fit: TrainingSet
    validation: TrainingSet
    classes: list[str]  # of the validation chips, by their names
    groups: list[str]  # scene groups of the validation chips
    kinds: NDArray[np.str_]  # the names of all classes, by their numbers


def refuse_untrainable(manifest: Manifest, recipe: Recipe) -> None:
    """Raise InputError if the training chips of a manifest cannot be used, before any of them is read."""
    if not len(manifest):
        raise InputError(f"{recipe.data.manifest} has no chips to train on; prepare it with roles (`split='group'`)")
    if any(label is None for label in manifest.labels):
        raise InputError(f"{recipe.data.manifest} has training chips without a class; give each a label")
    hold_out([str(label) for label in manifest.labels], manifest.groups, recipe.data.held_out, recipe.seed)


def read_training_data(
    recipe: Recipe, embedder: Embedder, manifest: Manifest, *, progress: Progress, note: Callable[[str], None]
) -> TrainingData:
    """Read the chips, or the features of a frozen trunk, and divide them; `note` gets a sentence on chips left out."""
    pick: Callable[[Rows], Samples]
    if recipe.trunk == "frozen":
        source = recipe.data.manifest
        folder = (source.parent if source.is_file() else source) / "features"
        features = frozen_features(embedder, manifest.paths, folder, views=recipe.views, progress=progress)
        read, skipped = features.indices, features.skipped
        pick = lambda rows: FeatureSamples(features, rows)  # noqa: E731
    else:
        reader = ImageReader(manifest.paths, bands=recipe.network.bands, size=recipe.network.size)
        images, read = reader.read_all(progress)
        skipped = dict(reader.skipped)
        if not len(read):
            reason = next(iter(skipped.values()))
            raise ImageError(f"none of the {len(manifest)} training chips can be read, the first: {reason}")
        pick = lambda rows: ChipSamples(images[rows], recipe.augmentation)  # noqa: E731
    if skipped:
        note(f"{len(skipped)} chips could not be read and are left out, the first: {next(iter(skipped.values()))}")
    columns = manifest.labels, manifest.groups, manifest.table["id"].to_pylist()
    classes, groups, ids = ([str(column[row]) for row in read] for column in columns)
    kinds, numbers = np.unique(classes, return_inverse=True)
    labels = numbers.astype(np.int64)
    held_out = hold_out(classes, groups, recipe.data.held_out, recipe.seed)
    trained_on, validated_on = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    fit, validation = (
        TrainingSet(pick(rows), labels[rows], [ids[row] for row in rows]) for rows in (trained_on, validated_on)
    )
    names, scenes = ([column[row] for row in validated_on] for column in (classes, groups))
    return TrainingData(fit, validation, names, scenes, kinds)


def hold_out(labels: Sequence[str], groups: Sequence[str], share: float, seed: int) -> Mask:
    """Return which chips are held out: about `share` of them, in whole groups, never a part of one.

    Each class keeps at least two chips to train on. Groups are taken in a seeded order, so the same chips are held out
    whatever else changes. The chips that are held out have pairs of the same and of different classes.
    """
    if len(set(labels)) < 2:
        raise InputError(
            f"all {len(labels)} training chips are of one class, {labels[0]}; a metric needs two or more to tell apart"
        )
    members: dict[str, list[int]] = defaultdict(list)
    for row, group in enumerate(groups):
        members[group].append(row)
    left = Counter(labels)
    held_out = np.zeros(len(labels), np.bool_)
    names = sorted(members)
    for number in np.random.default_rng([seed, len(names)]).permutation(len(names)).tolist():
        rows = members[names[number]]
        taken = Counter(labels[row] for row in rows)
        if held_out.sum() + len(rows) > share * len(labels) or any(left[name] - taken[name] < 2 for name in taken):
            continue
        left.subtract(taken)
        held_out[rows] = True
    counts = Counter(labels[row] for row in np.flatnonzero(held_out).tolist())
    if len(counts) < 2 or max(counts.values()) < 2:
        raise InputError(
            f"{100 * share:g} % of {len(names)} training places cannot be held out with two classes in them, one of "
            "which has two chips; prepare data from more places, or raise data.held_out"
        )
    return held_out
