"""The interface of every loss, and the checks of its parameters."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, TypeVar

import torch
from torch import Tensor, nn

from lookdown.errors import InputError
from lookdown.losses.pairs import zero
from lookdown.metrics import Metric
from lookdown.metrics.inputs import as_count

__all__ = ["ClassLoss", "Loss", "flag", "initial_weights", "number", "one_of", "widened"]

T = TypeVar("T", bound=str)


class Loss(nn.Module, ABC):
    """A function of embeddings (batch, dimension) and integer labels (batch,) to a scalar; lower is better.

    Embeddings come raw from the network; a loss puts them on the unit sphere where its formula says so. The arithmetic
    is float32 (float64 for float64 embeddings), even under autocast or in half precision. A batch without the pairs
    that a loss needs gives zero, with zero gradients. NaN embeddings give a NaN loss instead of an error, so that the
    training loop can stop and name the batch.

    A training loop may call `progress`, `set_metric` and `update` for any loss: each does nothing unless the loss has
    a schedule, statistics or a memory. `state_dict` holds everything that they change.
    """

    needs_metric: ClassVar[bool] = False  # whether `set_metric` must come before the first batch

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch, without a change to the state of the loss."""
        self._check(embeddings, labels)
        with widened(embeddings) as x:
            return self._loss(x, labels.long()) + zero(x)  # NaN shows even where no pair uses it

    @abstractmethod
    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Evaluate the formula, in float32 or float64."""

    def progress(self, fraction: float) -> None:
        """Set the fraction of the training that is done, from 0 to 1; call it before each batch."""
        if not 0 <= fraction <= 1:
            raise InputError(f"progress is a fraction of the training from 0 to 1, got {fraction!r}")

    def set_metric(self, metric: Metric) -> None:
        """Copy the statistics of a fitted metric; call it after each new fit."""

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
        self.classes, self.dimension = as_count(classes, "classes"), as_count(dimension, "dimension")

    def _check(self, embeddings: Tensor, labels: Tensor) -> None:
        super()._check(embeddings, labels)
        if embeddings.shape[1] != self.dimension:
            raise InputError(
                f"the loss was made for {self.dimension} dimensions, the embeddings have {embeddings.shape[1]}; make "
                "a new one for this network"
            )
        low, high = (int(bound) for bound in labels.long().aminmax())
        if low < 0 or high >= self.classes:
            raise InputError(
                f"labels go from 0 to {self.classes - 1} for {self.classes} classes, the batch has "
                f"{low if low < 0 else high}; number the training classes from 0"
            )


@contextmanager
def widened(embeddings: Tensor) -> Iterator[Tensor]:
    """Yield embeddings in float32 (float64 for float64), with autocast switched off."""
    with torch.autocast(embeddings.device.type, enabled=False):
        yield embeddings if embeddings.dtype == torch.float64 else embeddings.float()


def number(
    name: str, value: object, *, above: float = -math.inf, least: float = -math.inf, most: float = math.inf
) -> float:
    """Return a finite number within bounds, or refuse the parameter by name."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{name} must be a number, got {value!r}")
    if not (value > above and least <= value <= most):
        bounds = {"above": above, "at least": least, "at most": most}
        wanted = " and ".join(f"{words} {bound:g}" for words, bound in bounds.items() if math.isfinite(bound))
        raise InputError(f"{name} must be {wanted}, got {value!r}")
    return float(value)


def flag(name: str, value: object) -> bool:
    """Return true or false, or refuse the parameter by name."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be true or false, got {value!r}")
    return value


def one_of(name: str, value: T, *known: str) -> T:
    """Return a value that is among the known ones, or refuse the parameter by name."""
    if value not in known:
        raise InputError(f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}")
    return value


def initial_weights(rows: int, columns: int, seed: int) -> Tensor:
    """Draw uniform weights within 1/sqrt(columns), as `torch.nn.Linear` does, from a generator of their own."""
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InputError(f"seed must be a whole number, got {seed!r}")
    bound = 1 / math.sqrt(columns)
    return torch.empty(rows, columns).uniform_(-bound, bound, generator=torch.Generator().manual_seed(seed))
