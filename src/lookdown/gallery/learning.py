"""New metrics for a gallery: adapted to its embeddings, taught by labels, or calibrated on labelled chips."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lookdown.adaptation import AdaptationSettings, Method, Shards, adapt
from lookdown.errors import GalleryError, InputError
from lookdown.gallery.store.metric_registry import MetricRegistry
from lookdown.gallery.store.snapshot import Snapshot
from lookdown.progress import Progress, no_progress

__all__ = ["Labels", "MetricUpdate", "calibrate", "estimate"]

Labels = Literal["marked", "all", "none"]  # which are used: those of users, also those of the manifest, none

_CALIBRATION_CHIPS = 5_000  # at most; all their pairs are compared


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricUpdate:
    """The outcome of adapting, teaching or calibrating.

    metric: the name of the new metric, or of the one in use if nothing changed.
    changed: whether there is a new metric.
    helped: whether it is likely to be better.
    reason: a sentence for the user.
    """

    metric: str
    changed: bool
    helped: bool
    reason: str


def estimate(
    snapshot: Snapshot,
    registry: MetricRegistry,
    kind: Literal["adapted", "taught"],
    *,
    clusters: int | Literal["auto"] = "auto",
    method: Method | AdaptationSettings = "auto",
    labels: Labels = "marked",
    seed: int = 0,
    use: bool = True,
    shards: Callable[[Snapshot], AbstractContextManager[Shards]] | None = None,
    progress: Progress = no_progress,
) -> MetricUpdate:
    """Adapt the metric that the gallery was made with to its embeddings, register the new one and use it.

    It starts from that metric every time, so that adaptations do not build on each other.

    shards: reads the embeddings where they lie, on other machines, instead of into this process.
    """
    if not len(snapshot):
        raise GalleryError(f"{snapshot.folder} holds no chips yet; add some with `lookdown index`")
    source = registry.names()[0]
    labelled = _labelled(snapshot, labels)
    empty = labelled & snapshot.columns.background
    names, counts = _names(snapshot, labelled & ~empty)
    if labelled.any() and (len(counts) + empty.sum() < 2 or counts.max(initial=0) < 2):
        if kind == "taught":
            reason = f"{labelled.sum()} labels make no pairs yet; label two of a kind, and another kind or background"
            return MetricUpdate(metric=registry.current, changed=False, helped=False, reason=reason)
        labelled[:] = empty[:] = False
    with nullcontext(snapshot.embeddings()) if shards is None else shards(snapshot) as embeddings:
        adaptation = adapt(
            registry.load(source),
            embeddings,
            clusters=clusters,
            method=method,
            labels=names if labelled.any() else None,
            background=empty,
            seed=seed,
            progress=progress,
        )
    if not adaptation.metric.pseudo_labelled_:
        return MetricUpdate(metric=registry.current, changed=False, helped=False, reason=adaptation.reason)
    taught_by = snapshot.ids.take(np.flatnonzero(labelled)).to_pylist()
    added = registry.add(adaptation.metric, kind, adaptation.reason, base=source, taught_by=taught_by)
    if use:
        registry.use(added.name)
    return MetricUpdate(metric=added.name, changed=True, helped=adaptation.helped, reason=adaptation.reason)


def calibrate(
    snapshot: Snapshot,
    registry: MetricRegistry,
    *,
    metric: str | None = None,
    labels: Labels = "all",
    seed: int = 0,
    use: bool = True,
) -> MetricUpdate:
    """Measure the false-alarm rates of a metric, the one in use by default, and register a copy that knows them.

    Chips that it was taught by are left out: on them it would look better than it is.
    """
    used = registry.info(registry.current if metric is None else metric)
    labelled = _labelled(snapshot, labels)
    taught = snapshot.find(used.taught_by)
    labelled[taught[taught >= 0]] = False
    rows = np.flatnonzero(labelled)
    if not len(rows):
        raise GalleryError(
            f"{snapshot.folder} has no labelled chips that {used.name} was not taught by; label some more, two of a "
            "kind and some of another or background, with `lookdown gallery label --no-teach`"
        )
    if len(rows) > _CALIBRATION_CHIPS:
        rows = np.sort(np.random.default_rng(seed).choice(rows, _CALIBRATION_CHIPS, replace=False))
    measured = deepcopy(registry.load(used.name))
    groups = [row["scene_group"] for row in snapshot.read(rows, ["scene_group"])]
    columns = snapshot.columns
    measured.calibrate(
        snapshot.embeddings(rows), columns.labels.codes[rows], groups, columns.background[rows], seed=seed
    )
    reason = f"{used.name}, calibrated on {len(rows):,} labelled chips of {len(set(groups)):,} places"
    added = registry.add(measured, "calibrated", reason, base=used.name, taught_by=used.taught_by)
    if use:
        registry.use(added.name)
    return MetricUpdate(metric=added.name, changed=True, helped=True, reason=reason)


def _labelled(snapshot: Snapshot, labels: Labels) -> NDArray[np.bool_]:
    """Return which chips have a label, or are known to be background, that may be used."""
    if labels not in ("marked", "all", "none"):
        raise InputError(f"`labels` must be 'marked', 'all' or 'none', got {labels!r}")
    columns = snapshot.columns
    labelled = (columns.labels.codes >= 0) | columns.background
    return labelled & (snapshot.marked | (labels == "all")) & (labels != "none")


def _names(snapshot: Snapshot, labelled: NDArray[np.bool_]) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Return the label of each of these chips, None for the others, and how many chips each label has."""
    labels = snapshot.columns.labels
    texts = np.array([*labels.values, None], object)
    counts = np.unique(labels.codes[labelled], return_counts=True)[1]
    return texts[np.where(labelled, labels.codes, -1)], counts
