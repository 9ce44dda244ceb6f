"""The GLRT loss (Eq. 12 of the paper): the unified loss on the estimated log-likelihood ratio.

The statistics of a fitted metric are constants in torch here: scores of all pairs of a batch have gradients for the
embeddings alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import softplus

from lookdown.errors import InputError, NotFittedError
from lookdown.losses.loss import Loss, number, widened
from lookdown.losses.pairs import Pairs, unit, zero
from lookdown.losses.unified import contrast
from lookdown.metrics import GaussianLikelihoodRatio, Metric, MirroredMixture, MixtureLikelihoodRatio
from lookdown.metrics.covariance import signed_factors
from lookdown.metrics.inputs import Array

__all__ = ["GLRTLoss", "GaussianStatistics", "MixtureStatistics", "Statistics", "statistics_like", "statistics_of"]

_DRAWN_PAIRS = 16_384  # different pairs, where their mean score has no closed form


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


class Statistics(nn.Module, ABC):
    """The constants of a fitted metric, as buffers: `state_dict` holds them, and they get no gradient.

    `origin` is the score s(0) of two equal embeddings, `spread` the mean over different pairs of s(0) - s, and
    `on_sphere` says whether the metric compares unit embeddings.
    """

    origin: Tensor
    spread: Tensor
    on_sphere: Tensor

    def __init__(self, **constants: Tensor | NDArray[np.generic] | float) -> None:
        super().__init__()
        for name, value in constants.items():
            self.register_buffer(name, value if isinstance(value, Tensor) else torch.from_numpy(np.asarray(value)))

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Dimensions of an embedding."""

    @abstractmethod
    def _gains(self, x: Tensor) -> Tensor:
        """Return s(x_i - x_j) - s(0) for rows near the origin."""

    def gains(self, embeddings: Tensor) -> Tensor:
        """Return (batch, batch) scores relative to that of two equal embeddings."""
        x = unit(embeddings) if self.on_sphere else embeddings
        return self._gains(x - x.detach().mean(0))  # the same differences; products of far vectors would lose digits


class GaussianStatistics(Statistics):
    """s - s(0) = -|z|^2 / 2 with z = factor' x, the square of each entry of z counted with its sign.

    signs are -1 where the metric is indefinite, in directions in which same pairs spread wider.
    """

    factor: Tensor  # (d, r)
    signs: Tensor  # (r,)

    @classmethod
    def of(cls, metric: GaussianLikelihoodRatio) -> Self:
        """Copy a fitted metric; the mean over different pairs is exact, trace(M S0) / 2."""
        positive, negative = signed_factors(metric.matrix_)
        return cls(
            factor=np.hstack([positive, negative]),
            signs=np.r_[np.ones(positive.shape[1]), -np.ones(negative.shape[1])],
            origin=float(metric.offset_),
            spread=float(np.sum(metric.matrix_ * metric.different_covariance_) / 2),
            on_sphere=bool(metric.normalize),
        )

    @property
    def dimension(self) -> int:  # noqa: D102
        return len(self.factor)

    def _gains(self, x: Tensor) -> Tensor:
        z = x @ self.factor.to(x.dtype)
        signed = z * self.signs.to(x.dtype)
        halves = (signed * z).sum(1) / 2
        return torch.matmul(*_augmented(signed, z, -halves, -halves))


