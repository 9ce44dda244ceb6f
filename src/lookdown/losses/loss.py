"""What every loss can do: turn a batch into a number, and be told of what happens around it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import torch
from torch import Tensor, nn

from lookdown.errors import InputError
from lookdown.losses.pairs import zero
from lookdown.metrics import Metric

__all__ = ["ClassLoss", "Loss", "widened"]


class Loss(nn.Module, ABC):
    """embeddings (batch, dimension) and integer labels (batch,) to a scalar; lower is better.

    Embeddings come raw, as the network gives them: a loss puts them on the unit sphere where its formula says so. The
    arithmetic is float32 (float64 for float64 embeddings), whatever autocast or half precision surrounds it. A batch
    without the pairs that a loss needs gives zero, with zero gradients. NaN embeddings are not refused: the loss is
    then NaN, so that the training loop can stop and name the batch.

    A training loop that calls `progress`, `set_metric` and `update` at their times need not know which loss it holds;
    each does nothing unless the loss has a schedule, statistics or a memory. All that they leave is in `state_dict`.
    """

    needs_metric: ClassVar[bool] = False  # whether `set_metric` must come before the first batch

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch; nothing that the loss remembers changes."""
        self._check(embeddings, labels)
        with widened(embeddings) as x:
            return self._loss(x, labels.long()) + zero(x)  # NaN shows even where no pair uses it

    @abstractmethod
    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Work out the formula, in float32 or float64."""

    def progress(self, fraction: float) -> None:
        """Take note that this fraction of the training is done, from 0 to 1; call it before a batch."""
        if not 0 <= fraction <= 1:
            raise InputError(f"progress is a fraction of the training from 0 to 1, got {fraction!r}")

    def set_metric(self, metric: Metric) -> None:
        """Take the statistics of a fitted metric; call it when they were estimated anew."""

    def update(self, embeddings: Tensor, labels: Tensor) -> None:
        """Remember a batch; call it after the optimizer's step."""
        self._check(embeddings, labels)

    def _check(self, embeddings: Tensor, labels: Tensor) -> None:
        if embeddings.ndim != 2 or not embeddings.is_floating_point() or not embeddings.numel():
            raise InputError(
                "a loss takes a batch of embeddings as a floating-point matrix of samples by dimensions; got "
                f"{embeddings.dtype} of shape {tuple(embeddings.shape)}"
            )
        if labels.shape != embeddings.shape[:1]:
            raise InputError(
                f"a batch of {len(embeddings)} embeddings needs {len(embeddings)} labels in one dimension; got shape "
                f"{tuple(labels.shape)}"
            )
        if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
            raise InputError(f"labels are integers, one a class; got {labels.dtype}, so convert them first")


class ClassLoss(Loss):
    """A loss that keeps something for each class; labels are class indices from 0 to classes - 1."""

    def __init__(self, classes: int, dimension: int) -> None:
        super().__init__()
        for name, value in (("classes", classes), ("dimension", dimension)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} is a whole number of at least 1, got {value!r}")
        self.classes, self.dimension = classes, dimension

    def _check(self, embeddings: Tensor, labels: Tensor) -> None:
        super()._check(embeddings, labels)
        if embeddings.shape[1] != self.dimension:
            raise InputError(
                f"the loss was made for {self.dimension} dimensions, the embeddings have {embeddings.shape[1]}; make "
                "it anew for this network"
            )
        low, high = (int(bound) for bound in labels.long().aminmax())
        if low < 0 or high >= self.classes:
            raise InputError(
                f"labels go from 0 to {self.classes - 1} for {self.classes} classes, the batch has "
                f"{low if low < 0 else high}; number the training classes from 0"
            )


@contextmanager
def widened(embeddings: Tensor) -> Iterator[Tensor]:
    """Give embeddings in float32 (float64 for float64), and keep autocast away from what is done with them."""
    with torch.autocast(embeddings.device.type, enabled=False):
        yield embeddings if embeddings.dtype == torch.float64 else embeddings.float()
