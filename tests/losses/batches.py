"""Batches for the tests of losses, and one of each loss."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import torch
from torch import Tensor

from lookdown import GaussianLikelihoodRatio, MixtureLikelihoodRatio
from lookdown.errors import LowRankWarning
from lookdown.lab.synthetic.gaussian_world import GaussianWorld
from lookdown.losses import LOSSES, GLRTLoss, Loss, make_loss

CLASSES, DIMENSION = 5, 6
LABELS = (0, 3, 1, 0, 3, 3, 4, 1, 0, 2)  # of unequal sizes, not in order; 2 and 4 have one sample

# Every loss, and the settings of a loss in which its formula is another one.
SETTINGS: dict[str, dict[str, object]] = {
    **{name: {} for name in LOSSES},
    "identity without bias": {"bias": False},
    "triplet soft": {"margin": "soft"},
    "triplet raw": {"normalize": False, "margin": 5.0},
    "lifted raw": {"normalize": False},
    "instance means": {"rows": "means"},
    "contrastive raw": {"normalize": False, "margin": 20.0},
    "sp hardest": {"positive": "hardest"},
    "sp least-hard": {"positive": "least-hard"},
    "glrt paper": {"temperature": "paper"},
    "glrt mixture": {},
    "glrt raw": {},
}


def batch(seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Return raw embeddings whose classes overlap, so that every loss has something to do, and labels."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(CLASSES, DIMENSION))[list(LABELS)] + rng.normal(size=(len(LABELS), DIMENSION))
    return torch.tensor(2 * x, dtype=dtype), torch.tensor(LABELS)


@cache
def metric(kind: str, normalize: bool, indefinite: str = "clip") -> GaussianLikelihoodRatio | MixtureLikelihoodRatio:
    """Return a metric fitted on a world of its own."""
    X, y = GaussianWorld.random(DIMENSION).chips(12, 25, np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowRankWarning)
        if kind == "gaussian":
            gaussian = GaussianLikelihoodRatio(shrinkage=0.1, indefinite=indefinite, normalize=normalize)  # type: ignore[arg-type]
            return gaussian.fit(X, y)
        covariance = "diagonal" if kind == "diagonal mixture" else "full"
        mixture = MixtureLikelihoodRatio(2, 4, covariance, 2000, normalize=normalize, max_iter=20)  # type: ignore[arg-type]
        return mixture.fit(X, y)


def loss_for(setting: str, dtype: torch.dtype = torch.float64) -> Loss:
    """Return a loss that is ready for a batch: with statistics, with centers, half-way through its schedule."""
    loss = make_loss(setting.split()[0], SETTINGS[setting], classes=CLASSES, dimension=DIMENSION, seed=3).to(dtype)
    if isinstance(loss, GLRTLoss):
        loss.set_metric(metric("mixture" if "mixture" in setting else "gaussian", normalize="raw" not in setting))
    loss.update(*batch(1, dtype))
    loss.progress(0.05)
    return loss
