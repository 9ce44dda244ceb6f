"""The mixture likelihood ratio: both hypotheses are Gaussian mixtures, symmetric about zero."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from lookdown.errors import CollapsedComponentWarning, InputError
from lookdown.metrics.covariance import refuse_unusable, shrink, shrinkage_amount
from lookdown.metrics.differences import draw_differences
from lookdown.metrics.estimate import Method
from lookdown.metrics.expectation_maximisation import Fit, expectation_maximisation, start
from lookdown.metrics.gaussian import GaussianLikelihoodRatio
from lookdown.metrics.inputs import Array, Embeddings, as_count, as_embeddings, as_labels, refuse_zero, unit
from lookdown.metrics.metric import Hypothesis, Metric, ScoreLaw
from lookdown.metrics.mirrored_mixture import MirroredMixture
from lookdown.metrics.pair_moments import PairMoments, Weighting
from lookdown.metrics.pairwise import paired_differences

__all__ = ["MixtureLikelihoodRatio"]

_BLOCK_ROWS = 512  # queries, and gallery rows, that are scored at a time
_ROUNDS = 32  # of 4,096 differences drawn from each hypothesis, for the law of the score
_LEARNT = ("bic_", "converged_", "objectives_", "same_covariance_", "different_covariance_", "shrinkage_", "mean_")


class MixtureLikelihoodRatio(Metric):
    """score(x, y) = log p(x - y | same) - log p(x - y | different), both mirrored Gaussian mixtures.

    Differences of different kinds gather around the differences of class means, which one Gaussian cannot follow. Each
    component is centred at zero or is a pair at +mean and -mean, so that score(x, y) = score(y, x).

    same, different: number of components. One is a Gaussian with the exact covariance over all pairs: with one each,
        this is `GaussianLikelihoodRatio(indefinite="keep")`.
    covariance: `full`, or `diagonal` for few data or many dimensions.
    pairs: how many differences of each kind to fit several components to, or "all".
    weighting: `pairs` or `classes`, as in `PairMoments.covariances`; it also governs which pairs are drawn.
    seed: of the drawn pairs and the starting points.
    components: `fixed`, or `auto` to try up to `same` and `different` components and choose by BIC. Pairs share chips,
        so BIC sees more evidence than there is and prefers many components.
    shrinkage: as for the Gaussian metric; a component counts its share of the chips.
    normalize: put embeddings on the unit sphere first.
    ridge: floor of a variance, relative to the mean square.
    tol: expectation-maximisation stops when a round gains less than this a difference.
    max_iter: most rounds of expectation-maximisation.

    Attributes after `fit`: `same_` and `different_`, each a `MirroredMixture`; `bic_`, `converged_` and `objectives_`
    (one a round), each a mapping by hypothesis; `same_covariance_` and `different_covariance_` over all pairs, and
    `shrinkage_`, their amounts; `mean_` of the embeddings; `n_features_in_`, dimensions. `calibration_` is None until
    `calibrate`.

    >>> import lookdown, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(np.arange(20), 10)
    >>> X = rng.normal(size=(20, 4))[y] + 0.3 * rng.normal(size=(200, 4))
    >>> metric = lookdown.MixtureLikelihoodRatio(different=3, pairs=2000).fit(X, y)
    >>> scores = metric.score(X, X)
    >>> same = y[:, None] == y
    >>> bool(scores[same].mean() > 0 > scores[~same].mean())
    True
    """

    _has_model = True

    def __init__(
        self,
        same: int = 1,
        different: int = 10,
        covariance: Literal["full", "diagonal"] = "full",
        pairs: int | Literal["all"] = 40_000,
        weighting: Weighting = "pairs",
        seed: int = 0,
        *,
        components: Literal["fixed", "auto"] = "fixed",
        shrinkage: float | Literal["auto"] = "auto",
        normalize: bool = True,
        ridge: float = 1e-6,
        tol: float = 1e-3,
        max_iter: int = 200,
    ) -> None:
        self.same = same
        self.different = different
        self.covariance = covariance
        self.pairs = pairs
        self.weighting = weighting
        self.seed = seed
        self.components = components
        self.shrinkage = shrinkage
        self.normalize = normalize
        self.ridge = ridge
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Estimate both mixtures from labelled embeddings."""
        self._check_parameters()
        embeddings = as_embeddings(X).astype(np.float64, copy=False)
        labels = as_labels(y, len(embeddings))
        if self.normalize:
            embeddings = np.asarray(unit(embeddings), dtype=np.float64)
        if self.normalize and embeddings.shape[1] == 1:
            raise InputError("X has 1 feature(s), of which the unit sphere leaves the sign only; use normalize=False")
        moments = PairMoments.of(embeddings, labels)
        same, different = moments.covariances(self.weighting)
        refuse_unusable(same, different, moments.mean)
        fits = {
            "same": self._fit_hypothesis("same", embeddings, labels, same, moments.free[0]),
            "different": self._fit_hypothesis("different", embeddings, labels, different, moments.free[1]),
        }
        self._begin(moments.dim)
        self._scores_of_model: Array | None = None
        self.same_, self.different_ = (fit.mixture for fit, _ in fits.values())
        self.bic_ = {name: bic for name, (_, bic) in fits.items()}
        self.converged_ = {name: fit.converged for name, (fit, _) in fits.items()}
        self.objectives_ = {name: fit.objectives for name, (fit, _) in fits.items()}
        self.same_covariance_, self.different_covariance_, self.mean_ = same, different, moments.mean
        self.shrinkage_ = tuple(map(partial(shrinkage_amount, self.shrinkage), (same, different), moments.free))
        return self

    def score(self, queries: ArrayLike, gallery: ArrayLike) -> Array:
        """Return (queries, gallery) log-likelihood ratios; beyond the answer, memory is that of a small block."""
        a, b = self._checked(queries, "queries"), self._checked(gallery, "gallery")
        scores = np.empty((len(a), len(b)))
        for i in range(0, len(a), _BLOCK_ROWS):
            rows = self._prepare(a[i : i + _BLOCK_ROWS])
            for j in range(0, len(b), _BLOCK_ROWS):
                columns = self._prepare(b[j : j + _BLOCK_ROWS])
                same = self.same_.log_density_of_pairs(rows, columns)
                same -= self.different_.log_density_of_pairs(rows, columns)
                scores[i : i + _BLOCK_ROWS, j : j + _BLOCK_ROWS] = same
        return scores

    def score_pairs(self, first: ArrayLike, second: ArrayLike) -> Array:
        """Return the log-likelihood ratio of each row of `first` and the same row of `second`."""
        return self._ratio(self._differences(first, second))

    def score_differences(self, differences: ArrayLike) -> Array:
        """Return the log-likelihood ratios of differences of (unit) embeddings; x and -x score the same to the bit."""
        return self._ratio(self._embeddings(differences, "differences").astype(np.float64, copy=False))

    def _ratio(self, differences: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self.same_.log_density(differences) - self.different_.log_density(differences)
        if not np.isfinite(scores).all():
            raise InputError("a difference is so large that its square overflows; scale the embeddings down")
        return scores

    def shortlist_metric(self) -> GaussianLikelihoodRatio:
        """Return the best single Gaussian, which any L2 engine can search; score its first results again here.

        Its two zero-mean Gaussians are the closest to the data: their covariances are those over all pairs.
        """
        self._require_fit()
        return GaussianLikelihoodRatio._like(self, "clip")

    def sample(self, n: int, hypothesis: Hypothesis, *, seed: int | None = None) -> Array:
        """Draw `n` differences from the fitted law of `same` or `different` pairs."""
        self._require_fit()
        if hypothesis not in ("same", "different"):
            raise InputError(f"hypothesis must be 'same' or 'different', got {hypothesis!r}")
        as_count(n, "n")
        mixture = self.same_ if hypothesis == "same" else self.different_
        return mixture.sample(n, np.random.default_rng(self.seed if seed is None else seed))

    def _fit_hypothesis(
        self, hypothesis: Hypothesis, X: Array, y: NDArray[Any], covariance: Array, samples: int
    ) -> tuple[Fit, float]:
        """Return the mixture of one hypothesis and its BIC."""
        same = hypothesis == "same"
        x = draw_differences(X, y, same=same, pairs=self.pairs, weighting=self.weighting, seed=self.seed)
        most = self.same if same else self.different
        if self.components == "fixed":
            return self._fit_components(hypothesis, x, most, covariance, samples)
        fits: list[tuple[Fit, float]] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CollapsedComponentWarning)  # of mixtures that are only tried
            for count in range(1, most + 1):
                fits.append(self._fit_components(hypothesis, x, count, covariance, samples))
                if len(fits) > 2 and fits[-3][1] < min(fits[-2][1], fits[-1][1]):
                    break  # two worse ones in a row
        return min(fits, key=lambda fit: fit[1])

    def _fit_components(
        self, hypothesis: Hypothesis, x: Array, count: int, covariance: Array, samples: int
    ) -> tuple[Fit, float]:
        """Fit `count` components; a single one has the exact covariance over all pairs."""
        try:
            fit = self._run_em(hypothesis, x, count) if count > 1 else None
            if fit is None or len(fit.mixture.weights) == 1:
                single = self._shrunk(np.ones(1), np.zeros((1, len(covariance))), covariance[None], samples)
                fit = Fit(single, [], converged=True)
            else:
                mixture = fit.mixture
                fit = replace(fit, mixture=self._shrunk(mixture.weights, mixture.means, mixture.covariances, samples))
        except np.linalg.LinAlgError as error:
            raise InputError(
                f"a covariance for {hypothesis} differences has no spread in some direction, with ridge={self.ridge:g} "
                f"and shrinkage={self.shrinkage}; use the defaults of both, or fewer components"
            ) from error
        return fit, _bic(fit.mixture, x)

    def _run_em(self, hypothesis: Hypothesis, x: Array, count: int) -> Fit:
        rng = np.random.default_rng([self.seed, int(hypothesis == "same"), count])
        first = start(x, count, rng, diagonal=self.covariance == "diagonal")
        return expectation_maximisation(
            x, first, ridge=self.ridge, tol=self.tol, max_iter=self.max_iter, name=hypothesis
        )

    def _shrunk(self, weights: Array, means: Array, covariances: Array, samples: int) -> MirroredMixture:
        """Shrink each covariance by the number of chips, not pairs, behind it."""
        shrunk = []
        for weight, covariance in zip(weights, covariances, strict=True):
            full = np.diag(covariance) if covariance.ndim == 1 else covariance
            full = shrink(full, shrinkage_amount(self.shrinkage, full, samples * weight))
            shrunk.append(np.diag(full) if self.covariance == "diagonal" else full)
        return MirroredMixture(weights, means, np.stack(shrunk))

    def _differences(self, first: ArrayLike, second: ArrayLike) -> Array:
        a, b = self._checked(first, "first"), self._checked(second, "second")
        return np.asarray(paired_differences(self._prepare(a), self._prepare(b)))

    def _checked(self, X: ArrayLike, name: str) -> Embeddings:
        embeddings = self._embeddings(X, name)
        if self.normalize:
            refuse_zero(embeddings, name)
        return embeddings

    def _prepare(self, embeddings: Embeddings) -> Array:
        """Return checked rows as they are compared; called a block at a time, so that no gallery is copied whole."""
        rows = embeddings.astype(np.float64, copy=False)
        return np.asarray(unit(rows) if self.normalize else rows, dtype=np.float64)

    def _law(self, hypothesis: Hypothesis) -> ScoreLaw:
        if len(self.same_.weights) == len(self.different_.weights) == 1 and self.covariance == "full":
            return GaussianLikelihoodRatio._like(self, "keep")._law(hypothesis)
        if self._scores_of_model is None:
            rng = np.random.default_rng(self.seed)
            both = self.same_, self.different_
            drawn = [self._ratio(mixture.sample(_BLOCK_ROWS * 8, rng)) for _ in range(_ROUNDS) for mixture in both]
            self._scores_of_model = np.sort(np.concatenate(drawn))
        return _SimulatedScoreLaw.of(self._scores_of_model, hypothesis)

    def _state(self) -> dict[str, Any]:
        mixtures = {
            f"{name}.{part}": getattr(mixture, part)
            for name, mixture in (("same_", self.same_), ("different_", self.different_))
            for part in ("weights", "means", "covariances")
        }
        return {**super()._state(), **mixtures, **{name: getattr(self, name) for name in _LEARNT}}

    def _restore(self, state: dict[str, Any]) -> None:
        self._scores_of_model = None
        for name in ("same_", "different_"):
            parts = {part: state.pop(f"{name}.{part}") for part in ("weights", "means", "covariances")}
            setattr(self, name, MirroredMixture(**parts))
        super()._restore({**state, "shrinkage_": tuple(state["shrinkage_"])})

    def _check_parameters(self) -> None:
        for name in ("same", "different", "max_iter"):
            as_count(getattr(self, name), name)
        if self.pairs != "all":
            as_count(self.pairs, "pairs")
        for name, known in (("covariance", ("full", "diagonal")), ("components", ("fixed", "auto"))):
            if getattr(self, name) not in known:
                raise InputError(f"{name} must be {known[0]!r} or {known[1]!r}, got {getattr(self, name)!r}")
        for name in ("ridge", "tol"):
            value = getattr(self, name)
            if not (isinstance(value, int | float | np.number) and 0 <= value < np.inf):
                raise InputError(f"{name} must be a number from 0, got {value!r}")
        as_count(self.seed, "seed", least=0)


