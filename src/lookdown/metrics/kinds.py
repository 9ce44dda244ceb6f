"""The likelihood ratio of kinds: are two objects of one kind, given what each embedding says of its kind?"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import InputError, LowRankWarning, UnsupportedOperationError
from lookdown.metrics.gaussian import GaussianLikelihoodRatio
from lookdown.metrics.inputs import Array, Embeddings, as_labels, as_number, unit
from lookdown.metrics.kind_model import MODEL_ARRAYS, KindModel
from lookdown.metrics.metric import Metric
from lookdown.metrics.pair_moments import PairMoments, Weighting, check_moments
from lookdown.metrics.pairwise import paired_differences
from lookdown.suggestions import did_you_mean

__all__ = ["KindLikelihoodRatio", "Terms"]

_TEMPERATURES = 2.0 ** np.arange(0, 8.5, 0.5)
_LEAST_RATIO = 1e-100  # two chips whose kinds exclude each other: zero but for rounding


class Terms(NamedTuple):
    """What the ratio of two chips is made of: shares_x . shares_y + exp(none_x + none_y) times the fallback's ratio."""

    shares: Array  # (n, kinds): P(kind | x) / sqrt(P(kind)), over the root of the number of partitions
    none: Array  # (n,): log of P(none | x) / sqrt(P(none)), -inf where there is no such kind


