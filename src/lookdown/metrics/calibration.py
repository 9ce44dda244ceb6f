"""What scores really do on held-out data: false-alarm and detection rates with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from lookdown.errors import InputError
from lookdown.metrics.estimate import Estimate
from lookdown.metrics.inputs import Embeddings

__all__ = ["Calibration", "measure"]

Array = NDArray[np.float64]
Score = Callable[[Embeddings, Embeddings], Embeddings]

_BLOCK_PAIRS = 1 << 21  # pairs scored at a time
_KEPT_SCORES = 1 << 21  # scores kept to place the knots
_KEPT_HIGHEST = 1 << 12  # highest different scores, all kept
_REPLICATES = 400  # bootstrap draws behind a 95 % interval
_MIN_EXCEEDANCES = 20
_MIN_GROUPS = 10


@dataclass(frozen=True, slots=True)
class Calibration:
    """Rates at a rising list of scores, counted over all held-out pairs; between two knots they are interpolated."""

    scores: Array  # (k,) knots
    false_alarm: Array  # (3, k) share of different pairs that score at least the knot: estimate, low, high
    detection: Array  # (3, k) the same for same pairs
    different_pairs: int
    same_pairs: int
    groups: int

    def threshold(self, rate: float) -> Estimate:
        """Return the score that a share `rate` of different pairs reaches."""
        value, low, high = (float(np.interp(rate, curve[::-1], self.scores[::-1])) for curve in self.false_alarm)
        supported = rate * self.different_pairs >= _MIN_EXCEEDANCES and self.groups >= _MIN_GROUPS
        return Estimate(value, method="empirical", low=min(low, value), high=max(high, value), supported=supported)

    def false_alarm_rate(self, score: float) -> Estimate:
        """Return the share of different pairs that score at least this."""
        return self._rate(score, self.false_alarm, self.different_pairs)

    def detection_rate(self, threshold: float) -> Estimate:
        """Return the share of same pairs that score at least this."""
        return self._rate(threshold, self.detection, self.same_pairs)

    def log_likelihood_ratio(self, score: NDArray[Any]) -> Array:
        """Return how much likelier the score is among same than among different pairs, never falling with the score.

        Neighbouring intervals between knots are pooled until the ratio rises (isotonic regression); half a pair is
        added to each side of a pool, so that no ratio is infinite.
        """
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

    def _rate(self, score: float, curves: Array, pairs: int) -> Estimate:
        value, low, high = (float(np.interp(score, self.scores, curve)) for curve in curves)
        supported = value * pairs >= _MIN_EXCEEDANCES and self.groups >= _MIN_GROUPS
        return Estimate(value, method="empirical", low=min(low, value), high=max(high, value), supported=supported)


@dataclass(frozen=True, slots=True)
class _HeldOut:
    """Held-out chips: who is of which class, from which group, and which are background."""

    embeddings: Embeddings
    labels: NDArray[Any]
    groups: NDArray[np.intp]  # 0 .. number of groups - 1
    background: NDArray[np.bool_]

    def pairs(self, score: Score) -> Iterator[_Pairs]:
        """Yield every unordered pair that has an object in it, in blocks."""
        size = len(self.labels)
        rows = max(1, _BLOCK_PAIRS // size)
        for begin in range(0, size, rows):
            block = slice(begin, begin + rows)
            later = np.arange(begin, size) > np.arange(size)[block, None]
            i, j = np.nonzero(later & ~(self.background[block, None] & self.background[begin:]))
            scores = score(self.embeddings[block], self.embeddings[begin:])[i, j]
            i, j = i + begin, j + begin
            same = (self.labels[i] == self.labels[j]) & ~self.background[i] & ~self.background[j]
            for hypothesis in (True, False):
                chosen = same == hypothesis
                yield _Pairs(hypothesis, scores[chosen], self.groups[i[chosen]], self.groups[j[chosen]])


class _Pairs(NamedTuple):
    """Some pairs of one hypothesis."""

    same: bool
    scores: Embeddings
    first: NDArray[np.intp]  # group of the one chip
    second: NDArray[np.intp]  # group of the other


class _Counts:
    """How many pairs of one hypothesis reach each knot, in all and among the pairs that touch a group."""

    def __init__(self, groups: int, knots: Array) -> None:
        self.knots = knots
        self.total = np.zeros(len(knots) + 1)
        self.touching = np.zeros((groups, len(knots) + 1))

    def add(self, pairs: _Pairs) -> None:
        reached = np.searchsorted(self.knots, pairs.scores, side="right")
        groups, width = self.touching.shape
        self.total += np.bincount(reached, minlength=width)
        apart = pairs.first != pairs.second  # a pair within one group touches it once
        cells = np.r_[pairs.first * width + reached, (pairs.second * width + reached)[apart]]
        self.touching += np.bincount(cells, minlength=groups * width).reshape(groups, width)

    @property
    def pairs(self) -> int:
        return int(self.total.sum())

    def curves(self, replicas: Array) -> Array:
        """Return (3, knots): the share that reaches each knot, and its 95 % interval over resampled groups.

        A group drawn m times counts the pairs that touch it m times, to first order (the projection that governs the
        variance of a statistic of pairs): 1 + (m - 1) + (n - 1) for a pair of two groups.
        """
        share = _reaching(self.total) / self.pairs
        sizes = self.pairs + replicas @ self.touching.sum(axis=1)
        redrawn = (_reaching(self.total) + replicas @ _reaching(self.touching)) / np.maximum(sizes, 1)[:, None]
        falling = np.minimum.accumulate(np.clip(redrawn, 0, 1), axis=1)
        return np.stack([share, *np.quantile(falling, [0.025, 0.975], axis=0)])


def measure(
    score: Score,
    embeddings: Embeddings,
    labels: NDArray[Any],
    groups: NDArray[Any] | None,
    background: NDArray[np.bool_],
    seed: int,
) -> Calibration:
    """Score every held-out pair and count; two passes, memory bounded by a block and by groups times knots.

    A pair of background chips is left out: nobody searches for background. Background against an object is a
    different pair.
    """
    members = np.arange(len(labels)) if groups is None else np.unique(groups, return_inverse=True)[1]
    held_out = _HeldOut(embeddings, labels, members, background)
    knots = _place_knots(held_out, score)
    size = int(members.max()) + 1
    same, different = _Counts(size, knots), _Counts(size, knots)
    for pairs in held_out.pairs(score):
        (same if pairs.same else different).add(pairs)
    draws = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), size=_REPLICATES)
    replicas = draws.astype(np.float64) - 1
    return Calibration(
        scores=knots,
        false_alarm=different.curves(replicas),
        detection=same.curves(replicas),
        different_pairs=different.pairs,
        same_pairs=same.pairs,
        groups=size,
    )


def _place_knots(held_out: _HeldOut, score: Score) -> Array:
    """Return the scores at which rates are counted: quantiles of both hypotheses, 24 to a decade in their tails.

    Quantiles come from an even selection of the scores; the highest different scores, which set small false-alarm
    rates, are all looked at.
    """
    size = len(held_out.labels)
    stride = -(-size * (size - 1) // 2 // _KEPT_SCORES)
    kept: dict[bool, list[Embeddings]] = {True: [], False: []}
    highest: Embeddings = np.empty(0)
    for pairs in held_out.pairs(score):
        kept[pairs.same].append(pairs.scores[::stride])
        if not pairs.same:
            highest = np.sort(np.r_[highest, pairs.scores])[-_KEPT_HIGHEST:]
    same, different = (np.concatenate(kept[hypothesis]) for hypothesis in (True, False))
    if not len(same) or not len(different):
        missing = "different" if len(same) else "same"
        raise InputError(
            f"the held-out data have no {missing} pair to calibrate on; give at least two classes, and two chips of one"
        )
    ranks = np.unique(np.geomspace(1, len(highest), 24 * 5).astype(np.intp))
    beyond = np.nextafter(highest[-1], np.inf)  # no different pair reaches it
    tails = 10.0 ** -np.arange(0, np.log10(_KEPT_SCORES), 1 / 24)
    body = np.linspace(0, 1, 65)
    quantiles = np.r_[np.quantile(same, np.r_[tails, body, 1 - tails]), np.quantile(different, np.r_[body, 1 - tails])]
    return np.unique(np.r_[quantiles, highest[-ranks], beyond].astype(np.float64))


def _reaching(bins: Array) -> Array:
    """Turn counts by number of knots reached into counts that reach each knot."""
    return np.asarray(bins[..., :0:-1].cumsum(axis=-1)[..., ::-1])
