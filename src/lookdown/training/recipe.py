"""What a training run needs to know: the dataclasses are schema, defaults and manual in one."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from lookdown.chips.augmentation import Strengths
from lookdown.config import FreeTable, NonEmptyPath
from lookdown.errors import InputError
from lookdown.losses import make_loss
from lookdown.metrics import GaussianLikelihoodRatio, MixtureLikelihoodRatio
from lookdown.networks import Embedder
from lookdown.suggestions import did_you_mean

__all__ = [
    "RECIPES", "VIEWS", "Batches", "Data", "MetricChoice", "Network", "Optimizer", "Recipe", "Stage", "Stage1",
    "Stage2", "nearest_device", "recipe_file", "refuse_missing_device",
]  # fmt: skip

_INSTALLED = Path(__file__).parents[1] / "recipes"
RECIPES = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[3] / "recipes"  # in a wheel, in a checkout

VIEWS = (1, 4, 8)  # of a chip: as it is; its quarter turns; these and their mirror images
Stage = Literal[1, 2]
_SOURCES = ("auto", "wheel", "hub", "none")  # of weights; anything else is a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What is trained on."""

    manifest: NonEmptyPath  # written by `lookdown prepare`; a relative path starts where the command is typed
    held_out: float = 0.15  # share of the training places kept back, to validate on and to calibrate the metric

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 1:
            raise InputError(f"held_out must lie between 0 and 1, got {self.held_out}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The embedder; see docs/networks.md."""

    backbone: str = "tf_efficientnet_lite0"
    weights: str = "auto"
    bands: int = 3
    size: int = 112  # pixels
    pooling: Literal["average", "gem"] = "average"
    head: Literal["linear", "mlp"] = "mlp"
    dimension: int = 64

    def __post_init__(self) -> None:
        if self.dimension < 2:
            raise InputError(
                f"dimension must be at least 2, got {self.dimension}: the metric compares directions, and one number "
                "has only its sign"
            )

    def embedder(self, seed: int) -> Embedder:
        """Return the embedder that training begins with."""
        return Embedder(**asdict(self), seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """How a batch is drawn: `classes` kinds with `samples` chips each."""

    classes: int = 16
    samples: int = 4

    def __post_init__(self) -> None:
        if self.classes < 2 or self.samples < 2:
            raise InputError(
                "classes and samples must be at least 2, or a batch has no pairs of different classes or none of the "
                f"same class; got {self.classes} and {self.samples}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """Stochastic gradient descent."""

    momentum: float = 0.9
    weight_decay: float = 5e-4
    clip: float = 5.0  # largest norm of the gradient; 0 leaves it alone

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1 or self.weight_decay < 0 or self.clip < 0:
            raise InputError("momentum must be at least 0 and below 1, weight_decay and clip 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage1:
    """The identity loss alone (Algorithm 1)."""

    epochs: int = 15
    learning_rate: float = 0.05
    schedule: Literal["cosine", "constant"] = "cosine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage2:
    """A metric loss, plus alpha times the identity loss (Algorithm 2)."""

    epochs: int = 10
    learning_rate: float = 0.01
    schedule: Literal["cosine", "constant"] = "cosine"
    loss: str = "glrt"  # `identity` goes on as stage 1, at this learning rate
    options: FreeTable = field(default_factory=dict)  # of the loss
    alpha: float = 1.0
    # For losses that need them. exact: one pass over the training set before each epoch; running: one before the first
    # epoch, then the last embedding of each chip from training itself
    statistics: Literal["exact", "running"] = "exact"

    def __post_init__(self) -> None:
        make_loss(self.loss, self.options, classes=2, dimension=2)  # refuses unknown names and options


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricChoice:
    """The metric that the run ends with, and that the GLRT loss is trained by."""

    kind: Literal["gaussian", "mixture"] = "gaussian"
    shrinkage: float = 0.1
    weighting: Literal["pairs", "classes"] = "pairs"

    def __post_init__(self) -> None:
        if not 0 <= self.shrinkage <= 1:
            raise InputError(f"shrinkage must be a number from 0 to 1, got {self.shrinkage}")

    def fit(
        self, embeddings: NDArray[np.float64], labels: NDArray[np.int64], seed: int
    ) -> GaussianLikelihoodRatio | MixtureLikelihoodRatio:
        """Estimate the metric over all pairs of the embeddings."""
        if self.kind == "mixture":
            mixture = MixtureLikelihoodRatio(shrinkage=self.shrinkage, weighting=self.weighting, seed=seed)
            return mixture.fit(embeddings, labels)
        return GaussianLikelihoodRatio(shrinkage=self.shrinkage, weighting=self.weighting).fit(embeddings, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One reproducible experiment."""

    data: Data
    network: Network = field(default_factory=Network)
    trunk: Literal["finetune", "frozen"] = "frozen"
    views: int = 4  # of each chip for a frozen trunk: 1, 4 (quarter turns) or 8 (their mirror images, too)
    augmentation: Strengths = field(default_factory=Strengths)  # for a trunk that is fine-tuned
    batches: Batches = field(default_factory=Batches)
    optimizer: Optimizer = field(default_factory=Optimizer)
    stage1: Stage1 = field(default_factory=Stage1)
    stage2: Stage2 = field(default_factory=Stage2)
    metric: MetricChoice = field(default_factory=MetricChoice)
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    precision: Literal["32-true", "bf16-mixed"] = "32-true"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, stage in (("stage1", self.stage1), ("stage2", self.stage2)):
            if stage.epochs < 0 or stage.learning_rate <= 0:
                raise InputError(f"{name} needs epochs of 0 or more and a learning_rate above 0")
        if self.stage1.epochs + self.stage2.epochs == 0:
            raise InputError("both stages have no epochs; nothing would be trained")
        if self.views not in VIEWS:
            raise InputError(f"views must be 1, 4 or 8, got {self.views}")
        if self.seed < 0:
            raise InputError(f"seed must be 0 or more, got {self.seed}")

    def stage(self, number: Stage) -> Stage1 | Stage2:
        """Return the settings of a stage."""
        return self.stage1 if number == 1 else self.stage2

    def anchored(self) -> Recipe:
        """Return the recipe with absolute paths, as a run keeps it."""
        weights = self.network.weights
        return replace(
            self,
            data=replace(self.data, manifest=self.data.manifest.absolute()),
            network=replace(self.network, weights=weights if weights in _SOURCES else str(Path(weights).absolute())),
        )


def recipe_file(name: Path) -> Path:
    """Return the file of a recipe: one of the user's own, or one that comes with lookdown, by its name."""
    if name.exists():
        return name
    known = sorted(file.stem for file in RECIPES.glob("*.toml"))
    if name.stem in known and name in (Path(name.stem), Path("recipes") / f"{name.stem}.toml"):
        return RECIPES / f"{name.stem}.toml"
    raise InputError(f"{name} is neither a file nor a recipe of lookdown; {did_you_mean(name.stem, known)}")


def refuse_missing_device(wanted: str) -> None:
    """Raise InputError if the device is not available: training on the CPU instead could take weeks."""
    if wanted != "auto" and nearest_device(wanted).type != wanted:
        raise InputError(
            f'device = "{wanted}" is not available on this machine; use one that has it, or start a run with '
            "--set device=auto"
        )


def nearest_device(wanted: str) -> torch.device:
    """Return the device of a recipe if it is available, else the CPU: a laptop can use what a GPU has trained."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return torch.device(next((kind for kind in available if available[kind] and wanted in (kind, "auto")), "cpu"))
