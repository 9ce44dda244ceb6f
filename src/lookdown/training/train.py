"""From a recipe to a run: a trained embedder, its calibrated metric, and the record of the training."""

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
from lookdown.metrics import Cosine, KindLikelihoodRatio, Metric
from lookdown.networks import Embedder
from lookdown.progress import Progress, no_progress
from lookdown.training.learner import TrainableNetwork, tensors_below
from lookdown.training.loop import Epoch, Step, diverged, run_stages
from lookdown.training.recipe import Recipe, refuse_missing_device
from lookdown.training.run_folder import (
    MOST_CHECKPOINTS,
    MetricInRun,
    RunFolder,
    TensorBoard,
    data_fingerprint,
    last_checkpoint,
    write_checkpoint,
)
from lookdown.training.samples import embed_all
from lookdown.training.training_data import TrainingData, read_training_data, refuse_untrainable

__all__ = ["Observer", "resume", "train"]


@dataclass(frozen=True, slots=True)
class Observer:
    """Callbacks on the progress of a run; by default they do nothing."""

    reading: Progress = no_progress  # chips read or embedded
    step: Callable[[Step], None] = lambda step: None
    epoch: Callable[[dict[str, float | int]], None] = lambda record: None
    note: Callable[[str], None] = lambda sentence: None


def train(recipe: Recipe, out: Path, observer: Observer | None = None) -> RunFolder:
    """Train an embedder and its metric by a recipe, into a new folder.

    recipe: what to train, from `lookdown.config.read_recipe` or built in Python.
    out: the folder of the run, new or empty; a recipe that cannot be used is refused before it is created.
    observer: callbacks for chips read, steps, epochs and notes.

    An example, with chips that `lookdown.prepare` has put into `data`:

        from lookdown.training.recipe import Data, Recipe
        run = lookdown.train(Recipe(data=Data(manifest=Path("data"))), Path("run"))
        gallery = lookdown.Gallery.from_run(Path("gallery"), run.path)
    """
    recipe = recipe.anchored()
    manifest = Manifest.read(recipe.data.manifest).with_role("train")
    refuse_untrainable(manifest, recipe)
    fabric, embedder = _fabric(recipe), recipe.network.embedder(recipe.seed)
    begin = RunFolder.create if fabric.is_global_zero else RunFolder
    run = begin(out, recipe, data_fingerprint(manifest), embedder.trunk_fingerprint)
    return _run(run, embedder, manifest, fabric, observer or Observer())


