"""The two stages of training (Algorithms 1 and 2), in a loop that can be read from top to bottom."""

from __future__ import annotations

import hashlib
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor

from lookdown.errors import CollapsedComponentWarning, LowRankWarning, TrainingError
from lookdown.losses import Loss
from lookdown.networks import Embedder
from lookdown.training.class_batches import ClassBatches
from lookdown.training.learner import Learner, learning_rate, over_all_processes
from lookdown.training.recipe import Recipe, Stage
from lookdown.training.run_folder import Checkpoint
from lookdown.training.samples import BatchPlan, as_array, draw_batches, embed_all
from lookdown.training.training_data import TrainingSet

__all__ = ["Epoch", "Step", "derived_seed", "diverged", "run_stages"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run."""

    stage: Stage
    epoch: int  # finished before this step, over both stages
    step: int  # of the epoch, from 0
    steps: int  # in an epoch
    epochs: int  # in the run
    loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Epoch:
    """The state and the figures after an epoch."""

    epoch: int  # finished ones, over both stages
    stage: Stage
    learner: Learner
    running: NDArray[np.float64] | None  # the last embedding of each chip from training itself, which saves a pass
    record: dict[str, Any]  # for metrics.jsonl


def run_stages(
    recipe: Recipe,
    embedder: Embedder,
    chips: TrainingSet,
    fabric: Fabric,
    *,
    start: Checkpoint | None,
    on_epoch: Callable[[Epoch], None],
    on_step: Callable[[Step], None] = lambda step: None,
) -> None:
    """Train the embedder, from a checkpoint or from the start; `on_epoch` validates and writes checkpoints.

    All randomness follows from the recipe's seed, the epoch and the step, so a run that goes on from a checkpoint ends
    with the same bits as one that was never stopped.
    """
    classes = int(chips.labels.max()) + 1
    batches = ClassBatches(
        chips.labels,
        classes=min(recipe.batches.classes, classes),
        samples=recipe.batches.samples,
        seed=derived_seed(recipe.seed, "batches"),
        shard=fabric.global_rank,
        shards=fabric.world_size,
    )
    tensors, done = (start.tensors, start.epoch) if start else (None, 0)
    before: Stage = start.state["stage"] if start else 1
    stages: tuple[tuple[Stage, int, int], ...] = (
        (1, 0, recipe.stage1.epochs),
        (2, recipe.stage1.epochs, recipe.stage1.epochs + recipe.stage2.epochs),
    )
    for stage, first, last in stages:
        if done >= last:
            continue
        learner = Learner(recipe, embedder, classes, stage, fabric.device)
        if tensors is not None:
            learner.restore(tensors, stage=before)
        running = None
        if tensors is not None and "running" in tensors and stage == before:
            running = as_array(tensors["running"])
        if fabric.world_size > 1:
            over_all_processes(learner.network)
        network = fabric.setup_module(learner.network)
        for epoch in range(max(done, first), last):
            begin = time.perf_counter()
            if learner.metric_loss is not None and learner.metric_loss.needs_metric:
                running = _estimate(recipe, learner.metric_loss, network, chips, running)
            sums = _one_epoch(learner, network, fabric, batches, chips, epoch, running, on_step, first=first, last=last)
            record = {"epoch": epoch + 1, "stage": stage, **sums, "seconds": time.perf_counter() - begin}
            on_epoch(Epoch(epoch + 1, stage, learner, running, record))
        tensors, done, before = learner.state(), last, stage


def derived_seed(seed: int, *parts: int | str) -> int:
    """Return a seed for one part of a run, such as (stage, epoch, step), whatever was drawn before."""
    text = "/".join(str(part) for part in (seed, *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def diverged(recipe: Recipe, stage: Stage, epoch: int, what: str, batch: str = "") -> TrainingError:
    """Return the error for NaN or infinite values; epochs are counted from 1, and `batch` names its chips."""
    rate = recipe.stage(stage).learning_rate / 2
    return TrainingError(
        f"{what} not a number in stage {stage}, epoch {epoch}{batch}; the state before this epoch is kept. Go on from "
        f"there with a lower rate, `lookdown train --resume RUN --set stage{stage}.learning_rate={rate:g}`"
        + (", or look at these chips" if batch else "")
    )


def _estimate(
    recipe: Recipe, loss: Loss, network: Any, chips: TrainingSet, running: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Give the loss the statistics of the whole training set; return the embeddings for the epoch to update, if any."""
    embeddings = embed_all(network, chips.samples, recipe.network.dimension) if running is None else running
    with warnings.catch_warnings():
        for kind in (LowRankWarning, CollapsedComponentWarning):
            warnings.simplefilter("ignore", kind)  # of a network that still changes; `train` reports the last ones
        loss.set_metric(recipe.metric.fit(embeddings, chips.labels, recipe.seed))
    return embeddings if recipe.stage2.statistics == "running" else None


def _one_epoch(
    learner: Learner,
    network: Any,
    fabric: Fabric,
    batches: ClassBatches,
    chips: TrainingSet,
    epoch: int,
    running: NDArray[np.float64] | None,
    on_step: Callable[[Step], None],
    *,
    first: int,
    last: int,
) -> dict[str, float]:
    """Go through the training set once, and return mean loss, accuracy and the seconds spent waiting for data."""
    recipe = learner.recipe
    steps, epochs = len(batches), recipe.stage1.epochs + recipe.stage2.epochs
    losses, correct, seen, waited = 0.0, 0, 0, 0.0
    plans = [
        BatchPlan(indices, derived_seed(recipe.seed, "views", epoch, step), fabric.global_rank * len(indices))
        for step, indices in enumerate(batches.batches(epoch))
    ]
    network.train()
    drawn = draw_batches(chips.samples, plans, ahead=fabric.device.type != "cpu")
    for step, (indices, inputs, waited_seconds) in enumerate(drawn):
        waited += waited_seconds
        stage_step, stage_steps = (epoch - first) * steps + step, (last - first) * steps
        learner.set_learning_rate(learning_rate(learner.settings, stage_step, stage_steps))
        if learner.metric_loss is not None:
            learner.metric_loss.progress(stage_step / stage_steps)
        _seed(fabric.device, derived_seed(recipe.seed, "network", epoch, step, fabric.global_rank))
        embeddings = network(inputs.to(fabric.device))
        embeddings, everywhere = _gathered(fabric, embeddings, indices)
        labels = torch.from_numpy(chips.labels[everywhere]).to(fabric.device)
        loss = learner.loss(embeddings, labels)
        if not torch.isfinite(loss):
            raise diverged(recipe, learner.stage, epoch + 1, "the loss is", _named(step, chips, everywhere))
        learner.optimizer.zero_grad()
        fabric.backward(loss)
        norm = torch.nn.utils.clip_grad_norm_(learner.trained().values(), recipe.optimizer.clip or math.inf)
        if not torch.isfinite(norm):  # a step along it would ruin the weights
            raise diverged(recipe, learner.stage, epoch + 1, "the gradient is", _named(step, chips, everywhere))
        learner.optimizer.step()
        if learner.metric_loss is not None:
            learner.metric_loss.update(embeddings.detach(), labels)
        if running is not None:
            running[everywhere] = as_array(embeddings)
        right = int((learner.identity.logits(embeddings.detach()).argmax(dim=1) == labels).sum())
        losses, correct, seen = losses + float(loss.detach()), correct + right, seen + len(labels)
        on_step(Step(learner.stage, epoch, step, steps, epochs, float(loss.detach()), right / len(labels)))
    return {"loss": losses / steps, "accuracy": correct / seen, "waited": waited}


def _seed(device: torch.device, seed: int) -> None:
    """Seed what a network draws in training; on a CPU, without waking the generators of other devices."""
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def _gathered(fabric: Fabric, embeddings: Tensor, indices: NDArray[np.int64]) -> tuple[Tensor, NDArray[np.int64]]:
    """Return the embeddings of the whole batch, from all processes, with gradients: a loss compares all pairs."""
    if fabric.world_size == 1:
        return embeddings, indices
    whole = fabric.all_gather(embeddings, sync_grads=True)
    everywhere = fabric.all_gather(torch.from_numpy(indices))
    assert isinstance(whole, Tensor)
    assert isinstance(everywhere, Tensor)
    return whole.flatten(0, 1), everywhere.flatten().cpu().numpy()


def _named(step: int, chips: TrainingSet, indices: NDArray[np.int64]) -> str:
    names = ", ".join(chips.ids[index] for index in indices[:4])
    return f", batch {step + 1} (chips {names} and {max(len(indices) - 4, 0)} more)"
