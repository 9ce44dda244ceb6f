"""Domains on a frozen trunk: features made once, heads trained on some classes or on another domain, in seconds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from lookdown.chips.manifest import Manifest
from lookdown.chips.protocols import Split, uda
from lookdown.errors import LowRankWarning
from lookdown.evaluation import evaluate
from lookdown.metrics import GaussianLikelihoodRatio, Metric
from lookdown.networks import Embedder
from lookdown.training.features import FrozenFeatures, frozen_features
from lookdown.training.loop import Epoch, run_stages
from lookdown.training.recipe import Recipe
from lookdown.training.samples import FeatureSamples
from lookdown.training.training_data import TrainingSet

__all__ = [
    "HEADS",
    "Case",
    "Domain",
    "Head",
    "Roles",
    "divide",
    "fitted_ratio",
    "read_domain",
    "trained_cases",
    "validation_roles",
]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Head = Literal["identity", "glrt"]
HEADS: tuple[Head, ...] = ("identity", "glrt")
Protocol = Callable[..., Split]


@dataclass(frozen=True, slots=True)
class Domain:
    """Every chip of a data set, objects and background, with the features of a frozen trunk."""

    name: str
    features: FrozenFeatures
    ids: NDArray[np.str_]
    labels: NDArray[np.str_]  # empty for background
    groups: NDArray[np.str_]
    background: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Roles:
    """Rows that train, ask and are searched."""

    train: Rows
    query: Rows
    gallery: Rows

    @property
    def target(self) -> Rows:
        """What adaptation sees: queries and gallery, background and all."""
        return np.concatenate([self.query, self.gallery])


@dataclass(frozen=True, slots=True)
class Case:
    """Embeddings of a target domain, and the metric of the source that the head was trained on."""

    domain: Domain
    roles: Roles
    embeddings: Array  # of all chips of the domain
    source: Metric

    @property
    def target(self) -> Array:
        """Embeddings that adaptation sees."""
        return self.embeddings[self.roles.target]

    @property
    def target_labels(self) -> NDArray[np.str_]:
        """Their true labels; background is a class of its own."""
        return self.domain.labels[self.roles.target]

    def mean_average_precision(self, metric: Metric) -> float:
        """Return how well queries find their class, in percent."""
        asked, searched = self.roles.query, self.roles.gallery
        found = evaluate(
            metric,
            self.embeddings[asked],
            self.domain.labels[asked].tolist(),
            self.embeddings[searched],
            self.domain.labels[searched].tolist(),
            self.domain.background[searched],
        )
        return 100 * found.mean_average_precision


def read_domain(folder: Path, recipe: Recipe) -> Domain:
    """Return a domain that was prepared with `--split none`; features are kept beside its manifest."""
    manifest = Manifest.read(folder)
    features = frozen_features(
        recipe.network.embedder(recipe.seed), manifest.paths, folder / "features", views=recipe.views
    )
    columns = {name: np.array(manifest.table[name].to_pylist())[features.indices] for name in ("id", "scene_group")}
    background = np.asarray(manifest.background)[features.indices]
    labels = np.array([manifest.labels[row] or "" for row in features.indices])
    rows = replace(features, indices=np.arange(len(labels)))
    return Domain(
        folder.name, rows, columns["id"], np.where(background, "", labels), columns["scene_group"], background
    )


def divide(domain: Domain, seed: int, rows: Rows | None = None, protocol: Protocol = uda) -> Roles:
    """Divide (some) rows so that no class and no place trains and is tested; `conventional` shares the classes."""
    some = np.arange(len(domain.labels)) if rows is None else rows
    split = protocol(
        domain.ids[some].tolist(),
        [label or None for label in domain.labels[some].tolist()],
        domain.groups[some].tolist(),
        domain.background[some].tolist(),
        seed=seed,
    )
    given = np.array([role or "" for role in split.roles])
    return Roles(*(some[given == role] for role in ("train", "query", "gallery")))


def validation_roles(domain: Domain, seed: int) -> Roles:
    """Divide what trains once more, by classes and places: the test is not looked at.

    Background of places that train is in no role of the test, so that it can be searched here.
    """
    whole = divide(domain, seed)
    used = np.zeros(len(domain.labels), np.bool_)
    used[whole.target] = True
    places = np.isin(domain.groups, domain.groups[whole.train])
    rows = np.union1d(whole.train, np.flatnonzero(domain.background & places & ~used))
    return divide(domain, seed, rows)


def trained_cases(
    source: Domain, train: Rows, targets: Sequence[tuple[Domain, Roles]], recipe: Recipe, seed: int, kept: Path
) -> dict[Head, list[Case]]:
    """Train a head on rows of the source; return the targets as it embeds them, after stage 1 and after stage 2.

    Embeddings are kept in the file `kept`, so that a study that was stopped goes on where it was.
    """
    if not kept.is_file():
        arrays = _trained(source, train, [domain for domain, _ in targets], replace(recipe, seed=seed))
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_name(f".{kept.name}.part")
        save_file(arrays, part)
        part.rename(kept)
    stored = load_file(kept)
    cases: dict[Head, list[Case]] = {}
    for head in HEADS:
        metric = fitted_ratio(stored[f"{head} source"], source.labels[train])
        cases[head] = [
            Case(domain, roles, stored[f"{head} {place}"], metric) for place, (domain, roles) in enumerate(targets)
        ]
    return cases


def fitted_ratio(X: Array, labels: NDArray[np.str_]) -> GaussianLikelihoodRatio:
    """Return the likelihood ratio of labelled embeddings; few classes give a low rank, which is part of the study."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowRankWarning)
        return GaussianLikelihoodRatio(shrinkage=0.1).fit(X, labels)


def _trained(source: Domain, train: Rows, targets: Sequence[Domain], recipe: Recipe) -> dict[str, Array]:
    """Return the embeddings of the source's rows and of each target, by stage."""
    embedder = recipe.network.embedder(recipe.seed)
    codes = np.unique(source.labels[train], return_inverse=True)[1].astype(np.int64)
    chips = TrainingSet(FeatureSamples(source.features, train), codes, source.ids[train].tolist())
    found: dict[str, Array] = {}

    def keep(epoch: Epoch) -> None:
        if epoch.epoch in (recipe.stage1.epochs, recipe.stage1.epochs + recipe.stage2.epochs):
            head = HEADS[epoch.stage - 1]
            with embedder.evaluating():
                found[f"{head} source"] = _embed(embedder, source)[train]
                found.update({f"{head} {place}": _embed(embedder, domain) for place, domain in enumerate(targets)})

    run_stages(recipe, embedder, chips, Fabric(accelerator="cpu", devices=1), start=None, on_epoch=keep)
    return found


def _embed(embedder: Embedder, domain: Domain) -> Array:
    with torch.inference_mode():
        return np.asarray(embedder.head(torch.from_numpy(np.array(domain.features.array[0]))).double().numpy())
