"""The Gaussian likelihood ratio: is a difference more likely between two of a kind or between two kinds?"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from lookdown.errors import InputError, LowRankWarning, UnsupportedOperationError
from lookdown.metrics.covariance import inverse, refuse_unusable, shrink, shrinkage_amount, signed_factors
from lookdown.metrics.estimate import Method
from lookdown.metrics.inputs import Array, Embeddings, unit
from lookdown.metrics.metric import Hypothesis, L2Metric
from lookdown.metrics.pair_moments import PairMoments, Weighting, check_moments
from lookdown.metrics.pairwise import half_squared_distances, half_squares, paired_differences
from lookdown.metrics.quadratic_form import QuadraticForm

__all__ = ["GaussianLikelihoodRatio"]


class GaussianLikelihoodRatio(L2Metric):
    """score(x, y) = log p(x - y | same) - log p(x - y | different), both zero-mean Gaussians over all training pairs.

    With S1 and S0 the covariances of same and different differences, shrunk, and M = S1^-1 - S0^-1, that is
    offset_ - (x - y)' M (x - y) / 2 with offset_ = (log|S0| - log|S1|) / 2.

    shrinkage: how far each covariance is moved to a sphere of the same trace, 0 to 1; `auto` is OAS, from the number
        of chips rather than of pairs.
    indefinite: directions in which same pairs spread wider than different ones make M indefinite. `clip` drops them:
        the score is then a distance that any L2 engine can search, but no longer the exact ratio, and thresholds
        refer to the clipped score. `keep` is the exact ratio; it has no `transform`, but `augment_query` and
        `augment_gallery` turn it into an inner product.
    normalize: put embeddings on the unit sphere first.
    weighting: `pairs` counts every pair once; `classes` counts every class and every pair of classes alike.

    Attributes after `fit`: `matrix_` (d, d), M; `factor_` (d, r) with matrix_ = factor_ @ factor_.T (`clip` only);
    `offset_`, the score of equal embeddings; `rank_`, r; `shrinkage_`, the amounts for same and different;
    `same_covariance_` and `different_covariance_`, as estimated, not shrunk; `mean_` of the embeddings;
    `n_features_in_`, d. `calibration_` is None until `calibrate`.

    >>> import lookdown, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(np.arange(20), 10)
    >>> X = rng.normal(size=(20, 4))[y] + 0.3 * rng.normal(size=(200, 4))
    >>> metric = lookdown.GaussianLikelihoodRatio().fit(X[:150], y[:150]).calibrate(X[150:], y[150:])
    >>> same, different = metric.score_pairs(X[[150, 150]], X[[151, 199]])
    >>> bool(same > metric.threshold(0.01) > different)
    True
    """

    _has_model = True
    factor_: Array
    rank_: int

    def __init__(
        self,
        shrinkage: float | Literal["auto"] = "auto",
        indefinite: Literal["clip", "keep"] = "clip",
        normalize: bool = True,
        weighting: Weighting = "pairs",
    ) -> None:
        self.shrinkage = shrinkage
        self.indefinite = indefinite
        self.normalize = normalize
        self.weighting = weighting

    @property
    def is_euclidean(self) -> bool:  # noqa: D102
        return hasattr(self, "factor_")

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Estimate the metric from every pair of labelled embeddings."""
        return self.fit_moments(PairMoments.of(X, y, normalize=self.normalize))  # type: ignore[arg-type]

    def fit_moments(self, moments: PairMoments) -> Self:
        """Estimate the metric from moments that were gathered in batches, over shards or on several machines."""
        check_moments(moments, normalize=self.normalize)
        return self.fit_covariances(*moments.covariances(self.weighting), moments.mean, free=moments.free)

    def fit_covariances(self, same: Array, different: Array, mean: Array, *, free: tuple[float, float]) -> Self:
        """Estimate the metric from covariances, for instance a blend of several domains.

        same, different: covariances of same and of different differences, (d, d) each.
        mean: of the embeddings.
        free: independent chips behind each covariance, less the means taken off; shrinkage="auto" needs it.
        """
        if self.indefinite not in ("clip", "keep"):
            raise InputError(f"indefinite must be 'clip' or 'keep', got {self.indefinite!r}")
        refuse_unusable(same, different, mean)
        amounts = tuple(shrinkage_amount(self.shrinkage, c, n) for c, n in zip((same, different), free, strict=True))
        self._set_covariances(same, different, amounts, mean)
        return self

    def _set_covariances(self, same: Array, different: Array, shrinkage: tuple[float, ...], mean: Array) -> None:
        near, near_logdet = inverse(shrink(same, shrinkage[0]), "same")
        far, far_logdet = inverse(shrink(different, shrinkage[1]), "different")
        self._begin(len(mean))
        self.same_covariance_, self.different_covariance_ = same, different
        self.shrinkage_, self.mean_ = shrinkage, mean
        self.offset_ = (far_logdet - near_logdet) / 2
        positive, negative = signed_factors(near - far)
        self._set_factors(positive, negative[:, :0] if self.indefinite == "clip" else negative)
        if self.rank_ < len(mean) / 2:
            warnings.warn(
                f"the metric compares embeddings in {self.rank_} of {len(mean)} dimensions, so kinds of objects that "
                "differ elsewhere look the same to it; training on more classes, or indefinite='keep', may help",
                LowRankWarning,
                stacklevel=4,
            )

    def _transform(self, X: ArrayLike, name: str) -> Embeddings:
        """Return factor_' x, or factor_' x/|x|."""
        embeddings = self._prepare(X, name)
        if not self.is_euclidean:
            raise UnsupportedOperationError(
                "with indefinite='keep' the ratio is not a distance, so there is no space to transform to; use "
                "indefinite='clip', or augment_query and augment_gallery with an inner-product engine"
            )
        return _map(embeddings, self.factor_)

    def score(self, queries: ArrayLike, gallery: ArrayLike) -> Embeddings:
        """Return (queries, gallery) log-likelihood ratios."""
        a, b = self._prepare(queries, "queries"), self._prepare(gallery, "gallery")
        scores = self.offset_ - half_squared_distances(_map(a, self._positive), _map(b, self._positive))
        if self._negative.shape[1]:
            scores += half_squared_distances(_map(a, self._negative), _map(b, self._negative))
        return scores

    def score_pairs(self, first: ArrayLike, second: ArrayLike) -> Embeddings:
        """Return the log-likelihood ratio of each row of `first` and the same row of `second`."""
        gaps = paired_differences(self._prepare(first, "first"), self._prepare(second, "second"))
        return self.offset_ - half_squares(_map(gaps, self._positive)) + half_squares(_map(gaps, self._negative))

    def shortlist_metric(self) -> GaussianLikelihoodRatio:
        """Return a metric that any L2 engine can search: this one, or the same with its indefinite part clipped."""
        self._require_fit()
        return self if self.is_euclidean else self._like(self, "clip")

    @classmethod
    def _like(cls, metric: Any, indefinite: Literal["clip", "keep"]) -> Self:
        """Return the single Gaussian with the covariances of a fitted metric."""
        gaussian = cls(metric.shrinkage, indefinite, metric.normalize, metric.weighting)
        covariances = metric.same_covariance_, metric.different_covariance_
        gaussian._set_covariances(*covariances, metric.shrinkage_, metric.mean_)
        gaussian.pseudo_labelled_ = metric.pseudo_labelled_
        return gaussian

    def augment_query(self, X: ArrayLike) -> Embeddings:
        """Return (n, d + 2) vectors whose inner products with `augment_gallery` vectors are the scores, exactly."""
        x = self._prepare(X) - self.mean_
        own = self.offset_ - np.einsum("ij,ij->i", x @ self.matrix_, x) / 2
        return np.column_stack([x, np.ones(len(x)), own])

    def augment_gallery(self, X: ArrayLike) -> Embeddings:
        """Return (n, d + 2) vectors for an inner-product engine; see `augment_query`."""
        x = self._prepare(X) - self.mean_
        mapped = x @ self.matrix_
        return np.column_stack([mapped, -np.einsum("ij,ij->i", mapped, x) / 2, np.ones(len(x))])

    def _prepare(self, X: ArrayLike, name: str = "X") -> Embeddings:
        embeddings = self._embeddings(X, name)
        return unit(embeddings, name) if self.normalize else embeddings

    def _set_factors(self, positive: Array, negative: Array) -> None:
        self._positive, self._negative = positive, negative
        if hasattr(self, "factor_"):
            del self.factor_
        if not negative.shape[1] and self.indefinite == "clip":
            self.factor_ = positive
        self.rank_ = self._positive.shape[1] + self._negative.shape[1]
        self.matrix_ = self._positive @ self._positive.T - self._negative @ self._negative.T

    def _law(self, hypothesis: Hypothesis) -> _GaussianScoreLaw:
        covariance = self.same_covariance_ if hypothesis == "same" else self.different_covariance_
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(values.clip(min=0))
        return _GaussianScoreLaw(self.offset_, QuadraticForm(np.linalg.eigvalsh(root.T @ self.matrix_ @ root)))

    def _state(self) -> dict[str, Any]:
        names = ("same_covariance_", "different_covariance_", "mean_", "shrinkage_")
        learnt = {name: getattr(self, name) for name in names}
        return {**super()._state(), **learnt, "positive": self._positive, "negative": self._negative}

    def _restore(self, state: dict[str, Any]) -> None:
        self._set_factors(state.pop("positive"), state.pop("negative"))
        super()._restore({**state, "shrinkage_": tuple(state["shrinkage_"])})


def _map(rows: Embeddings, factor: Array) -> Embeddings:
    return rows @ factor.astype(rows.dtype, copy=False)


@dataclass(frozen=True, slots=True)
class _GaussianScoreLaw:
    """offset - Q / 2 with Q a quadratic form of a zero-mean Gaussian difference."""

    offset: float
    form: QuadraticForm
    method: Method = "analytic"

    def exceedance(self, score: float) -> float:
        return self.form.cdf(2 * (self.offset - score))

    def threshold(self, rate: float) -> float:
        return self.offset - self.form.quantile(rate) / 2
