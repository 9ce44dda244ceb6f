"""Spaces in which an engine searches by L2 distance for the rows that a metric scores highest."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import LowRankWarning, UnsupportedOperationError
from lookdown.gallery.search.engines.engine import Vectors
from lookdown.gallery.store.snapshot import Embeddings
from lookdown.metrics import Cosine, GaussianLikelihoodRatio, KindLikelihoodRatio, Metric, MixtureLikelihoodRatio
from lookdown.metrics.metric import L2Metric

__all__ = ["KindSpace", "L2Space", "Probe", "SearchSpace", "search_space"]

Array = NDArray[np.float64]

_LEAST_NONE = -20.0  # log of the share of "none of these" in a vector; less would only cost digits
_HIGHEST_SCORE = 700.0  # whose exponential is a number
_ROUNDING = 1e-3  # of a closeness, where the vectors of a gallery are kept in single precision


@dataclass(frozen=True, slots=True)
class Probe:
    """A point that an engine searches around, and what its closeness is worth.

    The score of a row is at most log(sum over the probes of a query of e^score).
    """

    point: Vectors  # (r,)
    score: Callable[[Array], Array]  # of a closeness, which is -|point - vector|^2 / 2
    closeness: Callable[[float], float]  # of a score


class SearchSpace(Protocol):
    """What an engine needs to know of a metric."""

    exact: bool  # whether the one probe of a query gives the score itself
    bounded: bool  # whether probes bound the score; if not, a long shortlist is scored again

    @property
    def dimension(self) -> int:
        """How many numbers an embedding has."""

    @property
    def linear(self) -> L2Metric:
        """A metric near to this one whose transform is linear, so that an exported network can apply it."""

    def vectors(self, X: Embeddings) -> Vectors:
        """Return what an engine keeps of embeddings."""

    def probes(self, examples: Embeddings, weights: Array) -> tuple[Probe, ...]:
        """Return the probes of a query; views of one object share its weight of 1."""


def search_space(metric: Metric) -> SearchSpace:
    """Return the space of a metric, or of the nearest metric whose score is a distance."""
    if isinstance(metric, L2Metric) and metric.is_euclidean:
        return L2Space(metric, exact=True)
    if isinstance(metric, KindLikelihoodRatio):
        return KindSpace(metric)
    if isinstance(metric, GaussianLikelihoodRatio | MixtureLikelihoodRatio):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LowRankWarning)  # given when the metric was estimated
            return L2Space(metric.shortlist_metric(), exact=False)
    raise UnsupportedOperationError(f"{type(metric).__name__} has no space that a gallery could be searched in")


class L2Space:
    """The space of a metric whose score is a distance; `exact` if it is the one that scores, too.

    The weighted mean over examples of |z_i - y|^2 / 2 is |mean of z_i - y|^2 / 2 + spread, so one probe serves all.
    """

    def __init__(self, metric: L2Metric, *, exact: bool) -> None:
        self.metric = metric
        self.exact = self.bounded = exact

    @property
    def dimension(self) -> int:  # noqa: D102
        return self.metric.n_features_in_

    @property
    def linear(self) -> L2Metric:  # noqa: D102
        return self.metric

    def vectors(self, X: Embeddings) -> Vectors:  # noqa: D102
        return np.asarray(self.metric.transform(X), np.float32)

    def probes(self, examples: Embeddings, weights: Array) -> tuple[Probe, ...]:  # noqa: D102
        z = self.metric.transform(examples).astype(np.float64)
        shares = weights / weights.sum()
        point = shares @ z
        itself = float(self.metric.offset_ - shares @ ((z - point) ** 2).sum(axis=1) / 2)
        return (Probe(point.astype(np.float32), lambda closeness: itself + closeness, lambda score: score - itself),)


class KindSpace:
    """The space of the ratio of kinds: all vectors have one length, so that distances rank as inner products do.

    A vector holds the shares of known kinds, whose inner product with those of the query is the ratio of known kinds,
    and, where chips of none are compared by the ratio of differences, what that ratio is made of. The ratio is the sum
    of the two; each has a probe.
    """

    exact = False
    bounded = True

    def __init__(self, metric: KindLikelihoodRatio) -> None:
        self.metric = metric
        self._differences: GaussianLikelihoodRatio | None = None
        if isinstance(metric.fallback_, GaussianLikelihoodRatio):
            if not metric.normalize:
                raise UnsupportedOperationError(
                    "a gallery can be searched by the ratio of kinds if embeddings are on the unit sphere, or if every "
                    "chip is of a known kind; fit it with normalize=True or novelty=0"
                )
            self._differences = metric.fallback_.shortlist_metric()
        self._length = self._longest()

    @property
    def dimension(self) -> int:  # noqa: D102
        return self.metric.n_features_in_

    @property
    def linear(self) -> L2Metric:  # noqa: D102
        return self._differences or Cosine().fit(np.ones((1, self.dimension)))

    def vectors(self, X: Embeddings) -> Vectors:  # noqa: D102
        shares, none = self.metric.terms(X)
        parts = [shares]
        if self._differences is not None:
            z = self._mapped(X)
            parts += [z, _half_squares(z)[:, None] - none.clip(min=_LEAST_NONE)[:, None]]
        whole = np.concatenate(parts, axis=1)
        rest = np.sqrt(np.maximum(self._length - 2 * _half_squares(whole), 0))
        return np.column_stack([whole, rest]).astype(np.float32)

    def probes(self, examples: Embeddings, weights: Array) -> tuple[Probe, ...]:  # noqa: D102
        shares, none = self.metric.pooled_terms(examples, weights)
        if self._differences is None:
            return (self._known_probe(shares[0]),)
        z = self._mapped(examples)
        share = weights / weights.sum()
        point = share @ z
        itself = float(none[0] + self._differences.offset_ / self.metric.temperature_ - share @ _half_squares(z))
        unknown = np.r_[np.zeros(shares.shape[1]), point, -1.0, 0.0]
        return self._known_probe(shares[0]), self._probe(unknown, ratio=False, itself=itself)

    def kind_probes(self, kind: str) -> tuple[Probe, ...]:
        """Return the probe of a kind that the metric names: that of an example which is surely of it."""
        return (self._known_probe(self.metric.terms_of(kind).shares[0]),)

    def _known_probe(self, shares: Array) -> Probe:
        """Return the probe of the ratio of known kinds, which does not look at differences."""
        rest = 1 if self._differences is None else self._differences.factor_.shape[1] + 2
        return self._probe(np.r_[shares, np.zeros(rest)], ratio=True)

    def _probe(self, point: Array, *, ratio: bool, itself: float = 0.0) -> Probe:
        """Return a probe whose inner product with a vector, plus `itself`, is a ratio or the log of one."""
        gap = (
            itself + float(point @ point + self._length) / 2 + _ROUNDING
        )  # product = closeness + (|point|^2 + length) / 2

        def score(closeness: Array) -> Array:
            return np.asarray(np.log(np.maximum(closeness + gap, _ROUNDING)) if ratio else closeness + gap)

        def closeness(score: float) -> float:
            return (math.exp(min(score, _HIGHEST_SCORE)) if ratio else score) - gap

        return Probe(point.astype(np.float32), score, closeness)

    def _mapped(self, X: Embeddings) -> Array:
        assert self._differences is not None
        z = self._differences.transform(X).astype(np.float64)
        return np.asarray(z / np.sqrt(self.metric.temperature_))

    def _longest(self) -> float:
        """Return a square that no vector exceeds without its last number."""
        known = self.metric.largest_ratio
        if self._differences is None:
            return known
        stretch = float(np.linalg.norm(self._differences.factor_, 2) ** 2) / self.metric.temperature_
        return known + stretch + (stretch / 2 - _LEAST_NONE) ** 2


def _half_squares(rows: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", rows, rows) / 2)
