"""How well a trained run finds the queries of a manifest in its gallery."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from lookdown.chips.manifest import Manifest
from lookdown.errors import ImageError, InputError, OutputError
from lookdown.evaluation import Evaluation, evaluate
from lookdown.metrics import Cosine, Euclidean, Metric, load_metric
from lookdown.networks import EmbeddedChips, ExportedEmbedder
from lookdown.networks.network_folder import FOLDER, AnyEmbedder
from lookdown.networks.stored_embedder import load_embedder
from lookdown.progress import Progress, no_progress
from lookdown.training.recipe import nearest_device
from lookdown.training.run_folder import RunFolder

__all__ = ["MetricName", "RunEvaluation", "UnreadableChips", "evaluate_run"]

MetricName = Literal["glrt", "kinds", "cosine", "euclidean", "adapted"]


@dataclass(frozen=True, slots=True)
class UnreadableChips:
    """Chips that could not be read and are left out."""

    queries: int
    gallery: int
    first: str | None  # file and reason, if there is any

    def __str__(self) -> str:
        return (
            f"{self.queries} queries and {self.gallery} chips of the gallery could not be read and are left out, the "
            f"first: {self.first}"
        )


@dataclass(frozen=True, slots=True)
class RunEvaluation:
    """The evaluation of each metric, and what was left out."""

    evaluations: dict[str, Evaluation]  # by the name of the metric
    unreadable: UnreadableChips


def evaluate_run(
    path: Path,
    metrics: tuple[MetricName, ...] = ("cosine", "glrt", "kinds"),
    data: Path | None = None,
    *,
    adapted: Path | None = None,
    exported: str | None = None,
    progress: Progress = no_progress,
) -> RunEvaluation:
    """Embed queries and gallery once, and search by each metric.

    metrics: names; `adapted` needs the argument of that name.
    data: another manifest than the run's own.
    adapted: the folder of a metric that `lookdown adapt` has written.
    exported: embed by an export of the run, such as `openvino-int8`, instead of torch; torch uses the device of the
        recipe, or the CPU if that is not available.
    """
    run = RunFolder.open(path)
    if not run.finished:
        raise OutputError(f"{path} is not finished; go on with `lookdown train --resume {path}`")
    embedder: AnyEmbedder
    if exported is None:
        embedder = load_embedder(path / "embedder").to(nearest_device(run.recipe.device))
    else:
        embedder = ExportedEmbedder.load(path / FOLDER / exported)
    manifest = Manifest.read(data or run.recipe.data.manifest)
    query_chips, gallery_chips = manifest.with_role("query"), manifest.with_role("gallery")
    if not len(query_chips) or not len(gallery_chips):
        raise InputError(f"{data or run.recipe.data.manifest} has no queries or no gallery; prepare it with roles")
    total = len(query_chips) + len(gallery_chips)
    queries = embedder.embed_chips(query_chips, progress=_from(progress, 0, total))
    gallery = embedder.embed_chips(gallery_chips, progress=_from(progress, len(query_chips), total))
    unreadable = _unreadable(queries, gallery)
    by_name: dict[str, Metric] = {
        "glrt": load_metric(path / "metric"),
        "kinds": load_metric(path / "kinds"),
        "cosine": Cosine().fit(gallery.embeddings),
        "euclidean": Euclidean().fit(gallery.embeddings),
    }
    if adapted is not None:
        by_name["adapted"] = load_metric(adapted)
    evaluations: dict[str, Evaluation] = {
        name: evaluate(
            by_name[name],
            queries.embeddings,
            [query_chips.labels[row] for row in queries.indices],
            gallery.embeddings,
            [gallery_chips.labels[row] for row in gallery.indices],
            np.asarray(gallery_chips.background)[gallery.indices],
            groups=[query_chips.groups[row] for row in queries.indices],
        )
        for name in metrics
    }
    return RunEvaluation(evaluations, unreadable)


def _unreadable(queries: EmbeddedChips, gallery: EmbeddedChips) -> UnreadableChips:
    """Count the chips that could not be read; ImageError if no query or no gallery is left."""
    reasons = (*queries.skipped.values(), *gallery.skipped.values())
    unreadable = UnreadableChips(len(queries.skipped), len(gallery.skipped), next(iter(reasons), None))
    if not len(queries.indices) or not len(gallery.indices):
        raise ImageError(f"{unreadable}; no query or no gallery remains, so prepare the data again")
    return unreadable


def _from(progress: Progress, before: int, whole: int) -> Progress:
    return lambda done, total, unit: progress(before + done, whole, unit)
