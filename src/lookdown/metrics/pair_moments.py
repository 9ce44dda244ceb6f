"""Second moments of the difference of two embeddings, exactly, over every same pair and every different pair."""

from __future__ import annotations

from copy import deepcopy
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import InputError
from lookdown.metrics.inputs import Array, Embeddings, as_embeddings, as_labels, refuse_non_finite, refuse_zero, unit

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

__all__ = ["PairMoments", "Weighting", "check_moments"]

Weighting = Literal["pairs", "classes"]

_BLOCK_ROWS = 4096  # rows taken into float64 at a time: a few megabytes, which stay in the cache


class PairMoments:
    """Count, mean and centred scatter of each class: all that the covariances over N(N-1)/2 pairs need.

    Summed over the pairs of one class, (x - y)(x - y)' is n W, with W the scatter about the class mean; over the
    pairs of two classes it is m W + n V + n m (gap)(gap)', with gap the difference of their means. Nothing is ever
    subtracted from something larger, so data far from the origin lose no digits. Time is one pass over the samples,
    memory `classes * d * d` numbers of 8 bytes (1,000 classes of 64 dimensions: 33 MB).

    Batches are added by `update`, and shards by `+`, whatever classes each has seen.

    normalize: put every sample on the unit sphere first.

    Attributes: `classes` (c,), the sorted labels; `counts` (c,), `means` (c, d) and `scatters` (c, d, d), the sums of
    (x - mean)(x - mean)'.

    >>> import lookdown
    >>> moments = lookdown.PairMoments.of([[0.0], [2.0], [5.0], [7.0]], ["ship", "ship", "jet", "jet"])
    >>> moments.same_covariance, moments.different_covariance  # the mean squares of 2, 2 and of 5, 7, 3, 5
    (array([[4.]]), array([[27.]]))
    >>> moments + moments
    PairMoments(8 samples, 2 classes, 1 dimensions, normalize=False)
    """

    def __init__(self, normalize: bool = False) -> None:
        self.normalize = normalize
        self.classes: NDArray[Any] = np.empty(0, dtype=np.int64)  # (c,) sorted labels
        self.counts: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # (c,)
        self.means: Array = np.empty((0, 0))  # (c, d)
        self.scatters: Array = np.empty((0, 0, 0))  # (c, d, d)  sum of (x - mean)(x - mean)'

    @classmethod
    def of(cls, X: ArrayLike, y: ArrayLike, normalize: bool = False) -> Self:
        """Return the moments of labelled embeddings, numpy or torch."""
        moments = cls(normalize)
        matrix = as_embeddings(X, finite=False)
        labels = as_labels(y, len(matrix))
        order = np.argsort(labels, kind="stable")
        ordered = labels[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        moments._make_room(ordered[starts], matrix.shape[1])
        buffer = np.empty((min(_BLOCK_ROWS, len(matrix)), matrix.shape[1]), dtype=matrix.dtype)
        for row, members in enumerate(np.split(order, starts[1:])):
            for begin in range(0, len(members), _BLOCK_ROWS):
                moments._absorb(row, *moments._block(matrix, members[begin : begin + _BLOCK_ROWS], buffer))
        return moments

    def update(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Add a batch, in place; a batch that is refused changes nothing."""
        self._merge(type(self).of(X, y, self.normalize))
        return self

    def __add__(self, other: Self) -> Self:
        """Return the moments of both sets of samples together."""
        if not isinstance(other, PairMoments):
            return NotImplemented
        merged = deepcopy(self)
        merged._merge(other)
        return merged

    def regrouped(self, names: ArrayLike) -> Self:
        """Return the moments of the same samples with new labels; `names` has the new label of each class."""
        labels = as_labels(names, len(self.classes))
        merged = type(self)(self.normalize)
        merged._make_room(np.unique(labels), self.dim)
        for row, target in enumerate(np.searchsorted(merged.classes, labels)):
            merged._absorb(target, self.counts[row], self.means[row], self.scatters[row])
        return merged

    def reduce(self, group: ProcessGroup | None = None) -> Self:
        """Return the moments of all processes of a torch.distributed group, the same bits on each of them.

        Every process must call it. Without an initialised group, return a copy of the own moments.
        """
        from torch import distributed

        if not (distributed.is_available() and distributed.is_initialized()):
            return deepcopy(self)
        shards: list[Self] = [self] * distributed.get_world_size(group)
        distributed.all_gather_object(shards, self, group=group)
        return reduce(lambda a, b: a + b, shards)

    @property
    def dim(self) -> int:
        """Dimensions of an embedding; 0 before the first sample."""
        return int(self.means.shape[1])

    @property
    def samples(self) -> int:
        """Number of embeddings."""
        return int(self.counts.sum())

    @property
    def free(self) -> tuple[int, int]:
        """Independent samples behind the same and the different covariance: samples less the means taken off."""
        return self.samples - len(self.classes), self.samples - 1

    @property
    def mean(self) -> Array:
        """Mean of all embeddings."""
        return np.asarray(self.counts @ self.means / self.samples)

    @property
    def same_pairs(self) -> int:
        """Unordered pairs of one class."""
        return sum(n * (n - 1) // 2 for n in self.counts.tolist())

    @property
    def different_pairs(self) -> int:
        """Unordered pairs of two classes."""
        return self.samples * (self.samples - 1) // 2 - self.same_pairs

    @property
    def same_covariance(self) -> Array:
        """Mean of (x - y)(x - y)' over all same pairs, each once."""
        return self.covariances()[0]

    @property
    def different_covariance(self) -> Array:
        """Mean of (x - y)(x - y)' over all different pairs, each once."""
        return self.covariances()[1]

    def covariances(self, weighting: Weighting = "pairs") -> tuple[Array, Array]:
        """Return the covariances of same and of different differences, (d, d) each.

        `pairs`: every pair counts once, so a large class outweighs a small one by the square of its size.
        `classes`: every class, and every pair of classes, counts the same; a class of one sample has no same pair
        and takes part in the different ones only.
        """
        self._refuse_without_pairs()
        if weighting not in ("pairs", "classes"):
            raise InputError(f"weighting must be 'pairs' or 'classes', got {weighting!r}")
        with np.errstate(over="ignore", invalid="ignore"):
            same, different = self._over_pairs() if weighting == "pairs" else self._over_classes()
        if not (np.isfinite(same).all() and np.isfinite(different).all()):
            raise InputError("the squares of differences overflow; scale the embeddings down")
        return same, different

    def __repr__(self) -> str:
        return (
            f"PairMoments({self.samples} samples, {len(self.classes)} classes, {self.dim} dimensions, "
            f"normalize={self.normalize})"
        )

    def _over_pairs(self) -> tuple[Array, Array]:
        n = self.counts.astype(np.float64)
        within = self._sum_scatters(n.sum() - n)
        between = n.sum() * _scatter(self.means, n)
        return self._sum_scatters(n) / self.same_pairs, (within + between) / self.different_pairs

    def _over_classes(self) -> tuple[Array, Array]:
        n = self.counts.astype(np.float64)
        plural = n > 1
        same = self._sum_scatters(np.divide(2, n - 1, out=np.zeros_like(n), where=plural)) / plural.sum()
        within = self._sum_scatters(2 / n) / len(n)
        return same, within + 2 / (len(n) - 1) * _scatter(self.means, np.ones_like(n))

    def _block(self, matrix: Embeddings, members: NDArray[np.intp], buffer: Embeddings) -> tuple[int, Array, Array]:
        """Return count, mean and centred scatter of a few rows of one class, gathered in the buffer."""
        gathered = np.take(matrix, members, axis=0, out=buffer[: len(members)], mode="clip")  # `raise` would copy twice
        rows = gathered.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.normalize and np.isfinite(rows).all():
                if not rows.any(axis=1).all():
                    refuse_zero(matrix)  # names the row in the whole
                rows = unit(rows).astype(np.float64, copy=False)
            mean = rows.mean(axis=0)
            rows -= mean
            scatter = rows.T @ rows
        if not np.isfinite(scatter).all():
            refuse_non_finite(matrix)
            raise InputError("X has values so large that their squares overflow; scale the embeddings down")
        return len(rows), mean, scatter

    def _absorb(self, rows: Any, counts: Any, means: Array, scatters: Array) -> None:
        """Merge moments into the classes at `rows` (one, or one each) without cancellation (Chan et al. 1983)."""
        before = self.counts[rows]
        share = np.asarray(counts / (before + counts))
        step = means - self.means[rows]
        apart = np.sqrt(before * share)[..., None] * step
        with np.errstate(over="ignore"):  # `covariances` refuses what has become infinite
            self.scatters[rows] += scatters + apart[..., :, None] * apart[..., None, :]
        self.means[rows] += share[..., None] * step
        self.counts[rows] += counts

    def _merge(self, other: PairMoments) -> None:
        if other.normalize != self.normalize:
            raise InputError("one set of moments is of unit vectors and the other is not; use one normalize= for both")
        if len(other.classes):
            self._make_room(other.classes, other.dim)
            rows = np.searchsorted(self.classes, other.classes)
            self._absorb(rows, other.counts, other.means, other.scatters)

    def _make_room(self, classes: NDArray[Any], dim: int) -> None:
        """Add a row for each of `classes` (sorted, each once) that is new."""
        if not len(self.classes):
            self.classes, old = classes.copy(), np.empty(0, dtype=np.intp)
        else:
            if self.dim != dim:
                raise InputError(f"X has {dim} dimensions, the moments so far have {self.dim}; use one network for all")
            if self.classes.dtype.kind != classes.dtype.kind:
                raise InputError(
                    f"labels are {self.classes.dtype} in one part and {classes.dtype} in another; use one kind"
                )
            if np.isin(classes, self.classes).all():
                return
            known, self.classes = self.classes, np.union1d(self.classes, classes)
            old = np.searchsorted(self.classes, known)
        counts, means, scatters = self.counts, self.means, self.scatters
        size = len(self.classes)
        self.counts, self.means = np.zeros(size, dtype=np.int64), np.zeros((size, dim))
        self.scatters = np.zeros((size, dim, dim))
        if len(old):
            self.counts[old], self.means[old], self.scatters[old] = counts, means, scatters

    def _sum_scatters(self, weights: Array) -> Array:
        return np.asarray(np.tensordot(weights, self.scatters, axes=1))

    def _refuse_without_pairs(self) -> None:
        if not self.samples:
            raise InputError("there are no samples yet; call update(X, y) first")
        if len(self.classes) < 2:
            raise InputError(
                f"all {self.samples} samples are of 1 class ({self.classes[0]}), so there is no different pair; "
                "add samples of a second class"
            )
        if self.counts.max() < 2:
            raise InputError(
                f"each of the {len(self.classes)} classes has a single sample, so there is no same pair; "
                "add a second sample to some classes, or group rare classes"
            )


def check_moments(moments: object, *, normalize: bool) -> None:
    """Raise if a metric with this `normalize` cannot be fitted to the moments."""
    if not isinstance(moments, PairMoments):
        raise InputError(f"fit_moments takes PairMoments, got {type(moments).__name__}; embeddings go to fit(X, y)")
    if moments.normalize != normalize:
        raise InputError(
            f"the moments were taken with normalize={moments.normalize}, the metric has normalize={normalize}; gather "
            f"them with PairMoments.of(X, y, normalize={normalize})"
        )
    if normalize and moments.dim == 1:
        raise InputError("X has 1 feature(s), of which the unit sphere leaves the sign only; use normalize=False")


def _scatter(points: Array, weights: Array) -> Array:
    """Sum of weighted (p - mean)(p - mean)' about the weighted mean."""
    centred = points - weights @ points / weights.sum()
    return np.asarray((centred * weights[:, None]).T @ centred)
