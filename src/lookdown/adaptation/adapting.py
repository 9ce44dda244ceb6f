"""From a source metric and the unlabelled target to a metric for the target, or back to the source with a reason."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.adaptation.clustering import SAMPLE, Clusters, all_alike
from lookdown.adaptation.estimation import estimate, normalizes, target_clusters, weighting
from lookdown.adaptation.hierarchy import TREE_ROWS, Hierarchy
from lookdown.adaptation.number_of_clusters import choose_clusters
from lookdown.adaptation.pseudo_labels import Covariances, pseudo_moments, soft_covariances
from lookdown.adaptation.settings import AUTO, AUTO_OF_MIXTURES, CPLFPA, Settings
from lookdown.adaptation.shards import Rows, Shards, over_shards
from lookdown.adaptation.support import ENOUGH, separation, separation_of
from lookdown.errors import InputError, UnsupportedOperationError
from lookdown.metrics import Metric, MixtureLikelihoodRatio
from lookdown.metrics.inputs import Embeddings, PartialLabels, as_partial_labels, refuse_non_finite, refuse_zero
from lookdown.metrics.pair_moments import PairMoments
from lookdown.progress import Progress, no_progress

__all__ = ["Adaptation", "Method", "adapt"]

Method = Literal["auto", "cplfpa"]

_FEWEST = 50  # images that something can be learnt from
_JUDGED, _CHOOSING, _CLUSTERED = 10, 30, 50  # percent of the work; of many images, assigning all is the most


@dataclass(frozen=True, slots=True)
class Adaptation:
    """A metric for the target domain, and what is known of it without labels.

    `metric` is new and has no calibration, or it is the source's own. `helped` says whether it is likely to be better
    than that; the evidence is `separation`: how far clusters of the target stand apart, from 0 (one cloud) to 1.
    """

    metric: Metric
    clusters: int  # at the coarsest cut of a tree; 0 where none were looked for
    helped: bool
    reason: str
    separation: float = 0.0
    _basis: _Basis | None = None

    def update(self, X: ArrayLike | Shards, *, cluster_by: ArrayLike | None = None) -> Self:
        """Return the adaptation to further images as well: their moments are added to those of the images before."""
        if self._basis is None:
            raise UnsupportedOperationError(
                "there are no moments that images could be added to: the source metric was kept, or the metric is a "
                "mixture, or clusters are soft; call adapt with all images"
            )
        embeddings, by = _embeddings(self.metric, X, cluster_by)
        basis = self._basis.with_more(embeddings, by)
        more = f"{self.reason}, and {len(embeddings):,} images more"
        return replace(self, metric=basis.metric(), reason=more, _basis=basis)

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

        `labels` are true ones, None where unknown; `background` marks chips known to show no object, which are
        different from every object, labelled or not. See `Metric.calibrate`.
        """
        metric = deepcopy(self.metric)  # it may be the source's own
        return replace(self, metric=metric.calibrate(X, labels, groups, background, seed=seed))


@dataclass(frozen=True, slots=True)
class _Basis:
    """What a metric was estimated from, and more images can be added to."""

    source: Metric
    settings: Settings
    clusters: Clusters | Hierarchy
    pseudo: PairMoments
    labelled: PairMoments | None

    def metric(self) -> Metric:
        covariances = Covariances.of(self.pseudo, weighting(self.source, self.settings), self.clusters.cuts)
        return estimate(self.source, self.settings, covariances, self.labelled)

    def with_more(self, X: Rows, by: Rows) -> _Basis:
        return replace(self, pseudo=self.pseudo + pseudo_moments(X, self.clusters, self.settings, by))


