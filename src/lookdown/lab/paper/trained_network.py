"""Networks trained on some rows of a domain: each once, under a fingerprint of all that decides it."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from lookdown.atomic import replacing
from lookdown.config import to_toml
from lookdown.errors import LowRankWarning
from lookdown.evaluation import Evaluation, evaluate
from lookdown.lab.paper.domains import Domain, Roles, Rows
from lookdown.losses import LOSSES
from lookdown.metrics import GaussianLikelihoodRatio, Metric
from lookdown.networks import Embedder
from lookdown.training.learner import TrainableNetwork
from lookdown.training.loop import Epoch, run_stages
from lookdown.training.recipe import Data, MetricChoice, Recipe, Stage2
from lookdown.training.recipe import Network as NetworkSettings
from lookdown.training.run_folder import Checkpoint, last_checkpoint, write_checkpoint
from lookdown.training.samples import embed_all
from lookdown.training.training_data import TrainingSet

__all__ = ["Case", "TrainedNetwork", "fitted_ratio", "train_on"]

Array = NDArray[np.float64]
Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TrainedNetwork:
    """A network in a folder: its weights, and the embeddings it has made so far."""

    path: Path
    recipe: Recipe

    def embedder(self) -> Embedder:
        """Return the whole network, to see other images than those of a domain."""
        embedder = _fresh(self.recipe)
        self._load(embedder)
        return embedder.eval()

    def steady_embeddings(self, domain: Domain, rows: Rows) -> Array:
        """Return the mean over four quarter turns of some chips, which changes little with the heading of an object."""
        turns = 4 if self.recipe.trunk == "finetune" else min(4, self.recipe.views)  # of a frozen trunk, what is cached
        turned = [self._kept(domain, rows, turn) for turn in range(1, turns)]
        return np.asarray(np.mean([self.embeddings(domain)[rows], *turned], axis=0))

    def embeddings(self, domain: Domain) -> Array:
        """Return the embeddings of every chip of a domain, made once and kept."""
        return self._kept(domain, np.arange(len(domain)), 0)

    def _kept(self, domain: Domain, rows: Rows, turn: int) -> Array:
        """Return the embeddings of some chips, as they are or turned."""
        turned = f"-turned-{turn}-{hashlib.sha256(rows.tobytes()).hexdigest()[:16]}" if turn else ""
        kept = self.path / f"embeddings-{domain.fingerprint[:16]}{turned}.safetensors"
        if not kept.is_file():
            network = self._load(_fresh(self.recipe))
            embeddings = embed_all(network, domain.samples(rows), self.recipe.network.dimension, turn)
            with replacing(kept) as temporary:
                save_file({"embeddings": embeddings}, temporary)
        return load_file(kept)["embeddings"]

    def _load(self, embedder: Embedder) -> TrainableNetwork:
        whole = last_checkpoint(self.path)
        assert whole is not None
        network = TrainableNetwork(embedder, frozen=self.recipe.trunk == "frozen")
        start = "network."
        network.load_state_dict(
            {name.removeprefix(start): value for name, value in whole.tensors.items() if name.startswith(start)}
        )
        return network


@dataclass(frozen=True, slots=True)
class Case:
    """Embeddings of a target domain, and the metric of the source that the network was trained on."""

    domain: Domain
    roles: Roles
    embeddings: Array  # of all chips of the domain
    source: Metric
    steady: Callable[[], Array]  # of the target, changing little with the heading; made when they are asked for
    validation: Callable[[], Case | None] = lambda: None  # the same on a validation split that holds kinds of training

    @property
    def target(self) -> Array:
        """Embeddings that adaptation sees."""
        return self.embeddings[self.roles.target]

    @property
    def steady_target(self) -> Array:
        """What clusters of the target are found by."""
        return self.steady()

    @property
    def target_labels(self) -> NDArray[np.str_]:
        """Their true labels; background is a class of its own."""
        return self.domain.labels[self.roles.target]

    def evaluate(self, metric: Metric) -> Evaluation:
        """Return how well queries find their class in the gallery."""
        asked, searched = self.roles.query, self.roles.gallery
        return evaluate(
            metric,
            self.embeddings[asked],
            self.domain.labels[asked].tolist(),
            self.embeddings[searched],
            self.domain.labels[searched].tolist(),
            self.domain.background[searched],
            groups=self.domain.groups[asked].tolist(),
        )

    def mean_average_precision(self, metric: Metric) -> float:
        """Return the same as one number, in percent."""
        return 100 * self.evaluate(metric).mean_average_precision


def train_on(domain: Domain, rows: Rows, recipe: Recipe, runs: Path, note: Step = lambda line: None) -> TrainedNetwork:
    """Train by a recipe on rows of a domain, or take what was trained before; work that was stopped goes on.

    Recipes that differ in stage 2 alone share their first stage, so that losses are compared from the same start.
    """
    alone = replace(recipe, data=Data(manifest=Path("-")))
    if not LOSSES[recipe.stage2.loss].needs_metric:
        alone = replace(alone, metric=MetricChoice())  # the network knows nothing of it
    first = replace(alone, stage2=Stage2(epochs=0), metric=MetricChoice())
    start = None
    if recipe.stage1.epochs and recipe.stage2.epochs:
        done = _stages(domain, rows, first, runs, None, note)
        start = last_checkpoint(done.path)
    return _stages(domain, rows, alone if recipe.stage2.epochs else first, runs, start, note)


def fitted_ratio(X: Array, labels: NDArray[np.str_], recipe: Recipe | None = None) -> GaussianLikelihoodRatio:
    """Return the likelihood ratio of labelled embeddings; few classes give a low rank, which is part of the study."""
    weighting = recipe.metric.weighting if recipe else "pairs"
    shrinkage = recipe.metric.shrinkage if recipe else 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowRankWarning)
        return GaussianLikelihoodRatio(shrinkage=shrinkage, weighting=weighting).fit(X, labels)


def _fresh(recipe: Recipe) -> Embedder:
    """Return an embedder as training begins with it; its trunk is read once."""
    return deepcopy(_read_embedder(recipe.network, recipe.seed))


@lru_cache(maxsize=8)
def _read_embedder(network: NetworkSettings, seed: int) -> Embedder:
    return network.embedder(seed)


def _stages(
    domain: Domain, rows: Rows, recipe: Recipe, runs: Path, start: Checkpoint | None, note: Step
) -> TrainedNetwork:
    path = runs / _fingerprint(domain, rows, recipe)
    epochs = recipe.stage1.epochs + recipe.stage2.epochs
    kept = last_checkpoint(path)
    if kept is not None and kept.epoch == epochs:
        return TrainedNetwork(path, recipe)
    embedder = _fresh(recipe)
    codes = np.unique(domain.labels[rows], return_inverse=True)[1].astype(np.int64)
    chips = TrainingSet(domain.samples(rows), codes, domain.ids[rows].tolist())

    def keep(epoch: Epoch) -> None:
        if epoch.epoch < epochs and recipe.trunk == "frozen":
            return  # all of it is seconds
        loss = recipe.stage2.loss if recipe.stage2.epochs else "first stage"
        note(f"{domain.name}, {loss}, seed {recipe.seed}: epoch {epoch.epoch} of {epochs}")
        tensors = epoch.learner.state()
        if epoch.epoch == epochs:  # what follows begins with a momentum of its own
            tensors = {name: value for name, value in tensors.items() if not name.startswith("momentum.")}
        elif epoch.running is not None:
            tensors["running"] = torch.from_numpy(epoch.running.copy())
        write_checkpoint(path, epoch.epoch, tensors, {"stage": epoch.stage})

    fabric = Fabric(accelerator=recipe.device, devices=1, precision=recipe.precision)
    run_stages(recipe, embedder, chips, fabric, start=kept or start, on_epoch=keep)
    return TrainedNetwork(path, recipe)


def _fingerprint(domain: Domain, rows: Rows, recipe: Recipe) -> str:
    digest = hashlib.sha256(to_toml(recipe).encode())
    digest.update(domain.fingerprint.encode())
    digest.update(np.asarray(rows, np.int64).tobytes())
    digest.update(f"torch {version('torch')}, numpy {version('numpy')}".encode())
    if recipe.trunk == "finetune":  # the features of a frozen trunk are part of the domain
        digest.update(_read_embedder(recipe.network, recipe.seed).trunk_fingerprint.encode())
    return digest.hexdigest()[:20]
