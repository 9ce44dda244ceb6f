"""Measures of a ranking, one number a query: average precision, recall, precision and hit rate.

`results` is (queries, results), true where a result is relevant, best result first; or `RelevantRanks`, which knows
about tied scores. A measure is then its mean over every order of the tied results, so that it depends neither on the
order of the gallery nor on chance. `relevant` is the number of relevant items in the gallery for each query. Where
the list of results was cut, that is more than the list holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from lookdown.errors import InputError
from lookdown.metrics.inputs import as_count

__all__ = ["RelevantRanks", "Rows", "average_precision", "hit_rate_at", "precision_at", "recall_at"]

Rows = NDArray[np.intp]
Scores = NDArray[np.float64]
Counts = NDArray[np.int64]


def precision_at(results: RelevantRanks | ArrayLike, k: int) -> Scores:
    """Relevant among the first k, divided by k: also where the gallery has fewer than k rows."""
    return _expected_among_first(_as_ranks(results), as_count(k, "k")) / k


def recall_at(results: RelevantRanks | ArrayLike, relevant: ArrayLike, k: int) -> Scores:
    """Relevant among the first k, divided by all relevant items in the gallery; NaN where there are none."""
    ranks = _as_ranks(results)
    return _divided(_expected_among_first(ranks, as_count(k, "k")), _as_counts(relevant, ranks))


def hit_rate_at(results: RelevantRanks | ArrayLike, k: int) -> Scores:
    """1 if any of the first k is relevant (the "R@k" of metric-learning papers), else 0.

    Where k cuts through tied results, it is the probability that a relevant one is among the first k.
    """
    ranks = _as_ranks(results)
    rates = np.zeros(ranks.queries)
    queries, best = np.unique(ranks.query, return_index=True)
    drawn = np.clip(as_count(k, "k") - ranks.above[best], 0, ranks.tied[best])
    rates[queries] = 1 - _none_drawn(ranks.tied[best], ranks.relevant[best], drawn)
    return rates


def average_precision(results: RelevantRanks | ArrayLike, relevant: ArrayLike) -> Scores:
    """Precision at each relevant result, summed and divided by all relevant items; NaN where there are none.

    Of n tied results, r are relevant. At each of their n positions a result is relevant with probability r / n; if it
    is, each tied result before it is relevant with probability (r - 1) / (n - 1).
    """
    ranks = _as_ranks(results)
    counts = _as_counts(relevant, ranks)
    rising = ranks.relevant.cumsum() - ranks.relevant
    earlier = rising - rising[np.searchsorted(ranks.query, ranks.query)]  # relevant results that score higher
    others = (ranks.relevant - 1) / np.maximum(ranks.tied - 1, 1)
    entry = np.repeat(np.arange(len(ranks.query)), ranks.tied)
    position = np.arange(len(entry)) - (ranks.tied.cumsum() - ranks.tied)[entry]  # 0 .. tied - 1
    precision = (earlier[entry] + 1 + position * others[entry]) / (ranks.above[entry] + 1 + position)
    gains = precision * (ranks.relevant / ranks.tied)[entry]
    return _divided(_by_query(ranks, ranks.query[entry], gains), counts)


@dataclass(frozen=True, slots=True, eq=False)
class RelevantRanks:
    """Where the relevant results of each query stand in its ranking: one entry for each score of a relevant result.

    Entries are sorted by query, then best score first. Without ties an entry is one relevant result, and `above` is
    its rank counted from zero.
    """

    queries: int
    query: Rows  # (entries,) 0 .. queries - 1, rising
    above: Rows  # (entries,) results of the query that score higher
    tied: Rows  # (entries,) results that have just this score, relevant or not
    relevant: Rows  # (entries,) the relevant ones among these

    @classmethod
    def of_ranked(cls, ranked: ArrayLike) -> Self:
        """Read ranked lists: `ranked` is (queries, results), true where a result is relevant."""
        flags = np.asarray(ranked)
        if flags.dtype != np.bool_ or flags.ndim != 2:
            raise InputError(
                "results must be booleans of shape (queries, results), true where a result is relevant, best result "
                f"first; got {flags.dtype} of shape {flags.shape}"
            )
        query, above = np.nonzero(flags)
        single = np.ones_like(above)
        return cls(len(flags), query, above, single, single)

    @classmethod
    def of_scores(
        cls, scores: NDArray[Any], relevant: Sequence[Rows], excluded: Sequence[Rows] | None = None, *, first: int = 0
    ) -> Self:
        """Rank (queries, gallery) scores.

        relevant, excluded: gallery rows of each query. Excluded rows are not among its results, relevant or not.
        first: the number of the first query, for errors.
        """
        absent = [np.empty(0, dtype=np.intp)] * len(scores) if excluded is None else excluded
        queries = enumerate(zip(scores, relevant, absent, strict=True), start=first)
        parts = [_ranks(row, right, left, query) for query, (row, right, left) in queries]
        query = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
        return cls(len(parts), query, *np.concatenate([np.empty((3, 0), dtype=np.intp), *parts], axis=1))

    @property
    def counts(self) -> Rows:
        """Number of relevant results of each query."""
        return np.bincount(self.query, weights=self.relevant, minlength=self.queries).astype(np.intp)


def _ranks(scores: NDArray[Any], relevant: Rows, excluded: Rows, query: int) -> Rows:
    """Return `above`, `tied` and `relevant` of one query, best score first.

    Only relevant rows are located, by bisection in the sorted scores: sorting values is several times as fast as
    sorting indices.
    """
    results = scores
    if len(excluded):
        kept = np.ones(len(scores), dtype=np.bool_)
        kept[excluded] = False
        results, relevant = scores[kept], relevant[kept[relevant]]
    ordered = np.sort(results)
    if len(ordered) and np.isnan(ordered[-1]):  # NaN sorts last
        row = int(np.flatnonzero(np.isnan(scores))[0])
        raise InputError(
            f"the score of query {query} and gallery row {row} is NaN, which cannot be ranked; leave out chips that "
            "have no score"
        )
    wanted = np.sort(scores[relevant])
    last = np.ones(len(wanted), dtype=np.bool_)  # of those with one score
    np.not_equal(wanted[1:], wanted[:-1], out=last[:-1])
    values, together = wanted[last], last.nonzero()[0] + 1
    together[1:] -= together[:-1].copy()
    upto = ordered.searchsorted(values, side="right")
    tied = np.ones_like(upto)
    again = np.flatnonzero(ordered[upto - 2] == values)  # a second bisection only for ties, which are rare
    tied[again] = upto[again] - ordered.searchsorted(values[again], side="left")
    return np.array([len(ordered) - upto, tied, together])[:, ::-1]


def _expected_among_first(ranks: RelevantRanks, k: int) -> Scores:
    share = np.clip(k - ranks.above, 0, ranks.tied) / ranks.tied
    return _by_query(ranks, ranks.query, ranks.relevant * share)


def _by_query(ranks: RelevantRanks, query: Rows, values: Scores) -> Scores:
    return np.asarray(np.bincount(query, weights=values, minlength=ranks.queries), dtype=np.float64)


def _none_drawn(size: Counts, relevant: Counts, drawn: Counts) -> Scores:
    """Return the probability that `drawn` of `size` without replacement are all irrelevant."""
    rest = size - relevant
    possible = np.maximum(rest, drawn)  # keeps the logarithms finite where the probability is zero
    log_ways = gammaln(possible + 1) - gammaln(possible - drawn + 1) - gammaln(size + 1) + gammaln(size - drawn + 1)
    return np.asarray(np.where(drawn > rest, 0.0, np.exp(log_ways)), dtype=np.float64)


def _divided(numerator: Scores, relevant: Counts) -> Scores:
    return np.asarray(np.divide(numerator, relevant, out=np.full(len(numerator), np.nan), where=relevant > 0))


def _as_ranks(results: RelevantRanks | ArrayLike) -> RelevantRanks:
    return results if isinstance(results, RelevantRanks) else RelevantRanks.of_ranked(results)


def _as_counts(relevant: ArrayLike, ranks: RelevantRanks) -> Counts:
    counts = np.asarray(relevant)
    if counts.dtype.kind not in "ui" or counts.shape != (ranks.queries,):
        raise InputError(
            f"relevant must be {ranks.queries} whole numbers, the relevant items in the gallery for each query; got "
            f"{counts.dtype} of shape {counts.shape}"
        )
    short = np.flatnonzero(counts < ranks.counts)
    if len(short):
        raise InputError(
            f"relevant says {counts[short[0]]} for query {short[0]}, but its results hold {ranks.counts[short[0]]}; "
            "count all relevant items in the gallery"
        )
    return counts.astype(np.int64)
