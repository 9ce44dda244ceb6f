"""How well a trained run finds the queries of a manifest in its gallery."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np

from lookdown.chips.manifest import Manifest
from lookdown.errors import InputError, OutputError
from lookdown.evaluation import Evaluation, evaluate
from lookdown.metrics import Cosine, Euclidean, Metric, load_metric
from lookdown.networks import Embedder
from lookdown.training.run_folder import RunFolder

__all__ = ["MetricName", "evaluate_run"]

MetricName = Literal["glrt", "cosine", "euclidean"]


def evaluate_run(
    path: Path,
    metrics: tuple[MetricName, ...] = ("cosine", "glrt"),
    data: Path | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Evaluation]:
    """Embed queries and gallery once, and search by each metric; `data` is another manifest than the run's own."""
    run = RunFolder.open(path)
    if not run.finished:
        raise OutputError(f"{path} is not finished; go on with `lookdown train --resume {path}`")
    embedder, trained = Embedder.load(path / "embedder"), load_metric(path / "metric")
    manifest = Manifest.read(data or run.recipe.data.manifest)
    asked, searched = manifest.with_role("query"), manifest.with_role("gallery")
    if not len(asked) or not len(searched):
        raise InputError(f"{data or run.recipe.data.manifest} has no queries or no gallery; prepare it with roles")
    total = len(asked) + len(searched)
    queries = embedder.embed_chips(asked, progress=_from(progress, 0, total))
    gallery = embedder.embed_chips(searched, progress=_from(progress, len(asked), total))
    made: dict[str, Metric] = {
        "glrt": trained,
        "cosine": Cosine().fit(gallery.embeddings),
        "euclidean": Euclidean().fit(gallery.embeddings),
    }
    return {
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


def _from(progress: Callable[[int, int], None] | None, before: int, total: int) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, _: progress(before + done, total)
