"""Embeddings of the whole training set, by a pass of their own or from the epoch itself, and the metric on them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lookdown.metrics import GaussianLikelihoodRatio, MixtureLikelihoodRatio
from lookdown.training.recipe import MetricChoice
from lookdown.training.samples import Samples

__all__ = ["RunningEmbeddings", "embed_all", "fit_metric"]

Array = NDArray[np.float64]


def fit_metric(
    choice: MetricChoice, embeddings: Array, labels: NDArray[np.int64], seed: int
) -> GaussianLikelihoodRatio | MixtureLikelihoodRatio:
    """Estimate the metric of a recipe, over all pairs of the embeddings."""
    if choice.kind == "mixture":
        mixture = MixtureLikelihoodRatio(shrinkage=choice.shrinkage, weighting=choice.weighting, seed=seed)
        return mixture.fit(embeddings, labels)
    gaussian = GaussianLikelihoodRatio(shrinkage=choice.shrinkage, weighting=choice.weighting)
    return gaussian.fit(embeddings, labels)


def embed_all(network: nn.Module, samples: Samples, dimension: int, turn: int = 0) -> Array:
    """Return the embeddings of all chips, as they are or after some quarter turns, in one pass in evaluation mode."""
    embeddings = np.empty((len(samples), dimension))
    training, device = network.training, next(network.parameters()).device
    network.eval()
    with torch.inference_mode():
        for indices, inputs in samples.plain(turn):
            embeddings[indices] = network(inputs.to(device)).cpu().double().numpy()  # Apple's GPUs have no float64
    network.train(training)
    return embeddings


class RunningEmbeddings:
    """The last embedding of each chip from training itself, which saves a pass."""

    def __init__(self, embeddings: Array) -> None:
        self.embeddings = embeddings

    def update(self, indices: NDArray[np.int64], embeddings: Tensor) -> None:
        """Remember a batch."""
        self.embeddings[indices] = embeddings.detach().cpu().double().numpy()