def _bic(mixture: MirroredMixture, x: Array) -> float:
    """Bayesian information criterion (lower is better) of the density that is used, on the drawn differences."""
    return float(mixture.parameters * np.log(len(x)) - 2 * mixture.log_density(x).sum())


@dataclass(frozen=True, slots=True)
class _SimulatedScoreLaw:
    """The law of the score under the model, from as many differences drawn from each hypothesis.

    The score is the logarithm of their ratio, so a draw counts 2 / (1 + e^s) towards *different* and 2 / (1 + e^-s)
    towards *same*. Draws of *same* pairs thus fill the far tail of *different*, which its own draws never reach.
    """

    scores: Array  # rising
    reaching: Array  # (n,) share of the hypothesis at each score or above
    method: Method = "simulated"

    @classmethod
    def of(cls, scores: Array, hypothesis: Hypothesis) -> _SimulatedScoreLaw:
        weights = 2 * expit(scores if hypothesis == "same" else -scores) / len(scores)
        return cls(scores, np.minimum(weights[::-1].cumsum()[::-1], 1.0))

    def exceedance(self, score: float) -> float:
        index = int(np.searchsorted(self.scores, score))
        return float(self.reaching[index]) if index < len(self.scores) else 0.0

    def threshold(self, rate: float) -> float:
        index = int(np.searchsorted(-self.reaching, -rate))
        return float(self.scores[min(index, len(self.scores) - 1)])
