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
from lookdown.training.devices import nearest_device
from lookdown.training.run_folder import RunFolder

__all__ = ["MetricName", "RunEvaluation", "Unreadable", "evaluate_run"]

MetricName = Literal["glrt", "cosine", "euclidean", "adapted"]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Chips that could not be read, and are therefore in no figure."""

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
    """How well each metric searched, and what was left out."""

    evaluations: dict[str, Evaluation]  # by the name of the metric
    unreadable: Unreadable


def evaluate_run(
    path: Path,
    metrics: tuple[MetricName, ...] = ("cosine", "glrt"),
    data: Path | None = None,
    *,
    adapted: Path | None = None,
    exported: str | None = None,
    progress: Progress = no_progress,
) -> RunEvaluation:
    """Embed queries and gallery once, and search by each metric; `data` is another manifest than the run's own.

    `adapted` is the folder of a metric that `lookdown adapt` has made of the run's, to be named in `metrics`. The
    chips are embedded on the device of the recipe, or on the CPU where that is not there; or by an export of the run,
    `openvino-int8`, say.
    """
    run = RunFolder.open(path)
    if not run.finished:
        raise OutputError(f"{path} is not finished; go on with `lookdown train --resume {path}`")
    embedder: AnyEmbedder
    if exported is None:
        embedder = load_embedder(path / "embedder").to(nearest_device(run.recipe.device))
    else:
        embedder = ExportedEmbedder.load(path / FOLDER / exported)
    trained = load_metric(path / "metric")
    manifest = Manifest.read(data or run.recipe.data.manifest)
    asked, searched = manifest.with_role("query"), manifest.with_role("gallery")
    if not len(asked) or not len(searched):
        raise InputError(f"{data or run.recipe.data.manifest} has no queries or no gallery; prepare it with roles")
    total = len(asked) + len(searched)
    queries = embedder.embed_chips(asked, progress=_from(progress, 0, total))
    gallery = embedder.embed_chips(searched, progress=_from(progress, len(asked), total))
    unreadable = _unreadable(queries, gallery)
    made: dict[str, Metric] = {
        "glrt": trained,
        "cosine": Cosine().fit(gallery.embeddings),
        "euclidean": Euclidean().fit(gallery.embeddings),
    }
    if adapted is not None:
        made["adapted"] = load_metric(adapted)
    evaluations: dict[str, Evaluation] = {
        name: evaluate(
            made[name],
            queries.embeddings,
            [asked.labels[row] for row in queries.indices],
            gallery.embeddings,
            [searched.labels[row] for row in gallery.indices],
            np.asarray(searched.background)[gallery.indices],
            groups=[asked.groups[row] for row in queries.indices],
        )
        for name in metrics
    }
    return RunEvaluation(evaluations, unreadable)


def _unreadable(queries: EmbeddedChips, gallery: EmbeddedChips) -> Unreadable:
    """Count what could not be read; where nothing could, there is nothing to evaluate."""
    reasons = (*queries.skipped.values(), *gallery.skipped.values())
    found = Unreadable(len(queries.skipped), len(gallery.skipped), next(iter(reasons), None))
    if not len(queries.indices) or not len(gallery.indices):
        raise ImageError(f"{found}; no query or no gallery remains, so prepare the data again")
    return found


def _from(progress: Progress, before: int, whole: int) -> Progress:
    return lambda done, total, unit: progress(before + done, whole, unit)
