"""The GLRT loss against pytorch-metric-learning's circle loss, forward and backward, at the same batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_metric_learning.losses import CircleLoss as PeerLoss
from torch import Tensor, nn

from lookdown.losses import CircleLoss, GLRTLoss
from lookdown.metrics import Metric, MixtureLikelihoodRatio
from sidebyside import QUICK, Row, compare, report

PEER = "pytorch-metric-learning CircleLoss"
DIMENSION = 64
PER_CLASS = 4  # images of a class in a batch
REPEATS = {64: 2, 512: 1} if QUICK else {64: 40, 512: 4}  # so that a turn takes tens of milliseconds


def chips(classes: int, rng: np.random.Generator, count: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return embeddings of classes that overlap, and labels."""
    y = np.arange(count) % classes
    return rng.normal(size=(classes, DIMENSION))[y] + rng.normal(size=(count, DIMENSION)), y


def step(loss: nn.Module, x: Tensor, y: Tensor, repeats: int) -> Callable[[], None]:
    """Return a function that goes forward and backward some times."""

    def run() -> None:
        for _ in range(repeats):
            x.grad = None
            loss(x, y).backward()
        assert x.grad is not None
        assert x.grad.any()

    return run


def rows(batch: int, metrics: dict[str, Metric], rng: np.random.Generator) -> list[Row]:
    """Compare at one size of batch; the mixture works eleven densities out where the Gaussian has one form."""
    X, labels = chips(batch // PER_CLASS, rng, batch)
    x, y = torch.tensor(X, dtype=torch.float32, requires_grad=True), torch.tensor(labels)
    ours, theirs = CircleLoss(), PeerLoss()
    torch.testing.assert_close(ours(x, y), theirs(x, y), rtol=1e-4, atol=0)  # the peer does what it should
    measured = []
    for name, metric in metrics.items():
        loss = GLRTLoss()
        loss.set_metric(metric)
        limit = 1.2 if name == "Gaussian" else 3
        work = step(loss, x, y, REPEATS[batch]), step(theirs, x, y, REPEATS[batch])
        measured.append(compare(f"GLRT loss, {name}, batch {batch}", work[0], PEER, work[1], limit=limit, turns=15))
    work = step(ours, x, y, REPEATS[batch]), step(theirs, x, y, REPEATS[batch])
    return [*measured, compare(f"circle loss, batch {batch}", work[0], PEER, work[1], limit=1.2, turns=15)]


def main() -> None:
    """Measure with one thread."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X, y = chips(20, rng, 2558)
    metrics = {
        "Gaussian": GLRTLoss.default_metric().fit(X, y),
        "mixture of 1 and 10": MixtureLikelihoodRatio(1, 10, pairs=4000, shrinkage=0.1, max_iter=20).fit(X, y),
    }
    print(f"{DIMENSION} dimensions, float32, {PER_CLASS} images a class; steps a turn at each batch: {REPEATS}\n")
    report("Losses, forward and backward", [row for batch in REPEATS for row in rows(batch, metrics, rng)])


if __name__ == "__main__":
    main()
