"""Differences of randomly drawn pairs, the same ones for the same seed."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.metrics.inputs import Array
from lookdown.metrics.pair_moments import Weighting

__all__ = ["draw_differences"]

_MOST_BYTES = 2 << 30  # of the differences of all pairs

Rows = NDArray[np.int64]


def draw_differences(
    X: Array, y: NDArray[Any], *, same: bool, pairs: int | Literal["all"], weighting: Weighting, seed: int
) -> Array:
    """Return `pairs` differences x - y, (pairs, d), of same or of different pairs, drawn with replacement.

    pairs: how many. "all", or with `pairs` weighting at least as many as there are, returns each pair once.
    weighting: `pairs` draws every pair with the same probability; `classes` draws a class (or two) first, then chips.
    """
    order = np.argsort(y, kind="stable")
    ordered, labels = X[order], y[order]
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    counts = np.diff(np.r_[starts, len(labels)])
    available = int((counts * (counts - 1)).sum() // 2)
    if not same:
        available = len(labels) * (len(labels) - 1) // 2 - available
    if pairs == "all":
        _refuse_all(available, X.shape[1], weighting)
    if pairs == "all" or (weighting == "pairs" and pairs >= available):
        first, second = _every(starts, counts, same=same)
    else:
        rng = np.random.default_rng([seed, int(same)])
        draw = _draw_same if same else _draw_different
        first, second = draw(starts, counts, pairs, weighting, rng)
    return ordered[first] - ordered[second]


def _refuse_all(available: int, dim: int, weighting: Weighting) -> None:
    if weighting == "classes":
        raise InputError("pairs='all' counts every pair once, which is weighting='pairs'; for classes give a number")
    if (size := 8 * available * dim) > _MOST_BYTES:
        raise InputError(f"all {available:,} pairs would take {size / 2**30:.0f} GiB; give a number, such as 40_000")


def _draw_same(
    starts: Rows, counts: Rows, pairs: int, weighting: Weighting, rng: np.random.Generator
) -> tuple[Rows, Rows]:
    odds = counts * (counts - 1.0) if weighting == "pairs" else (counts > 1).astype(np.float64)
    drawn = rng.choice(len(counts), size=pairs, p=odds / odds.sum())
    first = rng.integers(counts[drawn])
    second = (first + 1 + rng.integers(counts[drawn] - 1)) % counts[drawn]
    return starts[drawn] + first, starts[drawn] + second


def _draw_different(
    starts: Rows, counts: Rows, pairs: int, weighting: Weighting, rng: np.random.Generator
) -> tuple[Rows, Rows]:
    if weighting == "classes":
        a = rng.integers(len(counts), size=pairs)
        b = (a + 1 + rng.integers(len(counts) - 1, size=pairs)) % len(counts)
        return starts[a] + rng.integers(counts[a]), starts[b] + rng.integers(counts[b])
    others = counts.sum() - counts  # partners of a chip; the odds of a class are its size times these
    odds = counts * others.astype(np.float64)
    drawn = rng.choice(len(counts), size=pairs, p=odds / odds.sum())
    first = starts[drawn] + rng.integers(counts[drawn])
    second = rng.integers(others[drawn])
    return first, second + np.where(second >= starts[drawn], counts[drawn], 0)  # step over the chip's own class


def _every(starts: Rows, counts: Rows, *, same: bool) -> tuple[Rows, Rows]:
    if same:
        within = [np.triu_indices(n, k=1) for n in counts]
        first, second = (
            np.concatenate([s + part[side] for s, part in zip(starts, within, strict=True)]) for side in (0, 1)
        )
        return first, second
    ends = np.repeat(starts + counts, counts)  # chips are in the order of their classes: partners come after the class
    partners = counts.sum() - ends
    first = np.repeat(np.arange(len(ends)), partners)
    offset = np.arange(len(first)) - np.repeat(np.cumsum(partners) - partners, partners)
    return first, ends[first] + offset