class MixtureStatistics(Statistics):
    """log p(x | same) - log p(x | different), both mirrored mixtures.

    A component has a `factor` that whitens it, a `pull` (x'pull has the sign of the side of zero on which x lies, and
    its size says how clearly), and a `constant`; see `MirroredMixture`.
    """

    @classmethod
    def of(cls, metric: MixtureLikelihoodRatio) -> Self:
        """Copy a fitted metric.

        With one component each, the mean over different pairs is exact. With more it has no closed form: it is the
        mean over 16,384 differences drawn from the fitted law of different pairs, the same ones each time.
        """
        origin = float(metric.score_differences(np.zeros((1, metric.n_features_in_)))[0])
        if len(metric.same_.weights) == len(metric.different_.weights) == 1:
            excess = _precision(metric.same_) - _precision(metric.different_)
            spread = float(np.sum(excess * metric.different_covariance_) / 2)
        else:
            drawn = metric.sample(_DRAWN_PAIRS, "different", seed=0)
            spread = origin - float(metric.score_differences(drawn).mean())
        components = _components(metric.same_, "same") | _components(metric.different_, "different")
        return cls(**components, origin=origin, spread=spread, on_sphere=bool(metric.normalize))

    @property
    def dimension(self) -> int:  # noqa: D102
        return int(self.get_buffer("same_pulls").shape[1])

    def _gains(self, x: Tensor) -> Tensor:
        return self._log_density(x, "same") - self._log_density(x, "different") - self.origin.to(x.dtype)

    def _log_density(self, x: Tensor, side: str) -> Tensor:
        """Return log p(x_i - x_j), all components at once."""
        factors, pulls, constants = (
            self.get_buffer(f"{side}_{part}").to(x.dtype) for part in ("factors", "pulls", "constants")
        )
        u = x * factors[:, None] if factors.ndim == 2 else x @ factors
        halves = u.square().sum(2) / 2
        if not pulls.any():
            return torch.matmul(*_augmented(u, u, constants[:, None] - halves, -halves)).logsumexp(0)
        # A component and its mirror image together add log cosh g = softplus(2g) - g - log 2, g = (x_i - x_j)'pull.
        sides = pulls @ x.mT
        rows, columns = constants[:, None] - math.log(2) - halves - sides, sides - halves
        mirrors = softplus(2 * sides[:, :, None] - 2 * sides[:, None, :], threshold=40)
        return torch.baddbmm(mirrors, *_augmented(u, u, rows, columns)).logsumexp(0)


def statistics_of(metric: GaussianLikelihoodRatio | MixtureLikelihoodRatio) -> Statistics:
    """Return the constants of a fitted metric, in float64."""
    if isinstance(metric, GaussianLikelihoodRatio):
        return GaussianStatistics.of(metric)
    return MixtureStatistics.of(metric)


def statistics_like(stored: Mapping[str, Tensor]) -> Statistics:
    """Return uninitialised constants with the names and shapes of stored ones."""
    kind = GaussianStatistics if "factor" in stored else MixtureStatistics
    return kind(**{name: torch.empty_like(tensor) for name, tensor in stored.items()})


def _make_room(module: nn.Module, state: Mapping[str, Tensor], prefix: str, *_: Any) -> None:
    """Give the module statistics of the stored kind and shape before a state is loaded.

    A state without statistics leaves those of the module, which is an error of torch unless `strict=False`.
    """
    assert isinstance(module, GLRTLoss)
    start = f"{prefix}statistics."
    stored = {name.removeprefix(start): tensor for name, tensor in state.items() if name.startswith(start)}
    if stored:
        module.statistics = statistics_like(stored).to(module._device_and_type)


def _augmented(a: Tensor, b: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Return two factors whose product is a_i'b_j + rows_i + columns_j, so that a batch of pairs is written once."""
    one = torch.ones_like(rows)
    left = torch.cat([a, rows[..., None], one[..., None]], dim=-1)
    return left, torch.cat([b, one[..., None], columns[..., None]], dim=-1).mT


def _components(mixture: MirroredMixture, side: str) -> dict[str, Array]:
    return {
        f"{side}_factors": np.ascontiguousarray(mixture.factors),
        f"{side}_pulls": np.ascontiguousarray(mixture.pulls),
        f"{side}_constants": mixture.constants - np.square(mixture.images).sum(axis=1) / 2,
    }


def _precision(mixture: MirroredMixture) -> Array:
    """Return the inverse covariance of a mixture of one component."""
    factor = np.diag(mixture.factors[0]) if mixture.is_diagonal else mixture.factors[0]
    return np.asarray(factor @ factor.T)
