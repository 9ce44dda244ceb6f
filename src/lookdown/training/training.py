"""From a recipe to a run: a trained embedder, its metric, calibrated, and how it went."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray

from lookdown.chips.manifest import Manifest
from lookdown.errors import CollapsedComponentWarning, LowRankWarning, OutputError
from lookdown.evaluation import Evaluation, evaluate
from lookdown.metrics import Cosine, Metric
from lookdown.networks import Embedder
from lookdown.progress import Progress, no_progress
from lookdown.training.checkpoints import AT_ONCE, last_checkpoint, write_checkpoint
from lookdown.training.devices import refuse_missing_device
from lookdown.training.divergence import diverged
from lookdown.training.learner import Network
from lookdown.training.loop import Epoch, Step, run_stages
from lookdown.training.recipe import Recipe
from lookdown.training.run_folder import RunFolder, data_fingerprint
from lookdown.training.statistics import embed_all, fit_metric
from lookdown.training.tensorboard import TensorBoard
from lookdown.training.training_data import TrainingData, read_training_data, refuse_untrainable

__all__ = ["Observer", "resume", "train"]


@dataclass(frozen=True, slots=True)
class Observer:
    """Who is told how a run goes; by default nobody."""

    reading: Progress = no_progress  # chips read or embedded
    step: Callable[[Step], None] = lambda step: None
    epoch: Callable[[dict[str, float | int]], None] = lambda record: None
    note: Callable[[str], None] = lambda sentence: None


def train(recipe: Recipe, out: Path, observer: Observer | None = None) -> RunFolder:
    """Train by a recipe into a new folder; what cannot be trained is refused before there is one."""
    recipe = recipe.anchored()
    manifest = Manifest.read(recipe.data.manifest).with_role("train")
    refuse_untrainable(manifest, recipe)
    fabric, embedder = _fabric(recipe), recipe.network.embedder(recipe.seed)
    begin = RunFolder.create if fabric.is_global_zero else RunFolder
    run = begin(out, recipe, data_fingerprint(manifest), embedder.trunk_fingerprint)
    return _run(run, embedder, manifest, fabric, observer or Observer())


def resume(path: Path, observer: Observer | None = None, changes: Sequence[str] = ()) -> RunFolder:
    """Go on with a run that was stopped; a finished one is left alone.

    `changes` are `key=value` for the learning rates and the clip, to get a run over a place where it diverges.
    """
    run = RunFolder.open(path).changed(changes)
    if run.finished and changes:
        raise OutputError(f"{path} is finished, so nothing of it can be changed; begin a new run")
    if run.finished:
        return run
    manifest = Manifest.read(run.recipe.data.manifest).with_role("train")
    if data_fingerprint(manifest) != run.data:
        raise OutputError(
            f"{run.recipe.data.manifest} is not what {path} was begun with: chips, classes, roles or the times of "
            "files have changed (a copy keeps the times with cp -p); put them back, or begin a new run"
        )
    fabric, embedder = _fabric(run.recipe), run.recipe.network.embedder(run.recipe.seed)
    if embedder.trunk_fingerprint != run.trunk:
        raise OutputError(
            f"the trunk is not what {path} was begun with: {embedder.origin} gives other weights now; put the old ones "
            "back, or begin a new run"
        )
    return _run(run, embedder, manifest, fabric, observer or Observer(), changes)


def _run(
    run: RunFolder,
    embedder: Embedder,
    manifest: Manifest,
    fabric: Fabric,
    observer: Observer,
    changes: Sequence[str] = (),
) -> RunFolder:
    recipe = run.recipe
    fabric.barrier()  # the folder is there
    embedder.to(fabric.device)  # a frozen trunk is to see the chips there, too
    data = read_training_data(recipe, embedder, manifest, progress=observer.reading, note=observer.note)
    start = last_checkpoint(run.checkpoints)
    curves = None
    if fabric.is_global_zero:
        done = start.epoch if start else 0
        run.refuse_small_disk(_space(embedder, frozen=recipe.trunk == "frozen"))
        if changes:
            run.keep_change(changes, after=done)
        run.forget_after(done)
        curves = TensorBoard(run.path / "tensorboard", after=done)

    def on_epoch(epoch: Epoch) -> None:
        found = embed_all(epoch.learner.network, data.validation.samples, recipe.network.dimension)
        if not np.isfinite(found).all():
            raise diverged(recipe, epoch.stage, epoch.epoch, "an embedding of the places kept back is")
        record = {**epoch.record, "validation_map": _retrieval(Cosine().fit(found), found, data).mean_average_precision}
        if curves is not None:
            # Before the checkpoint: an epoch that is logged and not kept is done again, one kept has its line.
            run.log(record)
            curves.log(record)
            tensors = epoch.learner.state()
            if epoch.running is not None:
                tensors["running"] = torch.from_numpy(epoch.running.embeddings.copy())
            write_checkpoint(run.checkpoints, epoch.epoch, tensors, {"stage": epoch.stage})
        observer.epoch(record)
        fabric.barrier()

    run_stages(recipe, embedder, data.fit, fabric, start=start, on_epoch=on_epoch, on_step=observer.step)
    if curves is not None:
        curves.close()
        _finish(run, embedder, data, observer)
    fabric.barrier()
    return run


def _finish(run: RunFolder, embedder: Embedder, data: TrainingData, observer: Observer) -> None:
    """Estimate the metric once more, calibrate it on what was kept back, and write both."""
    recipe = run.recipe
    network = Network(embedder, frozen=recipe.trunk == "frozen")
    if (last := last_checkpoint(run.checkpoints)) is not None:
        network.load_state_dict(
            {
                name.removeprefix("network."): value
                for name, value in last.tensors.items()
                if name.startswith("network.")
            }
        )
    dimension = recipe.network.dimension
    with warnings.catch_warnings(record=True) as told:
        for kind in (LowRankWarning, CollapsedComponentWarning):
            warnings.simplefilter("always", kind)
        embeddings = embed_all(network, data.fit.samples, dimension)
        metric = fit_metric(recipe.metric, embeddings, data.fit.labels, recipe.seed)
    for warning in told:
        observer.note(str(warning.message))
    held_out = embed_all(network, data.validation.samples, dimension)
    metric.calibrate(held_out, data.validation.labels, groups=data.places)
    cosine, ratio = (_retrieval(one, held_out, data) for one in (Cosine().fit(held_out), metric))
    observer.note(
        f"validation mAP on {len(held_out):,} chips of places kept back: cosine {cosine.mean_average_precision:.4f}, "
        f"likelihood ratio {ratio.mean_average_precision:.4f}"
    )
    run.write("validation.json", ratio.to_json() + "\n")
    embedder.eval().save(run.path / "embedder", overwrite=True)
    metric.save(run.path / "metric", overwrite=True)


def _retrieval(metric: Metric, embeddings: NDArray[np.float64], data: TrainingData) -> Evaluation:
    """Search the chips that were kept back for one another."""
    classes, ids = data.classes, data.validation.ids
    return evaluate(
        metric, embeddings, classes, embeddings, classes, groups=data.places, query_ids=ids, gallery_ids=ids
    )


def _space(embedder: Embedder, *, frozen: bool) -> int:
    """Return about how many bytes a run writes: its checkpoints, each with a momentum, and the embedder."""
    trained, whole = (
        sum(tensor.nbytes for tensor in part.state_dict().values())
        for part in (Network(embedder, frozen=frozen), embedder)
    )
    return int(AT_ONCE * 2 * trained + whole)


def _fabric(recipe: Recipe) -> Fabric:
    """Return what knows of device, precision and processes: as many of these as `torchrun` has started, else one."""
    refuse_missing_device(recipe.device)
    here, everywhere = (int(os.environ.get(name, "1")) for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"))
    fabric = Fabric(
        accelerator=recipe.device,
        precision=recipe.precision,
        devices=here,
        num_nodes=everywhere // here,
        strategy="ddp" if everywhere > 1 else "auto",
    )
    fabric.launch()
    return fabric
