"""The metric of a target: its statistics, blended with the source's and with those of true labels."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lookdown.adaptation.adaptation_settings import AdaptationSettings
from lookdown.adaptation.k_means import Clusters, find_clusters
from lookdown.adaptation.pseudo_labels import Covariances, pseudo_moments
from lookdown.adaptation.shards import Rows
from lookdown.adaptation.ward_tree import WardTree, find_tree
from lookdown.errors import LowRankWarning
from lookdown.metrics import Cosine, GaussianLikelihoodRatio, KindLikelihoodRatio, Metric, MixtureLikelihoodRatio
from lookdown.metrics.pair_moments import PairMoments, Weighting

__all__ = ["estimate", "estimate_kinds", "normalizes", "target_clusters", "weighting"]

Array = NDArray[np.float64]

# Chosen on validation splits with 2 to 20 labels a kind: the fewer there are, the less is known of how a kind spreads,
# and the more of its chips may seem to be of none of the kinds. Each is a number divided by the labels of a kind.
_TEMPERATURE, _TEMPERATURES = 20.0, (3.0, 10.0)
_NOVELTY, _NOVELTIES = 0.6, (0.1, 0.3)
_MOST_NOVELTY = 0.9  # where background is marked, its share of the marks, but not more


def normalizes(source: Metric) -> bool:
    """Whether the metric normalizes embeddings, so that clusters are found on the unit sphere."""
    return bool(getattr(source, "normalize", isinstance(source, Cosine)))


def weighting(source: Metric, settings: AdaptationSettings) -> Weighting:
    """Return how pairs are weighted: as the settings say, else as the source metric does."""
    own: Weighting = getattr(source, "weighting", "pairs")
    return settings.weighting or own


def target_clusters(
    source: Metric, X: Rows, clusters: int | Literal["auto"], settings: AdaptationSettings, by: Rows, seed: int = 0
) -> Clusters | WardTree:
    """Find clusters of `by`, in later rounds in the space of the metric so far."""
    pseudo_kinds = _clusters(source, by, clusters, settings, None, seed)
    for _ in range(settings.rounds - 1):
        so_far = Covariances.of(
            pseudo_moments(X, pseudo_kinds, settings, by), weighting(source, settings), pseudo_kinds.cuts
        )
        space = estimate(source, settings, so_far, indefinite="clip").factor_
        pseudo_kinds = _clusters(source, by, clusters, settings, space, seed)
    return pseudo_kinds


def estimate(
    source: Metric,
    settings: AdaptationSettings,
    pseudo: Covariances | None,
    labelled: PairMoments | None = None,
    **changes: Any,
) -> GaussianLikelihoodRatio:
    """Return the likelihood ratio of pseudo-labels, of true labels, or of both; either may be missing."""
    metric = GaussianLikelihoodRatio(**_parameters(source, settings) | changes)
    blend = pseudo if pseudo is None else _with_source(pseudo, source, settings)
    if labelled is not None:  # these are weighted as the source is, whatever clusters are weighted by
        blend = _with_labels(Covariances.of(labelled, getattr(source, "weighting", "pairs")), blend, source)
    assert blend is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowRankWarning)  # expected: K clusters give a rank of about K - 1
        # S0 / (1 - f) turns S1^-1 - S0^-1 into S1^-1 - (1 - f) S0^-1, which has full rank as f goes to 1.
        metric.fit_covariances(blend.same, blend.different / (1 - settings.full_rank), blend.mean, free=blend.free)
    metric.pseudo_labelled_ = True
    return metric


def estimate_kinds(
    source: Metric,
    settings: AdaptationSettings,
    pseudo: PairMoments | None,
    labelled: PairMoments | None = None,
    cuts: NDArray[np.int64] | None = None,
    names: NDArray[Any] | None = None,
    fallback: Metric | None = None,
) -> KindLikelihoodRatio:
    """Return the ratio of labelled kinds, of the pseudo-kinds of every cut, or of both; either may be missing.

    Where both are there, pseudo-kinds compare chips that are of none of the labelled kinds.

    names: of the labelled kinds 0, 1, ...; each class beyond them is a chip of background.
    fallback: what compares chips of none of the labelled kinds where there are no pseudo-kinds.
    """
    parameters: dict[str, Any] = {
        "shrinkage": _parameters(source, settings)["shrinkage"],
        "weighting": weighting(source, settings),
        "normalize": normalizes(source),
    }
    metric = None
    if pseudo is not None:
        cuts = np.arange(len(pseudo.classes))[None] if cuts is None else cuts
        partitions = [pseudo.regrouped(cut[pseudo.classes]) for cut in cuts]
        metric = fallback = KindLikelihoodRatio(0.0, settings.temperature, **parameters).fit_moments(*partitions)
        if metric.names_kinds:
            del metric.kinds_  # one cut, whose clusters have no names either
    if labelled is not None:
        each = labelled.counts[labelled.counts > 1].mean()
        novelty, temperature = np.clip(_NOVELTY / each, *_NOVELTIES), np.clip(_TEMPERATURE / each, *_TEMPERATURES)
        names = labelled.classes if names is None else names
        background = labelled.classes[len(names) :]
        novelty = max(novelty, min(len(background) / labelled.samples, _MOST_NOVELTY))
        metric = KindLikelihoodRatio(float(novelty), float(temperature), **parameters)
        metric.fit_moments(labelled, fallback=fallback, background=background)
        metric.kinds_ = names
    assert metric is not None
    metric.pseudo_labelled_ = True
    return metric


def _clusters(
    source: Metric,
    by: Rows,
    clusters: int | Literal["auto"],
    settings: AdaptationSettings,
    space: Array | None,
    seed: int,
) -> Clusters | WardTree:
    normalize = normalizes(source)
    if settings.levels:
        centred = settings.centred and space is None  # differences, which a metric compares, have no centre
        return find_tree(by, clusters, settings.levels, normalize=normalize, centred=centred, map=space, seed=seed)
    assert clusters != "auto"
    return find_clusters(by, clusters, normalize=normalize, map=space, seed=seed)


def _with_source(target: Covariances, source: Metric, settings: AdaptationSettings) -> Covariances:
    """Blend in the statistics of the source, the more the fewer images of the target there are."""
    if not (settings.source_chips and _has_statistics(source)):
        return target
    share = settings.source_chips / (settings.source_chips + target.free[1] + 1)
    return target.blended(source.same_covariance_, source.different_covariance_, share)


def _with_labels(true: Covariances, otherwise: Covariances | None, source: Metric) -> Covariances:
    """Shrink the statistics of true labels towards what is known without them, the more the fewer there are.

    With n labels, less the classes, and d dimensions the share is 2d / (2d + n): half for 2d labels. Without clusters
    the source's statistics take their place, and where it has none, a sphere.
    """
    d = len(true.mean)
    share = 2 * d / (2 * d + true.free[0])
    otherwise = otherwise or _without_clusters(true, source)
    # The chips that would give an error as large: by the labels alone, shrinkage="auto" would make the blend a sphere.
    free = [1 / ((1 - share) ** 2 / n + share**2 / m) for n, m in zip(true.free, otherwise.free, strict=True)]
    return replace(true.blended(otherwise.same, otherwise.different, share), free=(free[0], free[1]))


def _without_clusters(true: Covariances, source: Metric) -> Covariances:
    """Return the source's statistics, or a sphere; neither is estimated from the target, so neither has an error."""
    free = np.inf, np.inf
    if _has_statistics(source):
        return Covariances(source.same_covariance_, source.different_covariance_, true.mean, free)
    d = len(true.mean)
    same, different = (np.trace(part) / d * np.eye(d) for part in (true.same, true.different))
    return Covariances(same, different, true.mean, free)


def _has_statistics(source: Metric) -> bool:
    return hasattr(source, "same_covariance_")


def _parameters(source: Metric, settings: AdaptationSettings) -> dict[str, Any]:
    """Return the parameters of the new metric: those of the source, unless the settings have others."""
    parameters: dict[str, Any] = {"shrinkage": 0.1}
    if isinstance(source, GaussianLikelihoodRatio):
        parameters = source.get_params()
    elif isinstance(source, MixtureLikelihoodRatio):
        parameters = {"shrinkage": source.shrinkage, "indefinite": "keep"}
    parameters |= {"normalize": normalizes(source), "weighting": weighting(source, settings)}
    own = {"indefinite": settings.indefinite, "shrinkage": settings.shrinkage}
    return parameters | {name: value for name, value in own.items() if value is not None}
