"""The interface of every metric: score pairs, decide at a false-alarm rate, save to disk."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np
import sklearn.exceptions
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, TransformerMixin

from lookdown import errors
from lookdown.metrics.calibration import Calibration, measure
from lookdown.metrics.estimate import Estimate, Method
from lookdown.metrics.inputs import (
    Embeddings,
    PartialLabels,
    as_embeddings,
    as_flags,
    as_labels,
    as_number,
    as_partial_labels,
)
from lookdown.metrics.pairwise import half_squared_distances, half_squares, paired_differences

__all__ = ["Answer", "Hypothesis", "L2Metric", "Metric", "ScoreLaw"]

Hypothesis = Literal["same", "different"]
Answer = Literal["auto", "empirical", "analytic"]  # the source of a rate or threshold


class ScoreLaw(Protocol):
    """How a score is distributed under one hypothesis, if the fitted model is right."""

    @property
    def method(self) -> Method:
        """How the law is computed."""

    def exceedance(self, score: float) -> float:
        """P(a pair scores at least this)."""

    def threshold(self, rate: float) -> float:
        """Return the score that a share `rate` of pairs reaches."""


class Metric(BaseEstimator, ABC):
    """A similarity of embeddings: `score` is higher for pairs that are more alike.

    `calibrate` on held-out labelled chips turns scores into decisions: `threshold(rate)` is the score that different
    pairs reach with that probability. The scikit-learn contract holds, except that `score(queries, gallery)` compares
    embeddings instead of rating the estimator.
    """

    n_features_in_: int
    calibration_: Calibration | None = None
    pseudo_labelled_: bool = False  # fitted to clusters, not to classes, so the model has no valid rates
    _needs_labels = True
    _learns = True  # whether `fit` learns more than the number of dimensions; if not, scores need no fit
    _has_model = False

    @property
    def is_euclidean(self) -> bool:
        """Whether `transform` leads to a space where L2 distance ranks as `score` does."""
        return False

    @abstractmethod
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn the metric from embeddings and labels."""

    @abstractmethod
    def score(self, queries: ArrayLike, gallery: ArrayLike) -> Embeddings:
        """Return (queries, gallery) similarities, higher for more alike."""

    @abstractmethod
    def score_pairs(self, first: ArrayLike, second: ArrayLike) -> Embeddings:
        """Return the similarity of each row of `first` to the same row of `second`."""

    def score_query(self, examples: ArrayLike, weights: ArrayLike, gallery: ArrayLike) -> Embeddings:
        """Return the similarity of each gallery row to several examples of what is looked for: their weighted mean.

        weights: one number an example; views of one object share its weight of 1.
        """
        shares = np.asarray(weights, np.float64)
        return np.asarray(shares / shares.sum() @ self.score(examples, gallery))

    def calibrate(
        self,
        X: ArrayLike,
        y: PartialLabels | None = None,
        groups: ArrayLike | None = None,
        background: ArrayLike | None = None,
        *,
        seed: int = 0,
    ) -> Self:
        """Measure rates on held-out chips, over all pairs that are known to be same or different.

        Use chips that the metric was not fitted on, and true labels: a threshold from pseudo-labels means nothing.

        X: embeddings.
        y: labels. Objects without one (None, NaN or -1) are compared only with background. Without two chips of one
            label there is a false-alarm rate, but no detection rate.
        groups: the scene or site of each chip. Intervals come from resampling groups, or chips without groups.
        background: booleans, true for chips that show none of the objects. With an object they are different pairs;
            their labels are not read.
        seed: of the resampling.
        """
        if not self._learns and not self._is_fitted:
            self.fit(X)
        embeddings = self._embeddings(X)
        empty = as_flags(background, len(embeddings), name="background")
        if y is None and not empty.any():
            raise errors.InputError(
                "y is missing: requires y to be passed, but the target y is None; give one label a row, or mark "
                "background"
            )
        labels, known = as_partial_labels(y, len(embeddings))
        labels[~known] = -1
        members = None if groups is None else as_labels(groups, len(embeddings), name="groups")
        self.calibration_ = measure(self.score, embeddings, labels, members, empty, seed)
        return self

    def threshold(self, rate: float, method: Answer = "auto") -> Estimate:
        """Return the score that different pairs reach with probability `rate`; accept pairs that score at least this.

        method: `empirical` takes it from the calibration, `analytic` from the fitted model; `auto` takes the
            calibration if there is one, else the model with a warning. Only the calibration gives an interval, and
            `supported` is true if it saw at least 20 such pairs and 10 groups.
        """
        rate = _probability(rate, "a false-alarm rate")
        if (calibration := self._calibration(method, f"a threshold at a false-alarm rate of {rate:g}")) is not None:
            return calibration.threshold(rate)
        law = self._law("different")
        return Estimate.of_model(law.threshold(rate), law.method)

    def false_alarm_rate(self, score: float, method: Answer = "auto") -> Estimate:
        """Return the probability that a different pair scores at least this."""
        score = as_number(score, "score")
        if (calibration := self._calibration(method, "a false-alarm rate")) is not None:
            return calibration.false_alarm_rate(score)
        law = self._law("different")
        return Estimate.of_model(law.exceedance(score), law.method)

    def detection_rate(self, threshold: float, method: Answer = "auto") -> Estimate:
        """Return the probability that a same pair scores at least this."""
        threshold = as_number(threshold, "threshold")
        if (calibration := self._calibration(method, "a detection rate")) is not None:
            return calibration.detection_rate(threshold)
        law = self._law("same")
        return Estimate.of_model(law.exceedance(threshold), law.method)

    def posterior(self, score: ArrayLike, prior: float, method: Answer = "auto") -> NDArray[np.float64]:
        """Return the probability that pairs with these scores are the same, given how common same pairs are.

        prior: the share of same pairs among all that are compared, for instance one in a thousand for a rare ship in
            a large archive. It has no default, since the result depends on it more than on anything else.
        method: as for `threshold`. The calibration gives the ratio of the two measured score distributions; without
            it, the score itself is taken as a log-likelihood ratio.
        """
        prior = _probability(prior, "a prior")
        scores = np.asarray(score, dtype=np.float64)
        if np.isnan(scores).any():
            raise errors.InputError("score contains NaN; drop the pairs that have no score")
        calibration = self._calibration(method, "a posterior")
        ratio = scores if calibration is None else calibration.log_likelihood_ratio(scores)
        return np.asarray(expit(ratio + logit(prior)))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the metric to the folder `path`, as safetensors and JSON; `lookdown.load_metric` reads it back."""
        from lookdown.metrics.stored_metric import save_metric

        if not self._is_fitted:
            raise self._not_fitted()
        save_metric(self, path, overwrite=overwrite)

    def _law(self, hypothesis: Hypothesis) -> ScoreLaw:
        """Return the model's law of the score, for metrics with `_has_model`."""
        raise errors.NotCalibratedError(f"{type(self).__name__} has no model of its scores; calibrate it instead")

    def _state(self) -> dict[str, Any]:
        """Return the learnt attributes as arrays and numbers, for storage."""
        return {"n_features_in_": self.n_features_in_, "pseudo_labelled_": self.pseudo_labelled_}

    def _restore(self, state: dict[str, Any]) -> None:
        """Set what `_state` returned."""
        for name, value in state.items():
            setattr(self, name, value)

    def _begin(self, dim: int) -> None:
        """Set the dimensions at the start of a fit, and drop an earlier calibration."""
        self.n_features_in_ = dim
        self.calibration_ = None
        self.pseudo_labelled_ = False

    def _embeddings(self, X: ArrayLike, name: str = "X") -> Embeddings:
        """Return embeddings with the dimensions that the metric was fitted on."""
        self._require_fit()
        embeddings = as_embeddings(X, name=name)
        if self._is_fitted and embeddings.shape[1] != self.n_features_in_:
            raise errors.InputError(
                f"{name} has {embeddings.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input; embed with the network that the metric was fitted on"
            )
        return embeddings

    def _calibration(self, method: str, wanted: str) -> Calibration | None:
        """Return the calibration, or None to use the model; `auto` warns when it is the model."""
        self._require_fit()
        if method not in ("auto", "empirical", "analytic"):
            raise errors.InputError(f"method must be 'auto', 'empirical' or 'analytic', got {method!r}")
        if self.calibration_ is not None and method != "analytic":
            return self.calibration_
        if method == "empirical" or not self._has_model or self.pseudo_labelled_:
            reason = ""
            if self.pseudo_labelled_:
                reason = "this metric was adapted by clusters, which have no valid rates, so "
            elif not self._has_model:
                reason = f"{type(self).__name__} has no model of its scores, so "
            raise errors.NotCalibratedError(
                f"{reason}{wanted} needs calibration; call calibrate(X, y) on held-out chips first"
            )
        if method == "auto":
            warnings.warn(
                f"{wanted} is taken from the fitted model, which real embeddings follow only roughly; call "
                "calibrate(X, y) on held-out chips for one that can be relied on",
                errors.UncalibratedWarning,
                stacklevel=3,
            )
        return None

    @property
    def _is_fitted(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _require_fit(self) -> None:
        """Raise if the metric has to be fitted first."""
        if self._learns and not self._is_fitted:
            raise self._not_fitted()

    def _not_fitted(self) -> _NotFittedError:
        return _NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(X, y) first")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_labels
        tags.requires_fit = self._learns
        return tags


def _probability(value: float, name: str) -> float:
    number = as_number(value, name)
    if not 0 < number < 1:
        raise errors.InputError(f"{name} is between 0 and 1, both excluded; got {value}")
    return number


class _NotFittedError(errors.NotFittedError, sklearn.exceptions.NotFittedError):
    """Ours and scikit-learn's at once; defined here because importing scikit-learn takes a second."""


class L2Metric(TransformerMixin, Metric):
    """A metric that can be Euclidean after `transform`: score = offset_ - |transform(x) - transform(y)|^2 / 2.

    Where `is_euclidean` holds, any engine that searches by L2 distance searches by this metric, given transformed
    vectors.
    """

    offset_: float

    @property
    def is_euclidean(self) -> bool:  # noqa: D102
        return True

    @abstractmethod
    def _transform(self, X: ArrayLike, name: str) -> Embeddings:
        """Do the work of `transform`; errors call the array `name`."""

    def transform(self, X: ArrayLike) -> Embeddings:
        """Map embeddings to the space in which plain L2 distance ranks as `score` does."""
        return self._transform(X, "X")

    def score(self, queries: ArrayLike, gallery: ArrayLike) -> Embeddings:
        """Return (queries, gallery) similarities, higher for more alike."""
        half = self._half_squared_distances(queries, gallery)  # first: it refuses a metric that is not fitted
        return self.offset_ - half

    def score_pairs(self, first: ArrayLike, second: ArrayLike) -> Embeddings:
        """Return the similarity of each row of `first` to the same row of `second`."""
        gaps = paired_differences(*self._transform_both(first, second, "first", "second"))
        return self.offset_ - half_squares(gaps)

    def distance(self, queries: ArrayLike, gallery: ArrayLike) -> Embeddings:
        """Return (queries, gallery) distances, lower for more alike: L2 between transformed embeddings."""
        return np.sqrt(2 * self._half_squared_distances(queries, gallery))

    def _half_squared_distances(self, queries: ArrayLike, gallery: ArrayLike) -> Embeddings:
        return half_squared_distances(*self._transform_both(queries, gallery, "queries", "gallery"))

    def _transform_both(self, a: ArrayLike, b: ArrayLike, *names: str) -> tuple[Embeddings, Embeddings]:
        """Transform both sides; without a fit, this is the only check that their dimensions agree."""
        first, second = self._transform(a, names[0]), self._transform(b, names[1])
        if first.shape[1] != second.shape[1]:
            raise errors.InputError(
                f"{names[1]} has {second.shape[1]} features, but {names[0]} has {first.shape[1]}; embed both with the "
                "same network"
            )
        return first, second

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), **({"offset_": self.offset_} if self._learns else {})}
