"""The GLRT loss (Eq. 12 of the paper): the unified loss on the estimated log-likelihood ratio."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lookdown.errors import InputError, NotFittedError
from lookdown.losses.loss import Loss, number, widened
from lookdown.losses.metric_statistics import Statistics, statistics_like, statistics_of
from lookdown.losses.pairs import Pairs, zero
from lookdown.losses.unified import contrast
from lookdown.metrics import GaussianLikelihoodRatio, Metric, MixtureLikelihoodRatio

__all__ = ["GLRTLoss"]


class GLRTLoss(Loss):
    """log( 1 + sum over different pairs n and same pairs p of e^(e_n - e_p) ), all unordered pairs of the batch.

    With s the log-likelihood ratio of a fitted metric, whose statistics are constants here,
    e = temperature (s(x) - s(0)) / mean over different pairs of (s(0) - s(x)); for a Gaussian metric that is
    -temperature x'Mx / trace(M S0). It has no scale of its own, so longer embeddings do not lower the loss.

    temperature: a number, or `paper` for e = nu 2 s(x), the paper's score with the right sign.
    nu: the scale of the paper's score; ignored unless `temperature` is `paper`.

    >>> import lookdown, numpy as np, torch
    >>> X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 6
    >>> loss = lookdown.GLRTLoss()
    >>> loss.set_metric(loss.default_metric().fit(X + np.eye(6, 4)[y], y))
    >>> x = torch.tensor(X, requires_grad=True)
    >>> loss(x, torch.tensor(y)).backward()
    >>> bool(x.grad.any())
    True
    """

    needs_metric = True
    statistics: Statistics | None
    _device_and_type: Tensor

    def __init__(self, *, temperature: float | Literal["paper"] = 8.0, nu: float = 0.001) -> None:
        super().__init__()
        self.temperature = temperature if temperature == "paper" else number("temperature", temperature, above=0)
        self.nu = number("nu", nu, above=0)
        self.statistics = None
        self.register_buffer("_device_and_type", torch.empty(0), persistent=False)  # of the statistics
        self.register_load_state_dict_pre_hook(_make_room)  # type: ignore[no-untyped-call]

    @staticmethod
    def default_metric() -> GaussianLikelihoodRatio:
        """Return an unfitted metric whose statistics train well: unit embeddings, shrinkage 0.1."""
        return GaussianLikelihoodRatio(shrinkage=0.1, normalize=True)

    def set_metric(self, metric: Metric) -> None:
        """Copy the statistics of a metric that was fitted on the training set."""
        if not isinstance(metric, GaussianLikelihoodRatio | MixtureLikelihoodRatio):
            raise InputError(
                f"the GLRT loss takes a GaussianLikelihoodRatio or a MixtureLikelihoodRatio, got "
                f"{type(metric).__name__}"
            )
        metric._require_fit()
        statistics = statistics_of(metric)
        spread = float(statistics.spread)
        if self.temperature != "paper" and not (spread > 0 and math.isfinite(spread)):
            raise InputError(
                "different pairs score no lower than equal embeddings, so the metric gives no direction to train "
                "in; check the labels, or fit the metric with indefinite='clip' or fewer components"
            )
        self.statistics = statistics.to(self._device_and_type)

    def scores(self, embeddings: Tensor) -> Tensor:
        """Return the (batch, batch) log-likelihood ratios that `metric.score` gives, with gradients."""
        statistics = self._fitted(embeddings)
        with widened(embeddings) as x:
            return statistics.gains(x) + statistics.origin.to(x.dtype)

    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        statistics = self._fitted(embeddings)
        pairs = Pairs.of(labels)
        if not pairs.are_of_both_kinds:
            return zero(embeddings)
        scale = 2 * self.nu if isinstance(self.temperature, str) else self.temperature / statistics.spread
        return contrast(scale * statistics.gains(embeddings), pairs)

    def _fitted(self, embeddings: Tensor) -> Statistics:
        if self.statistics is None:
            raise NotFittedError("the GLRT loss has no statistics yet; call set_metric with a fitted metric first")
        if embeddings.shape[1] != self.statistics.dimension:
            raise InputError(
                f"the metric was fitted on {self.statistics.dimension} dimensions, the embeddings have "
                f"{embeddings.shape[1]}; fit it on embeddings of this network"
            )
        return self.statistics


def _make_room(module: nn.Module, state: Mapping[str, Tensor], prefix: str, *_: Any) -> None:
    """Give the module statistics of the stored kind and shape before a state is loaded.

    A state without statistics leaves those of the module, which is an error of torch unless `strict=False`.
    """
    assert isinstance(module, GLRTLoss)
    start = f"{prefix}statistics."
    stored = {name.removeprefix(start): tensor for name, tensor in state.items() if name.startswith(start)}
    if stored:
        module.statistics = statistics_like(stored).to(module._device_and_type)
