"""A trained run, adapted to the chips of a manifest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lookdown.adaptation.adaptation import Adaptation, Method, adapt
from lookdown.chips.manifest import Manifest
from lookdown.errors import InputError, OutputError
from lookdown.metrics import load_metric
from lookdown.networks.stored_embedder import load_embedder
from lookdown.progress import Progress, no_progress
from lookdown.training.run_folder import RunFolder

__all__ = ["RunAdaptation", "adapt_run"]


@dataclass(frozen=True, slots=True)
class RunAdaptation:
    """An adaptation, and the chips that could not be read for it."""

    adaptation: Adaptation
    skipped: dict[int, str]


def adapt_run(
    run: Path,
    data: Path,
    *,
    clusters: int | Literal["auto"] = "auto",
    method: Method = "auto",
    labels: bool = False,
    quick: bool = False,
    seed: int = 0,
    progress: Progress = no_progress,
) -> RunAdaptation:
    """Embed the chips of a manifest and adapt the run's metric to them.

    run: the folder of a finished run.
    data: the manifest; training chips are left out where it has queries and a gallery.
    clusters, method, seed: as for `adapt`.
    labels: take the classes in the manifest as true labels, where a chip has one.
    quick: with `auto`, do not find clusters by the mean over quarter turns, for which every chip is embedded four
        times more.
    """
    if not RunFolder.open(run).finished:
        raise OutputError(f"{run} is not finished; go on with `lookdown train --resume {run}`")
    chips = _target(Manifest.read(data))
    embedder = load_embedder(run / "embedder")
    plain = embedder.embed_chips(chips, progress=progress)
    steady = None
    if method == "auto" and not quick:
        steady = embedder.embed_chips(chips, turns=4, progress=progress).embeddings
    classes = [None if chips.background[row] else chips.labels[row] for row in plain.indices]
    if labels and all(name is None for name in classes):
        raise InputError(f"{data} has no labels; omit `labels`, or give some chips a class")
    adaptation = adapt(
        load_metric(run / "metric"),
        plain.embeddings,
        clusters=clusters,
        method=method,
        labels=classes if labels else None,
        cluster_by=steady,
        seed=seed,
    )
    return RunAdaptation(adaptation, plain.skipped)


def _target(manifest: Manifest) -> Manifest:
    """Return the chips that are searched and searched for, or all of them where none has such a role."""
    if not len(manifest):
        raise InputError("the manifest has no chips; prepare some images of the target domain")
    searched = manifest.with_role("query", "gallery")
    return searched if len(searched) else manifest
