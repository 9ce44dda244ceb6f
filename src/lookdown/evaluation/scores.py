"""Retrieval scores, one a query.

`hits` is (queries, results), true where a result is relevant, best result first; or `Hits`, which knows of results
that score the same. Of those, every order is as likely, and a score is its mean over these orders: neither the order
of the gallery nor chance has a say in it. `relevant` is how many relevant items the gallery holds for each query,
which is more than there are hits where the list was cut.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from lookdown.errors import InputError
from lookdown.evaluation.hits import Hits

__all__ = ["average_precision", "check_k", "hit_rate_at", "precision_at", "recall_at"]

Scores = NDArray[np.float64]
Counts = NDArray[np.int64]


def precision_at(hits: Hits | ArrayLike, k: int) -> Scores:
    """Relevant among the first k, divided by k: also where the gallery has fewer than k rows."""
    return _expected_among_first(_as_hits(hits), check_k(k)) / k


def recall_at(hits: Hits | ArrayLike, relevant: ArrayLike, k: int) -> Scores:
    """Relevant among the first k, divided by all relevant items in the gallery; NaN where there are none."""
    hits = _as_hits(hits)
    return _divided(_expected_among_first(hits, check_k(k)), _as_counts(relevant, hits))


def hit_rate_at(hits: Hits | ArrayLike, k: int) -> Scores:
    """1 if any of the first k is relevant (the "R@k" of metric-learning papers), else 0.

    Where k cuts through results that score the same, it is the probability that one of the relevant ones comes in.
    """
    hits = _as_hits(hits)
    rates = np.zeros(hits.queries)
    queries, best = np.unique(hits.query, return_index=True)
    drawn = np.clip(check_k(k) - hits.above[best], 0, hits.tied[best])
    rates[queries] = 1 - _none_drawn(hits.tied[best], hits.relevant[best], drawn)
    return rates


def average_precision(hits: Hits | ArrayLike, relevant: ArrayLike) -> Scores:
    """Precision at each relevant result, summed and divided by all relevant items; NaN where there are none.

    Among n results that score the same, r of them relevant, a result stands at each of the n places and is relevant
    with probability r / n; if it is, each of the others before it is relevant with probability (r - 1) / (n - 1).
    """
    hits = _as_hits(hits)
    counts = _as_counts(relevant, hits)
    rising = hits.relevant.cumsum() - hits.relevant
    earlier = rising - rising[np.searchsorted(hits.query, hits.query)]  # relevant results that score higher
    others = (hits.relevant - 1) / np.maximum(hits.tied - 1, 1)
    entry = np.repeat(np.arange(len(hits.query)), hits.tied)
    place = np.arange(len(entry)) - (hits.tied.cumsum() - hits.tied)[entry]  # 0 .. tied - 1
    precision = (earlier[entry] + 1 + place * others[entry]) / (hits.above[entry] + 1 + place)
    gains = precision * (hits.relevant / hits.tied)[entry]
    return _divided(_by_query(hits, hits.query[entry], gains), counts)


def check_k(k: int) -> int:
    """Return `k` if it is a whole number of at least 1."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k must be a whole number of at least 1, got {k!r}")
    return int(k)


def _expected_among_first(hits: Hits, k: int) -> Scores:
    share = np.clip(k - hits.above, 0, hits.tied) / hits.tied
    return _by_query(hits, hits.query, hits.relevant * share)


def _by_query(hits: Hits, query: NDArray[np.intp], values: Scores) -> Scores:
    return np.asarray(np.bincount(query, weights=values, minlength=hits.queries), dtype=np.float64)


def _none_drawn(size: Counts, relevant: Counts, drawn: Counts) -> Scores:
    """Return the probability that `drawn` of `size` without replacement are all irrelevant."""
    rest = size - relevant
    possible = np.maximum(rest, drawn)  # keeps the logarithms finite where it cannot be
    log_ways = gammaln(possible + 1) - gammaln(possible - drawn + 1) - gammaln(size + 1) + gammaln(size - drawn + 1)
    return np.asarray(np.where(drawn > rest, 0.0, np.exp(log_ways)), dtype=np.float64)


def _divided(numerator: Scores, relevant: Counts) -> Scores:
    return np.asarray(np.divide(numerator, relevant, out=np.full(len(numerator), np.nan), where=relevant > 0))


def _as_hits(hits: Hits | ArrayLike) -> Hits:
    return hits if isinstance(hits, Hits) else Hits.of_ranked(hits)


def _as_counts(relevant: ArrayLike, hits: Hits) -> Counts:
    counts = np.asarray(relevant)
    if counts.dtype.kind not in "ui" or counts.shape != (hits.queries,):
        raise InputError(
            f"relevant must be {hits.queries} whole numbers, the relevant items in the gallery for each query; got "
            f"{counts.dtype} of shape {counts.shape}"
        )
    short = np.flatnonzero(counts < hits.found)
    if len(short):
        raise InputError(
            f"relevant says {counts[short[0]]} for query {short[0]}, of which {hits.found[short[0]]} were found "
            "already; count all relevant items in the gallery"
        )
    return counts.astype(np.int64)
