"""The images of a target domain, what is known of them, and what a metric is estimated from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.adaptation.adaptation_settings import AdaptationSettings
from lookdown.adaptation.k_means import Clusters
from lookdown.adaptation.pseudo_labels import Covariances, pseudo_moments, soft_covariances
from lookdown.adaptation.shards import Rows, Shards, over_shards
from lookdown.adaptation.target_metric import estimate, estimate_kinds, normalizes, weighting
from lookdown.adaptation.ward_tree import WardTree
from lookdown.errors import InputError
from lookdown.metrics import GaussianLikelihoodRatio, KindLikelihoodRatio, Metric, MixtureLikelihoodRatio
from lookdown.metrics.inputs import (
    Embeddings,
    PartialLabels,
    as_flags,
    known_labels,
    refuse_non_finite,
    refuse_zero,
)
from lookdown.metrics.pair_moments import PairMoments

__all__ = ["Basis", "Target", "checked_embeddings"]


@dataclass(frozen=True, slots=True)
class Basis:
    """The moments that a metric was estimated from; those of more images can be added."""

    source: Metric
    settings: AdaptationSettings
    clusters: Clusters | WardTree
    pseudo: PairMoments
    labelled: PairMoments | None
    names: NDArray[Any]  # of the labelled kinds

    def metric(self) -> GaussianLikelihoodRatio | KindLikelihoodRatio:
        """Estimate the metric."""
        if self.settings.ratio == "kinds":
            cuts = self.clusters.cuts
            return estimate_kinds(self.source, self.settings, self.pseudo, self.labelled, cuts, self.names)
        covariances = Covariances.of(self.pseudo, weighting(self.source, self.settings), self.clusters.cuts)
        return estimate(self.source, self.settings, covariances, self.labelled)

    def with_more(self, X: Rows, by: Rows) -> Basis:
        """Return the basis with further images, clustered by `by`."""
        return replace(self, pseudo=self.pseudo + pseudo_moments(X, self.clusters, self.settings, by))


@dataclass(frozen=True, slots=True)
class Target:
    """The images of the target: embeddings, what clusters are found by, and labels where `known`.

    A label is the number of its kind in `names`; a chip of background has one of its own, beyond these.
    """

    source: Metric
    embeddings: Rows
    by: Rows
    settings: AdaptationSettings
    labels: NDArray[np.int64]
    known: NDArray[np.bool_]
    names: NDArray[Any]

    @classmethod
    def of(
        cls,
        source: Metric,
        embeddings: Rows,
        by: Rows,
        settings: AdaptationSettings,
        labels: PartialLabels | None,
        background: ArrayLike | None,
    ) -> Self:
        """Number the labels; those of background are not read."""
        images = len(embeddings)
        empty = as_flags(background, images, name="background")
        known, texts = np.zeros(images, np.bool_), np.empty(0, np.int64)
        if labels is not None:
            known, texts = known_labels(labels, images, name="labels", skip_minus_one=True)
        names, codes = np.unique(texts[~empty[known]], return_inverse=True)
        numbers = np.zeros(images, np.int64)
        numbers[known & ~empty] = codes
        numbers[empty] = len(names) + np.arange(empty.sum())
        return cls(source, embeddings, by, settings, numbers, known | empty, names)

    def refuse_useless_labels(self) -> None:
        """Raise InputError if there are labels, but no pairs of same and different kinds."""
        counts = np.bincount(self.labels[self.known])
        if self.known.any() and (len(counts) < 2 or counts.max() < 2):
            raise InputError(
                f"{self.known.sum()} labels of {len(counts)} classes make no same and different pairs; label at least "
                "two images of one class and one of another or of background, or omit `labels`"
            )

    @property
    def well_labelled(self) -> bool:
        """Whether true labels have at least half of the weight: see `estimate`."""
        free = self.known.sum() - len(np.unique(self.labels[self.known]))
        return bool(free >= 2 * self.embeddings.shape[1])

    @property
    def labels_in_words(self) -> str:
        """The number of true labels, of their kinds, and of chips of background."""
        kinds = len(self.names)
        empty = int((self.labels[self.known] >= kinds).sum())
        words = f"{self.known.sum() - empty:,} true labels of {kinds} kind{'' if kinds == 1 else 's'}"
        return words + (f" and {empty:,} of background" if empty else "")

    def labelled_moments(self) -> PairMoments | None:
        """Return the moments of the pairs with true labels, None without labels."""
        if not self.known.any():
            return None
        work = partial(_labelled_moments, labels=self.labels, known=self.known, normalize=normalizes(self.source))
        return reduce(add, over_shards(self.embeddings, work))

    def estimate(self, clusters: Clusters | WardTree) -> tuple[Metric, Basis | None]:
        """Estimate the metric under clusters, with its basis where more images can be added to that."""
        if isinstance(self.source, MixtureLikelihoodRatio):
            assert isinstance(clusters, Clusters)
            parameters = self.source.get_params() | {"weighting": weighting(self.source, self.settings)}
            mixture = MixtureLikelihoodRatio(**parameters).fit(self.embeddings[:], self._mixed_labels(clusters))
            mixture.pseudo_labelled_ = True
            return mixture, None
        if self.settings.softness:
            assert isinstance(clusters, Clusters)
            soft = soft_covariances(self.embeddings[:], clusters, self.settings, self.by[:])
            return estimate(self.source, self.settings, soft, self.labelled_moments()), None
        moments = pseudo_moments(self.embeddings, clusters, self.settings, self.by)
        basis = Basis(self.source, self.settings, clusters, moments, self.labelled_moments(), self.names)
        return basis.metric(), basis

    def _mixed_labels(self, clusters: Clusters) -> NDArray[np.int64]:
        """Return the true label of each image, else the most frequent one of its cluster, else its cluster."""
        assigned = clusters.assign(self.by[:])[0]
        names = np.arange(len(clusters.centres))
        for cluster in np.unique(assigned[self.known]):
            names[cluster] = len(names) + np.bincount(self.labels[self.known & (assigned == cluster)]).argmax()
        return np.where(self.known, len(names) + self.labels, names[assigned])


def checked_embeddings(metric: Metric, X: ArrayLike | Shards, cluster_by: ArrayLike | None) -> tuple[Rows, Rows]:
    """Return what the metric is estimated on, and what clusters are found by; InputError if they cannot be used."""
    if isinstance(X, Shards):
        if cluster_by is not None:
            raise InputError("clusters of shards are found by the shards themselves; omit `cluster_by`")
        metric._embeddings(np.ones((1, X.shape[1])))
        for complaint in X.map(partial(_complaint, normalize=normalizes(metric))):
            if complaint is not None:
                raise InputError(complaint)
        return X, X
    embeddings = metric._embeddings(X)
    by = embeddings if cluster_by is None else metric._embeddings(cluster_by)
    if len(by) != len(embeddings):
        raise InputError(
            f"cluster_by has {len(by)} rows and X has {len(embeddings)}; it must hold the same images in the same order"
        )
    if normalizes(metric):
        for rows in (embeddings, by):
            refuse_zero(rows)  # here, since a block would count rows from its own first
    return embeddings, by


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
