"""A gallery's metric, estimated anew from what it holds: clusters, labels, and what scores do on labelled chips."""

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

Labels = Literal["marked", "all", "none"]  # whose labels count: those given in the gallery, also the manifest's, none

_CALIBRATED_ON = 5_000  # chips; all their pairs are compared


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricUpdate:
    """What came of adapting, teaching or calibrating."""

    metric: str  # the new one, in use now unless that was not wanted; the one from before where nothing changed
    changed: bool  # False where nothing better was found, and the metric is the one from before
    helped: bool  # likely to be better, as far as can be told
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

    It starts from that metric every time, so that one adaptation does not build on another. With `shards` the
    embeddings stay where they lie.
    """
    if not len(snapshot):
        raise GalleryError(f"{snapshot.folder} holds no chips yet; add some with `lookdown index`")
    source = registry.names()[0]
    known = _known(snapshot, labels)
    classes = _classes(snapshot, known)
    counts = np.unique(classes[known], return_counts=True)[1]
    if known.any() and (len(counts) < 2 or counts.max() < 2):
        if kind == "taught":
            reason = f"{known.sum()} labels make no pairs yet; label two of a kind, and another kind or background"
            return MetricUpdate(metric=registry.current, changed=False, helped=False, reason=reason)
        known[:] = False
    with nullcontext(snapshot.embeddings()) if shards is None else shards(snapshot) as embeddings:
        found = adapt(
            registry.load(source),
            embeddings,
            clusters=clusters,
            method=method,
            labels=classes if known.any() else None,
            seed=seed,
            progress=progress,
        )
    if not found.metric.pseudo_labelled_:
        return MetricUpdate(metric=registry.current, changed=False, helped=False, reason=found.reason)
    shelved = registry.add(found.metric, kind, found.reason, base=source, taught_by=_ids(snapshot, known))
    if use:
        registry.use(shelved.name)
    return MetricUpdate(metric=shelved.name, changed=True, helped=found.helped, reason=found.reason)


def calibrate(
    snapshot: Snapshot,
    registry: MetricRegistry,
    *,
    metric: str | None = None,
    labels: Labels = "all",
    seed: int = 0,
    use: bool = True,
) -> MetricUpdate:
    """Measure on labelled chips what scores of a metric, the one in use, are worth, and put it into use with that.

    Chips that it was taught by are left out: it would judge itself by what it has learnt.
    """
    used = registry.info(registry.current if metric is None else metric)
    known = _known(snapshot, labels)
    taught = snapshot.find(used.taught_by)
    known[taught[taught >= 0]] = False
    rows = np.flatnonzero(known)
    if not len(rows):
        raise GalleryError(
            f"{snapshot.folder} has no labelled chips that {used.name} was not taught by; label some more, two of a "
            "kind and some of another or background, with `lookdown gallery label --no-teach`"
        )
    if len(rows) > _CALIBRATED_ON:
        rows = np.sort(np.random.default_rng(seed).choice(rows, _CALIBRATED_ON, replace=False))
    measured = deepcopy(registry.load(used.name))
    groups = [row["scene_group"] for row in snapshot.read(rows, ["scene_group"])]
    columns = snapshot.columns
    known_empty = columns.background[rows]
    measured.calibrate(snapshot.embeddings(rows), columns.labels.codes[rows], groups, known_empty, seed=seed)
    reason = f"{used.name}, calibrated on {len(rows):,} labelled chips of {len(set(groups)):,} places"
    shelved = registry.add(measured, "calibrated", reason, base=used.name, taught_by=used.taught_by)
    if use:
        registry.use(shelved.name)
    return MetricUpdate(metric=shelved.name, changed=True, helped=True, reason=reason)


def _known(snapshot: Snapshot, labels: Labels) -> NDArray[np.bool_]:
    """Return of which chips it is known what they show."""
    if labels not in ("marked", "all", "none"):
        raise InputError(f"labels must be 'marked', 'all' or 'none', got {labels!r}")
    columns = snapshot.columns
    known = (columns.labels.codes >= 0) | columns.background
    return known & (snapshot.marked | (labels == "all")) & (labels != "none")


def _classes(snapshot: Snapshot, known: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the class of each chip, -1 where it is not known; background is of no class, so each is its own."""
    labels = snapshot.columns.labels
    classes = np.where(known, labels.codes, -1).astype(np.int64)
    empty = np.flatnonzero(known & snapshot.columns.background)
    classes[empty] = len(labels.values) + np.arange(len(empty))
    return classes


def _ids(snapshot: Snapshot, chosen: NDArray[np.bool_]) -> list[str]:
    return list(snapshot.ids.take(np.flatnonzero(chosen)).to_pylist())
