"""From a source metric and unlabelled images to a metric for these, or back to the source with a reason."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from lookdown.adaptation.adaptation_settings import AUTO, AUTO_OF_MIXTURES, CPLFPA, AdaptationSettings
from lookdown.adaptation.k_means import SAMPLE_ROWS, all_alike
from lookdown.adaptation.separation import ENOUGH, choose_clusters, separation, separation_of
from lookdown.adaptation.shards import Shards
from lookdown.adaptation.target import Basis, Target, checked_embeddings
from lookdown.adaptation.target_metric import estimate, estimate_kinds, normalizes, target_clusters
from lookdown.adaptation.ward_tree import TREE_ROWS
from lookdown.errors import InputError, UnsupportedOperationError
from lookdown.metrics import Metric, MixtureLikelihoodRatio
from lookdown.metrics.inputs import PartialLabels
from lookdown.progress import Progress, no_progress

__all__ = ["Adaptation", "Method", "adapt"]

Method = Literal["auto", "cplfpa"]

_FEWEST_IMAGES = 50  # that something can be learnt from
_PERCENT_JUDGED, _PERCENT_CHOOSING, _PERCENT_CLUSTERED = 10, 30, 50  # of many images, assigning all takes longest


@dataclass(frozen=True, slots=True)
class Adaptation:
    """A metric for the target domain, and the evidence for it; `adapt` returns it.

    metric: a new metric without calibration, or the source's own.
    clusters: how many were found, at the coarsest cut of a tree; 0 where none were looked for.
    helped: whether the metric is likely to be better than the source's.
    reason: what was done and why, in a sentence.
    separation: how far clusters of the target stand apart, from 0 (one cloud) to 1.

    >>> import lookdown, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(5 * centre, size=(40, 4)) for centre in np.eye(4)])
    >>> adaptation = lookdown.adapt(lookdown.Cosine(), X)
    >>> labels = [0] * 40 + [1] * 40 + [None] * 80
    >>> adaptation.recalibrate(X, labels).metric.calibration_ is not None
    True
    """

    metric: Metric
    clusters: int
    helped: bool
    reason: str
    separation: float = 0.0
    _basis: Basis | None = None

    def update(self, X: ArrayLike | Shards, *, cluster_by: ArrayLike | None = None) -> Self:
        """Return the adaptation to further images as well: their moments are added to those of the images before.

        X, cluster_by: as for `adapt`.
        """
        if self._basis is None:
            raise UnsupportedOperationError(
                "there are no moments that images could be added to: the source metric was kept, or the metric is a "
                "mixture, or clusters are soft; call adapt with all images"
            )
        embeddings, by = checked_embeddings(self.metric, X, cluster_by)
        basis = self._basis.with_more(embeddings, by)
        reason = f"{self.reason}, and {len(embeddings):,} images more"
        return replace(self, metric=basis.metric(), reason=reason, _basis=basis)

    def recalibrate(
        self,
        X: ArrayLike,
        labels: PartialLabels | None = None,
        *,
        background: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        seed: int = 0,
    ) -> Self:
        """Return the adaptation with its metric calibrated on chips of the target that someone has looked at.

        X: embeddings of these chips.
        labels: their true labels, None where unknown.
        background: marks chips that show no object; they differ from every object, labelled or not.
        groups, seed: as for `Metric.calibrate`.
        """
        metric = deepcopy(self.metric)  # it may be the source's own
        return replace(self, metric=metric.calibrate(X, labels, groups, background, seed=seed))


def adapt(
    metric: Metric,
    X: ArrayLike | Shards,
    *,
    clusters: int | Literal["auto"] = "auto",
    method: Method | AdaptationSettings = "auto",
    labels: PartialLabels | None = None,
    background: ArrayLike | None = None,
    cluster_by: ArrayLike | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Adaptation:
    """Re-estimate a metric on the images of a target domain: queries, gallery and background alike.

    metric: the source, fitted on another domain; `Cosine` where there is none.
    X: embeddings, or `Shards` of them. Of shards, only a sample is fetched, and the rest of the work is done where
        they are; a mixture, and settings with `nearest` or `softness`, fetch all rows.
    clusters: the number of kinds, and one more for the background; `auto` estimates it.
    method: `cplfpa` is Algorithm 3 of the paper: K-means, all pairs under the pseudo-labels, a new metric. `auto`
        merges images into a tree and takes the mean over its cuts into few and many clusters; where images do not form
        clusters it keeps the source metric, and says so. `AdaptationSettings` are for other variants. A mixture is
        always fitted to one set of clusters, by K-means.
    labels: true labels, and None, NaN or -1 where there are none; the more there are, the less pseudo-labels count.
        By default the new metric names their kinds: `predict` says which of them a chip shows.
    background: marks images that show no object; they are of none of the kinds, and their labels are not read.
    cluster_by: embeddings of the same images to find clusters by, if there are steadier ones than X: the mean over
        quarter turns of an image changes little with the heading of its object.
    seed: of the clustering; the same seed gives the same metric.
    progress: is called now and then with the percentage of the work that is done.

    >>> import lookdown, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(5 * centre, size=(40, 4)) for centre in np.eye(4)])
    >>> adaptation = lookdown.adapt(lookdown.Cosine(), X)
    >>> adaptation.clusters, adaptation.helped
    (4, True)
    >>> adaptation.metric.score(X[:1], X).shape
    (1, 160)
    """
    embeddings, by = checked_embeddings(metric, X, cluster_by)
    settings = _settings(method, metric)
    target = Target.of(metric, embeddings, by, settings, labels, background)
    target.refuse_useless_labels()
    _refuse_count(clusters, min(len(embeddings), TREE_ROWS if settings.levels else SAMPLE_ROWS))
    normalize = normalizes(metric)
    if (method == "auto" or clusters == "auto") and len(embeddings) < _FEWEST_IMAGES:
        return _unclustered(target, f"{len(embeddings)} images are too few to find clusters; give {_FEWEST_IMAGES}")
    if all_alike(by, normalize=normalize):
        return _unclustered(target, "all images look the same to the network, so there is one cluster")
    apart = separation(by, normalize=normalize, seed=seed) if method == "auto" else None
    if apart is not None and apart < ENOUGH:
        reason = f"the images do not form clear clusters (separation {apart:.2f}, and {ENOUGH} is needed)"
        return _unclustered(target, reason, apart)
    progress(_PERCENT_JUDGED, 100, "percent")
    if clusters == "auto" and not settings.levels:

        def on_trial(done: int, total: int | None, unit: str) -> None:
            progress(_PERCENT_JUDGED + _PERCENT_CHOOSING * done // (total or done), 100, "percent")

        clusters = choose_clusters(by, normalize=normalize, seed=seed, progress=on_trial)
    pseudo_kinds = target_clusters(metric, embeddings, clusters, settings, by, seed)
    progress(_PERCENT_CLUSTERED, 100, "percent")
    apart = separation_of(pseudo_kinds, by, seed) if apart is None else apart
    adapted, basis = target.estimate(pseudo_kinds)
    reason = f"{len(embeddings):,} images in {pseudo_kinds.description} (separation {apart:.2f})"
    if target.known.any():
        reason += f", and {target.labels_in_words}"
    return Adaptation(adapted, pseudo_kinds.count, apart >= ENOUGH or target.well_labelled, reason, apart, basis)


def _unclustered(target: Target, reason: str, apart: float = 0.0) -> Adaptation:
    """Keep the source metric, or blend it with true labels, where there are no clusters."""
    source, labelled = target.source, target.labelled_moments()
    if labelled is not None and not isinstance(source, MixtureLikelihoodRatio):
        settings = replace(target.settings, ratio="differences", shrinkage=None)  # of clusters
        metric: Metric = estimate(source, settings, None, labelled)
        if target.settings.ratio == "kinds":
            metric = estimate_kinds(source, target.settings, None, labelled, names=target.names, fallback=metric)
        reason = f"the source metric is blended with {target.labels_in_words}, without clusters: {reason}"
        return Adaptation(metric, 0, target.well_labelled, reason, apart)
    reason = f"the source metric is kept: {reason}"
    if labelled is not None:
        reason += f" (a mixture learns nothing from {target.labels_in_words} without clusters)"
    if source.calibration_ is not None:
        reason += "; its thresholds are those of the domain it was calibrated on"
    return Adaptation(source, 0, False, reason, apart)


def _settings(method: Method | AdaptationSettings, metric: Metric) -> AdaptationSettings:
    mixture = isinstance(metric, MixtureLikelihoodRatio)
    if isinstance(method, AdaptationSettings):
        if mixture and replace(method, weighting=None, rounds=1) != CPLFPA:
            raise InputError("a mixture is fitted to K-means clusters; of the settings, give weighting and rounds only")
        return method
    if method not in ("auto", "cplfpa"):
        raise InputError(f"method must be 'auto', 'cplfpa' or AdaptationSettings, got {method!r}")
    if method == "cplfpa":
        return CPLFPA
    return AUTO_OF_MIXTURES if mixture else AUTO


def _refuse_count(clusters: int | Literal["auto"], images: int) -> None:
    most = images - 1  # as many clusters as images would leave no same pair
    if clusters != "auto" and not (isinstance(clusters, int | np.integer) and 2 <= clusters <= most):
        raise InputError(
            f"clusters must be 'auto' or a whole number from 2 to {most} for {images} images, got {clusters!r}"
        )