def resume(path: Path, observer: Observer | None = None, changes: Sequence[str] = ()) -> RunFolder:
    """Go on with a run that was stopped; a finished one is left alone.

    changes: `key=value` each, for the learning rates and the clip, so that a run that diverged can go on.
    """
    run = RunFolder.open(path).changed(changes)
    if run.finished and changes:
        raise OutputError(f"{path} is finished, so it cannot be changed; start a new run")
    if run.finished:
        return run
    manifest = Manifest.read(run.recipe.data.manifest).with_role("train")
    if data_fingerprint(manifest) != run.data:
        raise OutputError(
            f"{run.recipe.data.manifest} has changed since {path} was started: chips, classes, roles or the times of "
            "files (cp -p keeps these); restore them, or start a new run"
        )
    fabric, embedder = _fabric(run.recipe), run.recipe.network.embedder(run.recipe.seed)
    if embedder.trunk_fingerprint != run.trunk:
        raise OutputError(
            f"the trunk has changed since {path} was started: {embedder.origin} gives other weights now; restore the "
            "old ones, or start a new run"
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
    fabric.barrier()  # until the folder exists
    embedder.to(fabric.device)  # where a frozen trunk embeds the chips
    data = read_training_data(recipe, embedder, manifest, progress=observer.reading, note=observer.note)
    start = last_checkpoint(run.checkpoints)
    curves = None
    if fabric.is_global_zero:
        done = start.epoch if start else 0
        run.refuse_small_disk(_bytes_needed(embedder, frozen=recipe.trunk == "frozen"))
        if changes:
            run.keep_change(changes, after=done)
        run.forget_after(done)
        curves = TensorBoard(run.path / "tensorboard", after=done)

    def on_epoch(epoch: Epoch) -> None:
        embeddings = embed_all(epoch.learner.network, data.validation.samples, recipe.network.dimension)
        if not np.isfinite(embeddings).all():
            raise diverged(recipe, epoch.stage, epoch.epoch, "an embedding of the held-out places is")
        validation = _retrieval(Cosine().fit(embeddings), embeddings, data)
        record = {**epoch.record, "validation_map": validation.mean_average_precision}
        if curves is not None:
            # Before the checkpoint: an epoch that is logged without one is done again, and one with it has its line.
            run.log(record)
            curves.log(record)
            tensors = epoch.learner.state()
            if epoch.running is not None:
                tensors["running"] = torch.from_numpy(epoch.running.copy())
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
    """Estimate both ratios, calibrate them on the held-out places, and write them and which of them finds better."""
    recipe = run.recipe
    network = TrainableNetwork(embedder, frozen=recipe.trunk == "frozen")
    if (last := last_checkpoint(run.checkpoints)) is not None:
        network.load_state_dict(tensors_below("network.", last.tensors))
    dimension = recipe.network.dimension
    with warnings.catch_warnings(record=True) as caught:
        for kind in (LowRankWarning, CollapsedComponentWarning):
            warnings.simplefilter("always", kind)
        embeddings = embed_all(network, data.fit.samples, dimension)
        metric = recipe.metric.fit(embeddings, data.fit.labels, recipe.seed)
    for warning in caught:
        observer.note(str(warning.message))
    held_out = embed_all(network, data.validation.samples, dimension)
    metric.calibrate(held_out, data.validation.labels, groups=data.groups)
    kinds = KindLikelihoodRatio().fit(embeddings, data.kinds[data.fit.labels]).temper(held_out, data.classes)
    kinds.calibrate(held_out, data.classes, groups=data.groups)
    evaluations = {
        name: _retrieval(one, held_out, data)
        for name, one in (("cosine", Cosine().fit(held_out)), ("metric", metric), ("kinds", kinds))
    }
    scores = {name: evaluation.mean_average_precision for name, evaluation in evaluations.items()}
    in_use: MetricInRun = "kinds" if scores["kinds"] > scores["metric"] else "metric"
    observer.note(
        f"validation mAP on {len(held_out):,} chips of held-out places: cosine {scores['cosine']:.4f}, likelihood "
        f"ratio {scores['metric']:.4f}, ratio of kinds {scores['kinds']:.4f}"
    )
    run.write("validation.json", evaluations[in_use].to_json() + "\n")
    run.use_metric(in_use)
    embedder.eval().save(run.path / "embedder", overwrite=True)
    kinds.save(run.path / "kinds", overwrite=True)
    metric.save(run.path / "metric", overwrite=True)


def _retrieval(metric: Metric, embeddings: NDArray[np.float64], data: TrainingData) -> Evaluation:
    """Search the held-out chips for one another."""
    classes, ids = data.classes, data.validation.ids
    return evaluate(
        metric, embeddings, classes, embeddings, classes, groups=data.groups, query_ids=ids, gallery_ids=ids
    )


def _bytes_needed(embedder: Embedder, *, frozen: bool) -> int:
    """Return about how many bytes a run writes: checkpoints, each with its momentum, and the embedder."""
    trained, whole = (
        sum(tensor.nbytes for tensor in part.state_dict().values())
        for part in (TrainableNetwork(embedder, frozen=frozen), embedder)
    )
    return int(MOST_CHECKPOINTS * 2 * trained + whole)


def _fabric(recipe: Recipe) -> Fabric:
    """Return the fabric of device, precision and processes: as many of these as `torchrun` has started, else one."""
    refuse_missing_device(recipe.device)
    local, processes = (int(os.environ.get(name, "1")) for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"))
    fabric = Fabric(
        accelerator=recipe.device,
        precision=recipe.precision,
        devices=local,
        num_nodes=processes // local,
        strategy="ddp" if processes > 1 else "auto",
    )
    fabric.launch()
    return fabric
