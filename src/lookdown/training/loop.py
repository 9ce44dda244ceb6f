"""The two stages of training (Algorithms 1 and 2), in a loop that can be read from top to bottom."""

from __future__ import annotations

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

from lookdown.errors import CollapsedComponentWarning, LowRankWarning
from lookdown.losses import Loss
from lookdown.networks import Embedder
from lookdown.training.batch_norm import over_all_processes
from lookdown.training.batches import ClassBatches
from lookdown.training.checkpoints import Checkpoint
from lookdown.training.divergence import diverged
from lookdown.training.drawing import Draw, drawn_batches
from lookdown.training.learner import Learner, Stage, learning_rate
from lookdown.training.randomness import derived_seed
from lookdown.training.recipe import Recipe
from lookdown.training.statistics import RunningEmbeddings, embed_all, fit_metric
from lookdown.training.training_data import TrainingSet

__all__ = ["Epoch", "Step", "run_stages"]


@dataclass(frozen=True, slots=True)
class Step:
    """Where a run is."""

    stage: Stage
    epoch: int  # finished before this step, over both stages
    step: int
    steps: int  # of an epoch
    epochs: int  # of the whole run
    loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Epoch:
    """What an epoch came to."""

    epoch: int  # finished ones, over both stages
    stage: Stage
    learner: Learner
    running: RunningEmbeddings | None
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

    All that is random follows from the recipe's seed and the place in the run, so a run that goes on from an epoch
    ends with the same bits as one that was never stopped.
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
            running = RunningEmbeddings(tensors["running"].double().numpy())
        if fabric.world_size > 1:
            over_all_processes(learner.network)
        network = fabric.setup_module(learner.network)
        for epoch in range(max(done, first), last):
            begin = time.perf_counter()
            if learner.metric_loss is not None and learner.metric_loss.needs_metric:
                running = _estimate(recipe, learner.metric_loss, network, chips, running)
            sums = _one_epoch(
                recipe, learner, network, fabric, batches, chips, epoch, running, on_step, first=first, last=last
            )
            record = {"epoch": epoch + 1, "stage": stage, **sums, "seconds": time.perf_counter() - begin}
            on_epoch(Epoch(epoch + 1, stage, learner, running, record))
        tensors, done, before = learner.state(), last, stage


def _estimate(
    recipe: Recipe, loss: Loss, network: Any, chips: TrainingSet, running: RunningEmbeddings | None
) -> RunningEmbeddings | None:
    """Give the loss the statistics of the whole training set, and return what the epoch is to keep up to date."""
    if recipe.stage2.statistics == "running" and running is not None:
        embeddings = running.embeddings
    else:
        embeddings = embed_all(network, chips.samples, recipe.network.dimension)
    with warnings.catch_warnings():
        for kind in (LowRankWarning, CollapsedComponentWarning):
            warnings.simplefilter("ignore", kind)  # of a network in the making; those of the last one are told
        loss.set_metric(fit_metric(recipe.metric, embeddings, chips.labels, recipe.seed))
    return RunningEmbeddings(embeddings) if recipe.stage2.statistics == "running" else None


def _one_epoch(
    recipe: Recipe,
    learner: Learner,
    network: Any,
    fabric: Fabric,
    batches: ClassBatches,
    chips: TrainingSet,
    epoch: int,
    running: RunningEmbeddings | None,
    on_step: Callable[[Step], None],
    *,
    first: int,
    last: int,
) -> dict[str, float]:
    """Go once through the training set, and return the means of what was seen on the way."""
    settings = recipe.stage1 if learner.stage == 1 else recipe.stage2
    steps, epochs = len(batches), recipe.stage1.epochs + recipe.stage2.epochs
    losses, hits, seen, waited = 0.0, 0, 0, 0.0
    drawn = drawn_batches(
        chips.samples,
        [
            Draw(indices, derived_seed(recipe.seed, "views", epoch, step), fabric.global_rank * len(indices))
            for step, indices in enumerate(batches.batches(epoch))
        ],
        ahead=fabric.device.type != "cpu",
    )
    network.train()
    for step, (indices, inputs, waiting) in enumerate(drawn):
        waited += waiting
        place = (epoch - first) * steps + step
        learner.set_learning_rate(learning_rate(settings, place, (last - first) * steps))
        if learner.metric_loss is not None:
            learner.metric_loss.progress(place / ((last - first) * steps))
        _seed(fabric.device, derived_seed(recipe.seed, "network", epoch, step, fabric.global_rank))
        embeddings = network(inputs.to(fabric.device))
        embeddings, everywhere = _gathered(fabric, embeddings, indices)
        labels = torch.from_numpy(chips.labels[everywhere]).to(fabric.device)
        loss = learner.loss(embeddings, labels)
        if not torch.isfinite(loss):
            raise diverged(recipe, learner.stage, epoch + 1, "the loss is", _named(step, chips, everywhere))
        learner.optimizer.zero_grad()
        fabric.backward(loss)
        norm = torch.nn.utils.clip_grad_norm_(learner.trained(), recipe.optimizer.clip or math.inf)
        if not torch.isfinite(norm):  # a step along it would end the run, an epoch before anybody noticed
            raise diverged(recipe, learner.stage, epoch + 1, "the gradient is", _named(step, chips, everywhere))
        learner.optimizer.step()
        if learner.metric_loss is not None:
            learner.metric_loss.update(embeddings.detach(), labels)
        if running is not None:
            running.update(everywhere, embeddings)
        right = int((learner.identity.logits(embeddings.detach()).argmax(dim=1) == labels).sum())
        losses, hits, seen = losses + float(loss.detach()), hits + right, seen + len(labels)
        on_step(Step(learner.stage, epoch, step, steps, epochs, float(loss.detach()), right / len(labels)))
    return {"loss": losses / steps, "accuracy": hits / seen, "waited": waited}


def _seed(device: torch.device, seed: int) -> None:
    """Seed what a network draws in training; for a CPU without the traces that torch keeps for devices not in use."""
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def _gathered(fabric: Fabric, embeddings: Tensor, indices: NDArray[np.int64]) -> tuple[Tensor, NDArray[np.int64]]:
    """Return the embeddings of the whole batch, from all processes, with gradients; a loss compares all its pairs."""
    if fabric.world_size == 1:
        return embeddings, indices
    whole = fabric.all_gather(embeddings, sync_grads=True)
    everywhere = fabric.all_gather(torch.from_numpy(indices))
    assert isinstance(whole, Tensor)
    assert isinstance(everywhere, Tensor)
    return whole.flatten(0, 1), everywhere.flatten().cpu().numpy()


def _named(step: int, chips: TrainingSet, indices: NDArray[np.int64]) -> str:
    shown = ", ".join(chips.ids[index] for index in indices[:4])
    return f", batch {step + 1} (chips {shown} and {max(len(indices) - 4, 0)} more)"