def adapt(
    metric: Metric,
    X: ArrayLike | Shards,
    *,
    clusters: int | Literal["auto"] = "auto",
    method: Method | Settings = "auto",
    labels: PartialLabels | None = None,
    cluster_by: ArrayLike | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Adaptation:
    """Re-estimate a metric on the images of a target domain: queries, gallery and background alike.

    X: embeddings, or `Shards` of them: what all rows are needed for is then done where they lie, and some are fetched.
        A mixture, and settings with `nearest` or `softness`, fetch them all.
    method: `cplfpa` is Algorithm 3 of the paper: K-means, all pairs under the pseudo-labels, a new metric. `auto`
        merges images into a tree and takes the mean over its cuts into few and many clusters; where the target does
        not fall into clusters it keeps the source metric, and says so. `Settings` is for trying other ways.
        A mixture is fitted to one set of clusters, by K-means.
    clusters: how many kinds there are, and one for the background; `auto` finds out.
    labels: true ones, and None, NaN or -1 where there are none; the more there are, the less pseudo-labels count.
    cluster_by: embeddings of the same images that clusters are found by, where steadier ones than X are at hand: the
        mean over quarter turns of an image changes little with the heading of what it shows.
    progress: is called now and then with the percentage of the work that is done.
    """
    embeddings, by = _embeddings(metric, X, cluster_by)
    settings = _settings(method, metric)
    if isinstance(metric, MixtureLikelihoodRatio) and isinstance(method, Settings):
        _refuse_for_mixtures(method)
    target = _Target(metric, embeddings, by, settings, *as_partial_labels(labels, len(embeddings), name="labels"))
    target.refuse_useless_labels()
    _refuse_count(clusters, min(len(embeddings), TREE_ROWS if settings.levels else SAMPLE))
    if (method == "auto" or clusters == "auto") and len(embeddings) < _FEWEST:
        return target.kept(f"{len(embeddings)} images are too few to tell clusters in them; {_FEWEST} would do")
    if all_alike(by, normalize=normalizes(metric)):
        return target.kept("all images look the same to the network, so there is one cluster")
    if method == "auto":
        apart = separation(by, normalize=normalizes(metric), seed=seed)
        if apart < ENOUGH:
            return target.kept(
                f"the images hardly fall into clusters (separation {apart:.2f}, where {ENOUGH} would do), so "
                "pseudo-labels would say little of kinds",
                apart,
            )
    progress(_JUDGED, 100, "percent")
    if clusters == "auto" and not settings.levels:

        def on_trial(done: int, total: int | None, unit: str) -> None:
            progress(_JUDGED + _CHOOSING * done // (total or done), 100, "percent")

        clusters = choose_clusters(by, normalize=normalizes(metric), seed=seed, progress=on_trial)
    found = target_clusters(metric, embeddings, clusters, settings, by, seed)
    progress(_CLUSTERED, 100, "percent")
    return target.adapted(found, apart if method == "auto" else separation_of(found, by, seed))


@dataclass(frozen=True, slots=True)
class _Target:
    """The images of the target, and what is known of them."""

    source: Metric
    embeddings: Rows
    by: Rows  # what clusters are found by
    settings: Settings
    labels: np.ndarray[tuple[int], np.dtype[np.int64]]
    known: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def refuse_useless_labels(self) -> None:
        counts = np.bincount(self.labels[self.known])
        if self.known.any() and (len(counts) < 2 or counts.max() < 2):
            raise InputError(
                f"{self.known.sum()} labels of {len(counts)} classes make no same and different pairs; label at least "
                "two images of one class and one of another, or leave labels away"
            )

    def labelled(self) -> PairMoments | None:
        if not self.known.any():
            return None
        work = partial(_labelled_moments, labels=self.labels, known=self.known, normalize=normalizes(self.source))
        return reduce(add, over_shards(self.embeddings, work))

    def kept(self, reason: str, apart: float = 0.0) -> Adaptation:
        """Fall back to the source metric, or to it and what the labels teach."""
        labelled = self.labelled()
        if labelled is None or isinstance(self.source, MixtureLikelihoodRatio):
            told = "" if labelled is None else f" (a mixture learns nothing from {self.told()} without clusters)"
            if self.source.calibration_ is not None:
                told += "; its thresholds are those of the domain it was calibrated on"
            return Adaptation(self.source, 0, False, f"the source metric is kept: {reason}{told}", apart)
        metric = estimate(self.source, replace(self.settings, shrinkage=None), None, labelled)  # it is for clusters
        said = f"the source metric is blended with {self.told()}, without clusters: {reason}"
        return Adaptation(metric, 0, self.well_labelled, said, apart)

    @property
    def well_labelled(self) -> bool:
        """Whether true labels have at least half of the say: see `estimate`."""
        free = self.known.sum() - len(np.unique(self.labels[self.known]))
        return bool(free >= 2 * self.embeddings.shape[1])

    def adapted(self, clusters: Clusters | Hierarchy, apart: float) -> Adaptation:
        reason = f"{len(self.embeddings):,} images in {clusters.told} (separation {apart:.2f})"
        if self.known.any():
            reason += f", and {self.told()}"
        helped = apart >= ENOUGH or self.well_labelled
        metric, basis = self.estimated(clusters)
        return Adaptation(metric, clusters.count, helped, reason, apart, basis)

    def estimated(self, clusters: Clusters | Hierarchy) -> tuple[Metric, _Basis | None]:
        if isinstance(self.source, MixtureLikelihoodRatio):
            assert isinstance(clusters, Clusters)
            parameters = self.source.get_params() | {"weighting": weighting(self.source, self.settings)}
            mixture = MixtureLikelihoodRatio(**parameters).fit(self.embeddings[:], self.mixed_labels(clusters))
            mixture.pseudo_labelled_ = True
            return mixture, None
        if self.settings.softness:
            assert isinstance(clusters, Clusters)
            soft = soft_covariances(self.embeddings[:], clusters, self.settings, self.by[:])
            return estimate(self.source, self.settings, soft, self.labelled()), None
        moments = pseudo_moments(self.embeddings, clusters, self.settings, self.by)
        basis = _Basis(self.source, self.settings, clusters, moments, self.labelled())
        return basis.metric(), basis

    def mixed_labels(self, clusters: Clusters) -> NDArray[np.int64]:
        """Return the true label of each image, else the most frequent one of its cluster, else its cluster."""
        found = clusters.assign(self.by[:])[0]
        names = np.arange(len(clusters.centres))
        for cluster in np.unique(found[self.known]):
            names[cluster] = len(names) + np.bincount(self.labels[self.known & (found == cluster)]).argmax()
        return np.where(self.known, len(names) + self.labels, names[found])

    def told(self) -> str:
        return f"{self.known.sum():,} true labels of {len(np.unique(self.labels[self.known]))} kinds"


def _embeddings(metric: Metric, X: ArrayLike | Shards, cluster_by: ArrayLike | None) -> tuple[Rows, Rows]:
    """Return what the metric is estimated on, and what clusters are found by."""
    if isinstance(X, Shards):
        if cluster_by is not None:
            raise InputError("clusters of shards are found by the shards themselves; leave cluster_by away")
        return _checked(metric, X), X
    embeddings = metric._embeddings(X)
    by = embeddings if cluster_by is None else metric._embeddings(cluster_by)
    if len(by) != len(embeddings):
        raise InputError(
            f"cluster_by has {len(by)} rows and X has {len(embeddings)}; it must hold the same images in the same order"
        )
    if normalizes(metric):
        for rows in (embeddings, by):
            refuse_zero(rows)  # here, since a block would name its own row
    return embeddings, by


def _checked(metric: Metric, shards: Shards) -> Shards:
    """Refuse shards as an array would be, by one look at their shape and one at all rows."""
    metric._embeddings(np.ones((1, shards.shape[1])))
    for told in shards.map(partial(_complaint, normalize=normalizes(metric))):
        if told is not None:
            raise InputError(told)
    return shards


def _complaint(X: Embeddings, begin: int, *, normalize: bool) -> str | None:
    try:
        refuse_non_finite(X)
        if normalize:
            refuse_zero(X)
    except InputError as error:
        return f"in the part from row {begin:,} on, {error}"
    return None


def _labelled_moments(
    X: Embeddings, begin: int, *, labels: NDArray[np.int64], known: NDArray[np.bool_], normalize: bool
) -> PairMoments:
    part = slice(begin, begin + len(X))
    rows = known[part]
    return PairMoments.of(X[rows], labels[part][rows], normalize) if rows.any() else PairMoments(normalize)


def _settings(method: Method | Settings, metric: Metric) -> Settings:
    if isinstance(method, Settings):
        return method
    if method not in ("auto", "cplfpa"):
        raise InputError(f"method must be 'auto', 'cplfpa' or Settings, got {method!r}")
    if method == "cplfpa":
        return CPLFPA
    return AUTO_OF_MIXTURES if isinstance(metric, MixtureLikelihoodRatio) else AUTO


def _refuse_for_mixtures(settings: Settings) -> None:
    if replace(settings, weighting=None, rounds=1) != CPLFPA:
        raise InputError("a mixture is fitted to clusters as they are; of the settings it knows weighting and rounds")


def _refuse_count(clusters: int | Literal["auto"], images: int) -> None:
    most = images - 1  # as many clusters as images would leave no same pair
    if clusters != "auto" and not (isinstance(clusters, int | np.integer) and 2 <= clusters <= most):
        raise InputError(
            f"clusters must be 'auto' or a whole number from 2 to {most} for {images} images, got {clusters!r}"
        )
