"""From a recipe to a run: a trained embedder, its metric, calibrated, and how it went."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray

from lookdown.chips.manifest import Manifest
from lookdown.chips.reading import chip_batches
from lookdown.errors import InputError, LowRankWarning, OutputError
from lookdown.evaluation import Evaluation, evaluate
from lookdown.metrics import Cosine, Metric
from lookdown.networks import Embedder
from lookdown.training.checkpoints import AT_ONCE, last_checkpoint, write_checkpoint
from lookdown.training.devices import refuse_missing_device
from lookdown.training.features import frozen_features
from lookdown.training.held_out import hold_out
from lookdown.training.learner import Network
from lookdown.training.loop import Epoch, Step, TrainingSet, run_stages
from lookdown.training.recipe import Recipe
from lookdown.training.run_folder import RunFolder, data_fingerprint
from lookdown.training.samples import ChipSamples, FeatureSamples, Samples
from lookdown.training.statistics import embed_all, fit_metric
from lookdown.training.tensorboard import TensorBoard

__all__ = ["Observer", "resume", "train"]


@dataclass(frozen=True, slots=True)
class Observer:
    """Who is told how a run goes; by default nobody."""

    reading: Callable[[int, int], None] = lambda done, total: None  # chips read or embedded
    step: Callable[[Step], None] = lambda step: None
    epoch: Callable[[dict[str, float | int]], None] = lambda record: None
    note: Callable[[str], None] = lambda sentence: None


@dataclass(frozen=True, slots=True)
class _Chips:
    """The training chips of a manifest that could be read, and which of them are kept back."""

    labels: NDArray[np.int64]
    groups: list[str]
    ids: list[str]
    names: list[str]  # of the classes
    held_out: NDArray[np.bool_]


def train(recipe: Recipe, out: Path, observer: Observer | None = None) -> RunFolder:
    """Train by a recipe into a new folder."""
    manifest = Manifest.read(recipe.data.manifest).with_role("train")
    _check(manifest, recipe)
    fabric, data = _fabric(recipe), data_fingerprint(manifest)
    run = RunFolder.create(out, recipe, data) if fabric.is_global_zero else RunFolder(out, recipe, data)
    return _run(run, manifest, fabric, observer or Observer())


def resume(path: Path, observer: Observer | None = None) -> RunFolder:
    """Go on with a run that was stopped; a finished one is left alone."""
    run = RunFolder.open(path)
    if run.finished:
        return run
    manifest = Manifest.read(run.recipe.data.manifest).with_role("train")
    if data_fingerprint(manifest) != run.data:
        raise OutputError(
            f"{run.recipe.data.manifest} is not what {path} was begun with: chips, classes or roles have changed; "
            "begin a new run"
        )
    return _run(run, manifest, _fabric(run.recipe), observer or Observer())


def _run(run: RunFolder, manifest: Manifest, fabric: Fabric, observer: Observer) -> RunFolder:
    recipe = run.recipe
    embedder = Embedder(
        recipe.network.backbone,
        bands=recipe.network.bands,
        size=recipe.network.size,
        pooling=recipe.network.pooling,
        head=recipe.network.head,
        dimension=recipe.network.dimension,
        weights=recipe.network.weights,
        seed=recipe.seed,
    )
    fabric.barrier()  # the folder is there
    chips, fit, validation = _prepare(run, embedder, manifest, observer)
    start = last_checkpoint(run.checkpoints)
    curves = None
    if fabric.is_global_zero:
        done = start.epoch if start else 0
        run.refuse_small_disk(_space(embedder, frozen=recipe.trunk == "frozen"))
        run.forget_after(done)
        curves = TensorBoard(run.path / "tensorboard", after=done)

    def on_epoch(epoch: Epoch) -> None:
        found = embed_all(epoch.learner.network, validation.samples, recipe.network.dimension)
        score = _retrieval(Cosine().fit(found), found, chips).mean_average_precision
        record = {**epoch.record, "validation_map": score}
        if fabric.is_global_zero:
            tensors = epoch.learner.state()
            if epoch.running is not None:
                tensors["running"] = torch.from_numpy(epoch.running.embeddings.copy())
            write_checkpoint(run.checkpoints, epoch.epoch, tensors, {"stage": epoch.stage})
            run.log(record)
        if curves is not None:
            curves.log(record)
        observer.epoch(record)
        fabric.barrier()

    run_stages(recipe, embedder, fit, fabric, start=start, on_epoch=on_epoch, on_step=observer.step)
    if curves is not None:
        curves.close()
    if fabric.is_global_zero:
        _finish(run, embedder, chips, fit, validation, observer)
    fabric.barrier()
    return run


def _finish(
    run: RunFolder, embedder: Embedder, chips: _Chips, fit: TrainingSet, validation: TrainingSet, observer: Observer
) -> None:
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
        warnings.simplefilter("always", LowRankWarning)
        metric = fit_metric(recipe.metric, embed_all(network, fit.samples, dimension), fit.labels, recipe.seed)
    for warning in told:
        observer.note(str(warning.message))
    held_out = embed_all(network, validation.samples, dimension)
    groups = [chips.groups[row] for row in np.flatnonzero(chips.held_out)]
    metric.calibrate(held_out, validation.labels, groups=groups)
    cosine, ratio = (_retrieval(one, held_out, chips) for one in (Cosine().fit(held_out), metric))
    observer.note(
        f"validation mAP on {len(held_out):,} chips of places kept back: cosine {cosine.mean_average_precision:.4f}, "
        f"likelihood ratio {ratio.mean_average_precision:.4f}"
    )
    (run.path / "validation.json").write_text(ratio.to_json() + "\n")
    embedder.eval().save(run.path / "embedder", overwrite=(run.path / "embedder").exists())
    metric.save(run.path / "metric", overwrite=(run.path / "metric").exists())


def _retrieval(metric: Metric, embeddings: NDArray[np.float64], chips: _Chips) -> Evaluation:
    """Search the chips that were kept back for one another."""
    rows = np.flatnonzero(chips.held_out)
    labels, groups = [chips.names[chips.labels[row]] for row in rows], [chips.groups[row] for row in rows]
    ids = [chips.ids[row] for row in rows]
    return evaluate(metric, embeddings, labels, embeddings, labels, groups=groups, query_ids=ids, gallery_ids=ids)


def _prepare(
    run: RunFolder, embedder: Embedder, manifest: Manifest, observer: Observer
) -> tuple[_Chips, TrainingSet, TrainingSet]:
    """Read the chips, or the features of a frozen trunk, and divide them."""
    recipe = run.recipe
    pick: Callable[[NDArray[np.int64]], Samples]
    if recipe.trunk == "frozen":
        beside = recipe.data.manifest
        folder = (beside.parent if beside.is_file() else beside) / "features"
        features = frozen_features(embedder, manifest.paths, folder, views=recipe.views, progress=observer.reading)
        read, skipped = np.asarray(features.indices), features.skipped
        pick = lambda rows: FeatureSamples(features, rows)  # noqa: E731
    else:
        images, read, skipped = _read_chips(manifest, recipe, observer)
        pick = lambda rows: ChipSamples(images[rows], recipe.augmentation)  # noqa: E731
    if skipped:
        observer.note(
            f"{len(skipped)} chips could not be read and are left out, the first: {next(iter(skipped.values()))}"
        )
    chips = _divide(manifest, read, recipe)
    fit, validation = (
        TrainingSet(pick(rows), chips.labels[rows], [chips.ids[row] for row in rows])
        for rows in (np.flatnonzero(~chips.held_out), np.flatnonzero(chips.held_out))
    )
    return chips, fit, validation


def _read_chips(
    manifest: Manifest, recipe: Recipe, observer: Observer
) -> tuple[NDArray[np.uint8], NDArray[np.int64], dict[int, str]]:
    size, bands = recipe.network.size, recipe.network.bands
    batches = chip_batches(manifest.paths, size=size, batch_size=256)
    images = np.empty((len(manifest), bands, size, size), np.uint8)
    found = np.zeros(len(manifest), np.bool_)
    for batch in batches:
        if batch.images.shape[1] != bands:
            raise InputError(f"chips have {batch.images.shape[1]} bands, the recipe says network.bands = {bands}")
        images[batch.indices.numpy()], found[batch.indices.numpy()] = batch.images.numpy(), True
        observer.reading(int(found.sum()) + len(batches.skipped), len(manifest))
    return images[found], np.flatnonzero(found), dict(batches.skipped)


def _divide(manifest: Manifest, read: NDArray[np.int64], recipe: Recipe) -> _Chips:
    """Number the classes, and keep places back."""
    columns = manifest.labels, manifest.groups, manifest.table["id"].to_pylist()
    labels, groups, ids = ([str(column[row]) for row in read] for column in columns)
    names, codes = np.unique(labels, return_inverse=True)
    held_out = hold_out(labels, groups, recipe.data.held_out, recipe.seed)
    return _Chips(codes.astype(np.int64), groups, ids, names.tolist(), held_out)


def _space(embedder: Embedder, *, frozen: bool) -> int:
    """Return about how many bytes a run writes: its checkpoints, each with a momentum, and the embedder."""
    trained, whole = (
        sum(tensor.nbytes for tensor in part.state_dict().values())
        for part in (Network(embedder, frozen=frozen), embedder)
    )
    return int(AT_ONCE * 2 * trained + whole)


def _check(manifest: Manifest, recipe: Recipe) -> None:
    if not len(manifest):
        raise InputError(f"{recipe.data.manifest} has no chips to train on; prepare it with roles (--split group)")
    if any(label is None for label in manifest.labels):
        raise InputError(f"{recipe.data.manifest} has training chips without a class; give each a label")


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
