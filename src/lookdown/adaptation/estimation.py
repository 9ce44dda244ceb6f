"""Statistics of the target, blended with the source's and with true labels, and the metric that follows from them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lookdown.adaptation.clustering import Clusters, find_clusters
from lookdown.adaptation.hierarchy import Hierarchy, find_hierarchy
from lookdown.adaptation.pseudo_labels import Covariances, pseudo_moments
from lookdown.adaptation.settings import Settings
from lookdown.adaptation.shards import Rows
from lookdown.errors import LowRankWarning
from lookdown.metrics import Cosine, GaussianLikelihoodRatio, Metric, MixtureLikelihoodRatio
from lookdown.metrics.pair_moments import PairMoments, Weighting

__all__ = ["estimate", "normalizes", "target_clusters", "weighting"]

Array = NDArray[np.float64]


def normalizes(source: Metric) -> bool:
    """Whether the metric puts embeddings on the unit sphere, so that clusters are to be found there."""
    return bool(getattr(source, "normalize", isinstance(source, Cosine)))


def weighting(source: Metric, settings: Settings) -> Weighting:
    """Return how pairs are weighted: as the settings say, else as the source metric does."""
    own: Weighting = getattr(source, "weighting", "pairs")
    return settings.weighting or own


def target_clusters(
    source: Metric, X: Rows, clusters: int | Literal["auto"], settings: Settings, by: Rows, seed: int = 0
) -> Clusters | Hierarchy:
    """Find clusters of `by` where it lies, and in later rounds in the space of the metric so far."""
    found = _clusters(source, by, clusters, settings, None, seed)
    for _ in range(settings.rounds - 1):
        so_far = Covariances.of(pseudo_moments(X, found, settings, by), weighting(source, settings), found.cuts)
        space = estimate(source, settings, so_far, indefinite="clip").factor_
        found = _clusters(source, by, clusters, settings, space, seed)
    return found


def estimate(
    source: Metric,
    settings: Settings,
    pseudo: Covariances | None,
    labelled: PairMoments | None = None,
    **changes: Any,
) -> GaussianLikelihoodRatio:
    """Return the likelihood ratio of pseudo-labels, of true labels, or of both; either may be missing."""
    metric = GaussianLikelihoodRatio(**_parameters(source, settings) | changes)
    blend = pseudo if pseudo is None else _with_source(pseudo, source, settings)
    if labelled is not None:  # clusters may count alike whatever their size; a label is a label
        blend = _with_labels(Covariances.of(labelled, getattr(source, "weighting", "pairs")), blend, source)
    assert blend is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowRankWarning)  # K clusters give a rank of about K - 1, which is meant
        # S0 / (1 - f) turns S1^-1 - S0^-1 into S1^-1 - (1 - f) S0^-1, which has full rank as f goes to 1.
        metric.fit_covariances(blend.same, blend.different / (1 - settings.full_rank), blend.mean, free=blend.free)
    metric.pseudo_labelled_ = True
    return metric


def _clusters(
    source: Metric, by: Rows, clusters: int | Literal["auto"], settings: Settings, space: Array | None, seed: int
) -> Clusters | Hierarchy:
    normalize = normalizes(source)
    if settings.levels:
        centred = settings.centred and space is None  # the space of a metric compares by differences, from wherever
        return find_hierarchy(by, clusters, settings.levels, normalize=normalize, centred=centred, map=space, seed=seed)
    assert clusters != "auto"
    return find_clusters(by, clusters, normalize=normalize, map=space, seed=seed)


def _with_source(target: Covariances, source: Metric, settings: Settings) -> Covariances:
    """Blend in the statistics of the source, the more the fewer images of the target there are."""
    if not (settings.source_chips and _has_statistics(source)):
        return target
    share = settings.source_chips / (settings.source_chips + target.free[1] + 1)
    return target.blended(source.same_covariance_, source.different_covariance_, share)


def _with_labels(true: Covariances, otherwise: Covariances | None, source: Metric) -> Covariances:
    """Shrink the statistics of true labels towards what is known without them, the more the fewer there are.

    With n labels, less the classes, and d dimensions the share is 2d / (2d + n): half for 2d labels. Without clusters
    the source stands in, and without statistics the sphere.
    """
    d = len(true.mean)
    share = 2 * d / (2 * d + true.free[0])
    otherwise = otherwise or _without_clusters(true, source)
    # As many chips as would be off by as much: few labels alone would have shrinkage="auto" make a sphere of the blend.
    free = [1 / ((1 - share) ** 2 / n + share**2 / m) for n, m in zip(true.free, otherwise.free, strict=True)]
    return replace(true.blended(otherwise.same, otherwise.different, share), free=(free[0], free[1]))


def _without_clusters(true: Covariances, source: Metric) -> Covariances:
    """Return the source's statistics, or the sphere; neither is estimated from the target, so neither is off."""
    free = np.inf, np.inf
    if _has_statistics(source):
        return Covariances(source.same_covariance_, source.different_covariance_, true.mean, free)
    d = len(true.mean)
    same, different = (np.trace(part) / d * np.eye(d) for part in (true.same, true.different))
    return Covariances(same, different, true.mean, free)


def _has_statistics(source: Metric) -> bool:
    return hasattr(source, "same_covariance_")


def _parameters(source: Metric, settings: Settings) -> dict[str, Any]:
    """Return the parameters of the new metric: those of the source, but for what the settings say."""
    parameters: dict[str, Any] = {"shrinkage": 0.1}
    if isinstance(source, GaussianLikelihoodRatio):
        parameters = source.get_params()
    elif isinstance(source, MixtureLikelihoodRatio):
        parameters = {"shrinkage": source.shrinkage, "indefinite": "keep"}
    parameters |= {"normalize": normalizes(source), "weighting": weighting(source, settings)}
    said = {"indefinite": settings.indefinite, "shrinkage": settings.shrinkage}
    return parameters | {name: value for name, value in said.items() if value is not None}
