"""How well losses and metrics find the chips of a world, all of them seen once by the trunk that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookdown.adaptation import Adaptation, adapt
from lookdown.chips.manifest import Manifest
from lookdown.evaluation import Evaluation, evaluate
from lookdown.lab.paper.figure_1 import PairScores
from lookdown.metrics import Cosine, Metric, load_metric, top_k
from lookdown.networks.stored_embedder import load_embedder
from lookdown.progress import Progress
from lookdown.training.frozen_features import FrozenFeatures, frozen_features
from lookdown.training.learner import TrainableNetwork
from lookdown.training.samples import FeatureSamples, embed_all

__all__ = [
    "ADAPTED",
    "COSINE",
    "RATIO",
    "Approach",
    "WorldChips",
    "adapted_approach",
    "approach_of",
    "cosine_approach",
    "ratio_approach",
    "see_chips",
]

COSINE, RATIO, ADAPTED = "cosine", "likelihood ratio", "adapted"
Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class WorldChips:
    """The chips of a world that ask and those that are searched."""

    manifest: Manifest
    features: FrozenFeatures

    @cached_property
    def labels(self) -> NDArray[np.str_]:
        """The class of each, empty for background."""
        return np.array([label or "" for label in self.manifest.labels])

    @property
    def asked(self) -> Rows:
        """Rows of the queries."""
        return self._with_role("query")

    @property
    def searched(self) -> Rows:
        """Rows of the gallery."""
        return self._with_role("gallery")

    def embeddings(self, run: Path, turn: int = 0) -> Array:
        """Return what the network of a run makes of them, as they lie or turned."""
        embedder = load_embedder(run / "embedder")
        samples = FeatureSamples(self.features, np.arange(len(self.manifest)))
        return embed_all(TrainableNetwork(embedder, frozen=True), samples, embedder.settings.dimension, turn)

    def _with_role(self, role: str) -> Rows:
        return np.flatnonzero(np.array(self.manifest.table["role"].to_pylist()) == role)


@dataclass(frozen=True)
class Approach:
    """A loss to train by and a metric to compare by."""

    loss: str  # as recipes name it
    rule: str
    chips: WorldChips
    metric: Metric
    embeddings: Array

    @property
    def title(self) -> str:
        """The loss as a reader knows it."""
        return "GLRT loss" if self.loss == "glrt" else f"{self.loss} loss"

    @property
    def name(self) -> str:
        """The loss, and how it is compared."""
        return f"{self.title}, {self.rule}"

    @cached_property
    def evaluation(self) -> Evaluation:
        """How well queries find their class in the gallery."""
        asked, searched, labels = self.chips.asked, self.chips.searched, self.chips.labels
        return evaluate(
            self.metric,
            self.embeddings[asked],
            labels[asked].tolist(),
            self.embeddings[searched],
            labels[searched].tolist(),
            labels[searched] == "",
            groups=np.array(self.chips.manifest.groups)[asked].tolist(),
        )

    @cached_property
    def pair_scores(self) -> PairScores:
        """Scores of every query with every chip of the gallery."""
        asked, searched, labels = self.chips.asked, self.chips.searched, self.chips.labels
        scores = np.asarray(self.metric.score(self.embeddings[asked], self.embeddings[searched]), np.float64)
        same = labels[asked][:, None] == labels[searched]
        axis = "cosine" if isinstance(self.metric, Cosine) else "log-likelihood ratio"
        return PairScores(self.name, axis, scores[same], scores[~same])

    def first(self, query: int, k: int = 10) -> Rows:
        """Return the rows of the first results of a query, best first."""
        searched = self.chips.searched
        nearest = top_k(self.metric, self.embeddings[[query]], self.embeddings[searched], k)
        return np.asarray(searched[nearest.indices[0]])


def see_chips(world: Path, run: Path, *, views: int, progress: Progress) -> WorldChips:
    """Let the trunk of a run see the queries and the gallery of a world, once for all runs that share it."""
    manifest = Manifest.read(world).with_role("query", "gallery")
    embedder = load_embedder(run / "embedder")
    return WorldChips(
        manifest, frozen_features(embedder, manifest.paths, world / "features", views=views, progress=progress)
    )


def cosine_approach(chips: WorldChips, run: Path, loss: str) -> Approach:
    """Return a loss compared by the cosine."""
    embeddings = chips.embeddings(run)
    return Approach(loss, COSINE, chips, Cosine().fit(embeddings), embeddings)


def ratio_approach(chips: WorldChips, run: Path, loss: str) -> Approach:
    """Return a loss compared by the likelihood ratio of its training chips."""
    return Approach(loss, RATIO, chips, load_metric(run / "metric"), chips.embeddings(run))


def adapted_approach(chips: WorldChips, run: Path, loss: str) -> tuple[Approach, Adaptation]:
    """Return a loss compared by its ratio, adapted to the chips without a look at their labels."""
    each = [chips.embeddings(run, turn) for turn in range(4)]
    adaptation = adapt(load_metric(run / "metric"), each[0], cluster_by=np.mean(each, axis=0))
    return Approach(loss, ADAPTED, chips, adaptation.metric, each[0]), adaptation


def approach_of(approaches: Sequence[Approach], loss: str, rule: str) -> Approach:
    """Return the approach of a loss and a rule."""
    return next(approach for approach in approaches if (approach.loss, approach.rule) == (loss, rule))
