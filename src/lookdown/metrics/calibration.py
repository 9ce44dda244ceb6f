"""False-alarm and detection rates measured on held-out data, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from lookdown.errors import InputError, NotCalibratedError
from lookdown.metrics.estimate import Estimate
from lookdown.metrics.inputs import Array, Embeddings

__all__ = ["Calibration", "measure"]

Score = Callable[[Embeddings, Embeddings], Embeddings]

_BLOCK_PAIRS = 1 << 21  # pairs scored at a time
_KEPT_SCORES = 1 << 21  # scores kept to choose the knots
_KEPT_HIGHEST = 1 << 12  # highest different scores, all kept
_REPLICATES = 400  # bootstrap draws behind a 95 % interval
_MIN_EXCEEDANCES = 20  # pairs at or above a score
_MIN_GROUPS = 10


@dataclass(frozen=True, slots=True)
class Calibration:
    """Rates at a rising list of scores, the knots, counted over all held-out pairs and interpolated in between.

    Two knots about one `resolution` apart enclose scores that differ only by rounding.
    """

    scores: Array  # (k,) knots
    false_alarm: Array  # (3, k) share of different pairs that score at least the knot: estimate, low, high
    detection: Array  # (3, k) the same for same pairs
    resolution: float
    different_pairs: int
    same_pairs: int
    different_groups: int  # groups that a different pair touches
    same_groups: int

    def threshold(self, rate: float) -> Estimate:
        """Return the score that a share `rate` of different pairs reaches, or fewer where many score the same."""
        value, low, high = (self._reached(rate, curve) for curve in self.false_alarm)
        supported = rate * self.different_pairs >= _MIN_EXCEEDANCES and self.different_groups >= _MIN_GROUPS
        return Estimate(value, method="empirical", low=min(low, value), high=max(high, value), supported=supported)

    def false_alarm_rate(self, score: float) -> Estimate:
        """Return the share of different pairs that score at least this."""
        return self._rate(score, self.false_alarm, self.different_pairs, self.different_groups)

    def detection_rate(self, threshold: float) -> Estimate:
        """Return the share of same pairs that score at least this."""
        self._refuse_without_same_pairs("a detection rate")
        return self._rate(threshold, self.detection, self.same_pairs, self.same_groups)

    def log_likelihood_ratio(self, score: NDArray[Any]) -> Array:
        """Return the log ratio of how likely the score is among same and among different pairs; it never falls.

        Neighbouring intervals between knots are pooled until the ratio rises (isotonic regression). Half a pair is
        added to both counts of a pool, so that no ratio is infinite.
        """
        self._refuse_without_same_pairs("a posterior")
        same = -np.diff(np.r_[1.0, self.detection[0], 0.0])
        different = -np.diff(np.r_[1.0, self.false_alarm[0], 0.0])
        filled = same + different > 0
        same, different = same[filled], different[filled]
        share = isotonic_regression(same / (same + different), sample_weight=same + different)
        starts = np.flatnonzero(np.r_[True, np.diff(share) > 0])
        pooled_same = np.add.reduceat(same, starts) + 0.5 / self.same_pairs
        pooled_different = np.add.reduceat(different, starts) + 0.5 / self.different_pairs
        rising = np.maximum.accumulate(np.log(pooled_same) - np.log(pooled_different))
        ratio = rising[np.cumsum(np.r_[False, np.diff(share) > 0])]
        centres = np.r_[self.scores[0], (self.scores[1:] + self.scores[:-1]) / 2, self.scores[-1]]
        return np.asarray(np.interp(score, centres[filled], ratio))

    def _refuse_without_same_pairs(self, wanted: str) -> None:
        if not self.same_pairs:
            raise NotCalibratedError(
                f"{wanted} needs same pairs, and the metric was calibrated without any; call calibrate(X, y) with two "
                "labelled chips of a class"
            )

    def _reached(self, rate: float, curve: Array) -> float:
        """Return the lowest score at which a falling curve is at most the rate."""
        right = int(np.searchsorted(-curve, -rate))  # the first knot whose share is at most the rate
        if right == 0 or right == len(curve):
            return float(self.scores[min(right, len(curve) - 1)])
        if self.scores[right] - self.scores[right - 1] <= 3 * self.resolution:
            return float(self.scores[right])
        return float(np.interp(-rate, -curve[right - 1 : right + 1], self.scores[right - 1 : right + 1]))

    def _rate(self, score: float, curves: Array, pairs: int, groups: int) -> Estimate:
        value, low, high = (float(np.interp(score, self.scores, curve)) for curve in curves)
        supported = value * pairs >= _MIN_EXCEEDANCES and groups >= _MIN_GROUPS
        return Estimate(value, method="empirical", low=min(low, value), high=max(high, value), supported=supported)


@dataclass(frozen=True, slots=True)
class _HeldOut:
    """Held-out chips with their class, their group, and whether they are background."""

    embeddings: Embeddings
    labels: NDArray[np.int64]  # -1: an object of unknown class
    groups: NDArray[np.intp]  # 0 .. number of groups - 1
    background: NDArray[np.bool_]

    def pairs(self, score: Score) -> Iterator[_Pairs]:
        """Yield every unordered pair that holds an object and is known to be same or different, in blocks."""
        size = len(self.labels)
        unknown = (self.labels == -1) & ~self.background
        object_ = ~self.background
        rows = max(1, _BLOCK_PAIRS // size)
        for begin in range(0, size, rows):
            block = slice(begin, begin + rows)
            later = np.arange(begin, size) > np.arange(size)[block, None]
            usable = object_[block, None] | object_[begin:]
            usable &= ~(unknown[block, None] & object_[begin:]) & ~(object_[block, None] & unknown[begin:])
            i, j = np.nonzero(later & usable)
            scores = score(self.embeddings[block], self.embeddings[begin:])[i, j]
            i, j = i + begin, j + begin
            same = (self.labels[i] == self.labels[j]) & ~self.background[i] & ~self.background[j]
            for hypothesis in (True, False):
                chosen = same == hypothesis
                yield _Pairs(hypothesis, scores[chosen], self.groups[i[chosen]], self.groups[j[chosen]])


class _Pairs(NamedTuple):
    """A batch of pairs of one hypothesis."""

    same: bool
    scores: Embeddings
    first: NDArray[np.intp]  # group of one chip
    second: NDArray[np.intp]  # group of the other


class _Counts:
    """How many pairs of one hypothesis reach each knot: in all, and among the pairs with a chip of each group."""

    def __init__(self, groups: int, knots: Array) -> None:
        self.knots = knots
        self.total = np.zeros(len(knots) + 1, dtype=np.int64)
        self.touching = np.zeros((groups, len(knots) + 1), dtype=np.int32)

    def add(self, pairs: _Pairs) -> None:
        reached = np.searchsorted(self.knots, pairs.scores, side="right")
        width = self.touching.shape[1]
        self.total += np.bincount(reached, minlength=width)
        cells = self.touching.reshape(-1)
        np.add.at(cells, pairs.first * width + reached, 1)
        apart = pairs.first != pairs.second  # a pair within one group touches it once
        np.add.at(cells, (pairs.second * width + reached)[apart], 1)

    @property
    def pairs(self) -> int:
        return int(self.total.sum())

    @property
    def groups(self) -> int:
        return int(self.touching.any(axis=1).sum())

    def curves(self, draws: NDArray[np.int64]) -> Array:
        """Return (3, knots): the share that reaches each knot, and its 95 % interval over resampled groups.

        A group that is drawn m times counts its pairs m times, to first order (the projection that governs the
        variance of a statistic of pairs): a pair of two groups counts 1 + (m - 1) + (n - 1) times.
        """
        reaching = _reaching(self.total)
        more = draws.astype(np.float64) - 1
        sizes = self.pairs + more @ self.touching.sum(axis=1)
        redrawn = (reaching + more @ _reaching(self.touching))[sizes > 0] / sizes[sizes > 0, None]
        falling = np.minimum.accumulate(np.clip(redrawn, 0, 1), axis=1)
        low, high = np.quantile(falling, [0.025, 0.975], axis=0)
        # Beyond the highest score, the upper bound is that of the last knot that a pair reaches.
        high = np.where(reaching > 0, high, high[reaching > 0].min(initial=1.0))
        return np.stack([reaching / self.pairs, low, high])


def measure(
    score: Score,
    embeddings: Embeddings,
    labels: NDArray[np.int64],
    groups: NDArray[Any] | None,
    background: NDArray[np.bool_],
    seed: int,
) -> Calibration:
    """Score every held-out pair and count; two passes, memory bounded by a block and by groups times knots.

    A pair of background chips is left out: nobody searches for background. Background and an object are a different
    pair. A label of -1 is unknown: such an object is compared only with background.
    """
    members = np.arange(len(labels)) if groups is None else np.unique(groups, return_inverse=True)[1]
    held_out = _HeldOut(embeddings, labels, members, background)
    knots, resolution = _choose_knots(held_out, score)
    size = int(members.max()) + 1
    same, different = _Counts(size, knots), _Counts(size, knots)
    for pairs in held_out.pairs(score):
        (same if pairs.same else different).add(pairs)
    draws = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), size=_REPLICATES)
    return Calibration(
        scores=knots,
        false_alarm=different.curves(draws),
        detection=same.curves(draws) if same.pairs else np.full((3, len(knots)), np.nan),
        resolution=resolution,
        different_pairs=different.pairs,
        same_pairs=same.pairs,
        different_groups=different.groups,
        same_groups=same.groups,
    )


def _choose_knots(held_out: _HeldOut, score: Score) -> tuple[Array, float]:
    """Return the scores at which rates are counted, and the smallest difference of scores that is not rounding.

    The knots are quantiles of both hypotheses, 24 to a decade in their tails, from an even selection of the scores.
    The highest different scores, which set small false-alarm rates, are all used, and so are the extremes.
    """
    size = len(held_out.labels)
    stride = max(1, size * (size - 1) // 2 // _KEPT_SCORES)
    kept: dict[bool, list[Embeddings]] = {True: [], False: []}
    highest: Embeddings = np.empty(0)
    low, high = np.inf, -np.inf
    for pairs in held_out.pairs(score):
        kept[pairs.same].append(pairs.scores[::stride])
        low, high = pairs.scores.min(initial=low), pairs.scores.max(initial=high)
        if not pairs.same:
            bar = highest[0] if len(highest) == _KEPT_HIGHEST else -np.inf
            highest = np.sort(np.r_[highest, pairs.scores[pairs.scores > bar]])[-_KEPT_HIGHEST:]
    same, different = (np.concatenate(kept[hypothesis]) for hypothesis in (True, False))
    if not len(different) or not (len(same) or held_out.background.any()):
        missing = "different" if len(same) else "same"
        raise InputError(
            f"the held-out data have no {missing} pair to calibrate on; give at least two classes and two chips of one "
            "class, or background"
        )
    tails = 10.0 ** -np.arange(0, np.log10(_KEPT_SCORES), 1 / 24)
    body = np.linspace(0, 1, 65)
    ranks = np.unique(np.geomspace(1, len(highest), 24 * 5).astype(np.intp))
    quantiles = np.quantile(different, np.r_[body, 1 - tails])
    if len(same):
        quantiles = np.r_[np.quantile(same, np.r_[tails, body, 1 - tails]), quantiles]
    resolution = 64 * float(np.finfo(different.dtype).eps) * max(abs(low), abs(high), np.finfo(np.float64).tiny)
    knots = _merge_knots(np.sort(np.r_[low, quantiles, highest[-ranks], high].astype(np.float64)), resolution)
    return np.r_[knots, knots[-1] + resolution], resolution  # no pair reaches the last one


def _merge_knots(knots: Array, resolution: float) -> Array:
    """Merge sorted knots that differ only by rounding; several at one score become one on either side."""
    starts = np.flatnonzero(np.r_[True, np.diff(knots) > resolution])
    ends = np.r_[starts[1:], len(knots)] - 1
    crowded = ends > starts
    lower, upper = knots[starts] - crowded * resolution / 2, knots[ends] + resolution / 2
    return np.unique(np.r_[lower, upper[crowded]])


def _reaching(bins: NDArray[Any]) -> NDArray[Any]:
    """Turn counts of pairs by the number of knots they reach into counts of pairs that reach each knot."""
    return np.asarray(bins[..., :0:-1].cumsum(axis=-1)[..., ::-1])