class KindLikelihoodRatio(Metric):
    """The log-likelihood ratio of kinds that are known: log of p(x, y | same kind) / (p(x) p(y)).

    With the kind c as a latent variable it is the log of the sum over kinds of P(c | x) P(c | y) / P(c). A chip of a
    new kind, or of background, is of "none of these"; two of those are compared by the ratio of differences, so new
    kinds are found as before. `docs/kinds.md` derives it.

    It is estimated from the moments of each kind alone, exactly over batches, shards and machines. `temper` it on chips
    of other places, since a network is surer of the chips it was trained on; `calibrate` it for rates.

    novelty: the share of chips that are of none of the known kinds, 0 to 1; at 0 every chip is of a known kind.
    temperature: divides the evidence for a kind; more than 1 makes the metric less sure.
    shrinkage: of covariances towards a sphere, `auto` (OAS) or 0 to 1.
    weighting: `classes`: all kinds are equally frequent; `pairs`: as frequent as in the training set.
    normalize: put embeddings on the unit sphere first.

    Attributes: `kinds_`, their labels, sorted, unless they are pseudo-kinds; `temperature_`; `fallback_`, the metric of
    two chips of none of them, or None; `n_features_in_`, dimensions.

    >>> import lookdown, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["ferry", "tug", "tanker"], 20)
    >>> X = np.eye(4)[np.repeat([0, 1, 2], 20)] + 0.1 * rng.normal(size=(60, 4))
    >>> metric = lookdown.KindLikelihoodRatio().fit(X, y)
    >>> metric.predict([[1.0, 0.1, 0.0, 0.0]]).tolist()
    ['ferry']
    >>> metric.predict_proba([[0.0, 0.0, 0.0, 1.0]]).sum().round(1)  # so it is of none of these
    np.float64(0.0)
    """

    fallback_: Metric | None

    def __init__(
        self,
        novelty: float = 0.1,
        temperature: float = 8.0,
        shrinkage: float | Literal["auto"] = "auto",
        weighting: Weighting = "classes",
        normalize: bool = True,
    ) -> None:
        self.novelty = novelty
        self.temperature = temperature
        self.shrinkage = shrinkage
        self.weighting = weighting
        self.normalize = normalize

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Estimate the kinds from labelled embeddings."""
        return self.fit_moments(PairMoments.of(X, y, normalize=self.normalize))  # type: ignore[arg-type]

    def fit_moments(self, *partitions: PairMoments, fallback: Metric | None = None, background: ArrayLike = ()) -> Self:
        """Estimate the kinds from moments that were gathered in batches, over shards or on several machines.

        partitions: the moments of the kinds. With several partitions of the same chips, such as clusterings into more
            and fewer pseudo-kinds, the ratio is the mean of theirs.
        fallback: a fitted metric for two chips of none of the kinds; by default the ratio of differences of the same
            moments. It must give log-likelihood ratios.
        background: the labels among those of the moments that are no kinds, but of one chip of background each. Such
            chips say how "none of these" looks.
        """
        self._check_parameters(len(partitions))
        for moments in partitions:
            check_moments(moments, normalize=self.normalize)
        empty = np.asarray(background)
        if len(empty):
            self._refuse_background(partitions, empty)
        models = [
            KindModel.of(
                part, shrinkage=self.shrinkage, weighting=self.weighting, novelty=self.novelty, background=empty
            )
            for part in partitions
        ]
        if self.novelty and fallback is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LowRankWarning)  # it ranks only what the kinds leave open
                fallback = GaussianLikelihoodRatio(self.shrinkage, normalize=self.normalize).fit_moments(partitions[0])
        self._begin(partitions[0].dim)
        self.temperature_ = float(self.temperature)
        self.fallback_ = fallback if self.novelty else None
        self._models = models
        if hasattr(self, "kinds_"):
            del self.kinds_
        if len(partitions) == 1:
            classes = partitions[0].classes
            self.kinds_: NDArray[Any] = classes[~np.isin(classes, empty)]
        return self

    def temper(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose the temperature at which held-out chips of known kinds are most likely of their own kind.

        X: embeddings of chips that nothing was fitted on, from other places if possible.
        y: their labels; chips of a kind that the metric does not know are left out.
        """
        embeddings = self._prepare(X, "X")
        kinds = self._named_kinds("temper")
        labels = as_labels(y, len(embeddings))
        if labels.dtype.kind != kinds.dtype.kind or not (known := np.isin(labels, kinds)).any():
            raise InputError("none of the labels is a kind that the metric was fitted to; give chips of known kinds")
        rows, own = embeddings[known], np.searchsorted(kinds, labels[known])
        model = self._models[0]

        def surprise(temperature: float) -> float:
            known_kinds = model.log_posteriors(rows, temperature)[:, :-1]
            known_kinds -= np.logaddexp.reduce(known_kinds, axis=1, keepdims=True)
            return -float(known_kinds[np.arange(len(own)), own].mean())

        self.temperature_ = float(min(_TEMPERATURES, key=surprise))
        self.calibration_ = None
        return self

    def score(self, queries: ArrayLike, gallery: ArrayLike) -> Embeddings:
        """Return (queries, gallery) log-likelihood ratios."""
        a, b = self.terms(queries, "queries"), self.terms(gallery, "gallery")
        return _log_ratio(a, b, self._differences("score", queries, gallery))

    def score_pairs(self, first: ArrayLike, second: ArrayLike) -> Embeddings:
        """Return the log-likelihood ratio of each row of `first` and the same row of `second`."""
        a, b = self.terms(first, "first"), self.terms(second, "second")
        paired_differences(a.shares, b.shares)  # refuses sides of different lengths
        return _log_ratio(a, b, self._differences("score_pairs", first, second), paired=True)

    def score_query(self, examples: ArrayLike, weights: ArrayLike, gallery: ArrayLike) -> Embeddings:
        """Return the log-likelihood ratio of each gallery row to several examples of one object or kind.

        What the examples say of the kind multiplies, so several are surer than one. Views of one object share its
        weight of 1.
        """
        query, rows = self.pooled_terms(examples, weights), self.terms(gallery, "gallery")
        return np.asarray(_log_ratio(query, rows, self._differences("score_query", examples, weights, gallery))[0])

    def score_kind(self, kind: object, gallery: ArrayLike) -> Embeddings:
        """Return the log-likelihood ratio of each gallery row to an example that is surely of a kind.

        It is log P(kind | x) - log P(kind).

        kind: one of `kinds_`.
        """
        return np.asarray(_log_ratio(self.terms_of(kind), self.terms(gallery, "gallery"), None)[0])

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return P(kind | x), (rows, kinds) in the order of `kinds_`; what is left to 1 is "none of these"."""
        self._named_kinds("predict")
        return np.exp(self._models[0].log_posteriors(self._prepare(X, "X"), self.temperature_)[:, :-1])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the likeliest of `kinds_` for each row; `predict_proba` says whether "none of these" is likelier."""
        kinds = self._named_kinds("predict")
        shares = self._models[0].log_posteriors(self._prepare(X, "X"), self.temperature_)[:, :-1]
        return np.asarray(kinds[shares.argmax(axis=1)])

    @property
    def names_kinds(self) -> bool:
        """Whether its kinds have names, so that it can say which of them a chip shows; pseudo-kinds have none."""
        return hasattr(self, "kinds_")

    def _named_kinds(self, wanted: str) -> NDArray[Any]:
        self._require_fit()
        if not self.names_kinds:
            raise UnsupportedOperationError(
                f"{wanted} needs kinds with names, and this metric has pseudo-kinds; fit it to labelled chips"
            )
        return self.kinds_

    @property
    def largest_ratio(self) -> float:
        """The ratio of two chips that are surely of the rarest kind: `terms` have no greater inner product."""
        known = sum(1 / model.priors[:-1].min() for model in self._models) / len(self._models)
        if isinstance(self.fallback_, KindLikelihoodRatio):
            known += self.fallback_.largest_ratio / self.novelty
        return float(known)

    def terms(self, X: ArrayLike, name: str = "X") -> Terms:
        """Return what the ratios of chips are made of; all of it is `shares` unless differences are the fallback."""
        rows = self._prepare(X, name)
        terms = self._terms_of([model.log_posteriors(rows, self.temperature_) for model in self._models])
        return self._with_fallback(terms, lambda fallback: fallback.terms(X, name))

    def terms_of(self, kind: object) -> Terms:
        """Return the same for one chip that is surely of a kind, which is one of `kinds_`."""
        names = list(map(str, self._named_kinds("a kind without an example").tolist()))
        if str(kind) not in names:
            raise InputError(f"the metric knows no kind {str(kind)!r}; {did_you_mean(kind, names)}")
        position, shares = names.index(str(kind)), np.zeros((1, self._share_count))
        shares[0, position] = 1 / np.sqrt(self._models[0].priors[position])
        return Terms(shares, np.array([-np.inf]))

    @property
    def _share_count(self) -> int:
        own = sum(len(model.priors) - 1 for model in self._models)
        return own + (self.fallback_._share_count if isinstance(self.fallback_, KindLikelihoodRatio) else 0)

    def pooled_terms(self, examples: ArrayLike, weights: ArrayLike) -> Terms:
        """Return the same for several examples as one query, as `score_query` takes them."""
        rows, numbers = self._prepare(examples, "examples"), np.asarray(weights, np.float64)
        together = self._likelier_together(rows, numbers)
        each = [
            model.pooled(model.log_posteriors(rows, self.temperature_), numbers, together) for model in self._models
        ]
        return self._with_fallback(self._terms_of(each), lambda fallback: fallback.pooled_terms(examples, numbers))

    def _likelier_together(self, rows: Embeddings, weights: Array) -> float:
        """Return the log of how much likelier examples of one new kind are together than apart, as the fallback says.

        By the chain rule that is a sum over all examples but the first, each compared with the others: on average by
        the mean score of their pairs.
        """
        pairs = np.outer(weights, weights) * ~np.eye(len(rows), dtype=np.bool_)
        objects = float(weights.sum())
        if self.fallback_ is None or objects <= 1 or not pairs.sum():
            return 0.0
        scores = self.fallback_.score(rows, rows)
        if not isinstance(self.fallback_, KindLikelihoodRatio):
            scores = scores / self.temperature_
        return (objects - 1) * float((pairs * scores).sum() / pairs.sum())

    def _terms_of(self, log_posteriors: list[Array]) -> Terms:
        partitions = list(zip(log_posteriors, self._models, strict=True))
        shares = [np.exp(values[:, :-1]) / np.sqrt(model.priors[:-1] * len(partitions)) for values, model in partitions]
        none = np.full(len(shares[0]), -np.inf)
        if self.fallback_ is not None:
            none = log_posteriors[0][:, -1] - np.log(self.novelty) / 2
        return Terms(np.concatenate(shares, axis=1), none)

    def _with_fallback(self, terms: Terms, of: Callable[[KindLikelihoodRatio], Terms]) -> Terms:
        """Append the shares of pseudo-kinds, weighted by how surely a chip is of none of the kinds."""
        if not isinstance(self.fallback_, KindLikelihoodRatio):
            return terms
        pseudo = of(self.fallback_).shares * np.exp(terms.none)[:, None]
        return Terms(np.concatenate([terms.shares, pseudo], axis=1), np.full(len(pseudo), -np.inf))

    def _differences(self, method: str, *arrays: ArrayLike) -> Array | None:
        """Return the scores of the fallback, if it is no ratio of kinds; they are tempered as the kinds are."""
        if self.fallback_ is None or isinstance(self.fallback_, KindLikelihoodRatio):
            return None
        return np.asarray(getattr(self.fallback_, method)(*arrays) / self.temperature_)

    def _prepare(self, X: ArrayLike, name: str) -> Embeddings:
        embeddings = self._embeddings(X, name)
        return unit(embeddings, name) if self.normalize else embeddings

    def _check_parameters(self, partitions: int) -> None:
        if not 0 <= as_number(self.novelty, "novelty") < 1:
            raise InputError(f"novelty must be a share from 0 to less than 1, got {self.novelty!r}")
        if not 0 < as_number(self.temperature, "temperature") < np.inf:
            raise InputError(f"temperature must be a number above 0, got {self.temperature!r}")
        if self.weighting not in ("pairs", "classes"):
            raise InputError(f"weighting must be 'pairs' or 'classes', got {self.weighting!r}")
        if not partitions:
            raise InputError("there are no moments to fit to; give one PairMoments, or several")
        if partitions > 1 and self.novelty:
            raise InputError(
                f"{partitions} partitions are all pseudo-kinds, so no chip is of none of them; use novelty=0"
            )

    def _refuse_background(self, partitions: tuple[PairMoments, ...], empty: NDArray[Any]) -> None:
        if len(partitions) > 1 or not self.novelty:
            raise InputError(
                "background shows none of the kinds, so it needs labelled kinds and a novelty above 0; omit "
                "`background`, or raise `novelty`"
            )
        if np.isin(partitions[0].classes, empty).all():
            raise InputError("every label is that of background, so there is no kind; label two chips of a kind")

    def _state(self) -> dict[str, Any]:
        kinds = getattr(self, "kinds_", None)
        state = {**super()._state(), "temperature_": self.temperature_, "fallback_": self.fallback_}
        state["kinds_"] = kinds.tolist() if kinds is not None and kinds.dtype.kind == "U" else kinds
        for number, model in enumerate(self._models):
            state |= {f"{name}.{number}": getattr(model, name) for name in MODEL_ARRAYS}
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        count = sum(name.startswith("means.") for name in state)
        self._models = [KindModel(*(state.pop(f"{name}.{k}") for name in MODEL_ARRAYS)) for k in range(count)]
        kinds = state.pop("kinds_")
        super()._restore(state if kinds is None else {**state, "kinds_": np.asarray(kinds)})


def _log_ratio(a: Terms, b: Terms, fallback: Array | None, *, paired: bool = False) -> Embeddings:
    """Return the log-likelihood ratios of all pairs, or of the pairs of one row each."""
    known = np.einsum("ij,ij->i", a.shares, b.shares) if paired else a.shares @ b.shares.T
    scores = np.log(known.clip(min=_LEAST_RATIO))
    if fallback is not None:
        none = a.none + b.none if paired else a.none[:, None] + b.none
        scores = np.logaddexp(scores, none + fallback)
    return np.asarray(scores)
