"""Where the relevant results of each query stand in its ranking; results that score the same share a place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import InputError

__all__ = ["Hits"]

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """The relevant results of some queries, an entry for each score that a relevant result has.

    Entries come query by query, best score first. Without equal scores an entry is one relevant result, and `above`
    is its rank counted from zero.
    """

    queries: int
    query: Rows  # (entries,) 0 .. queries - 1, rising
    above: Rows  # (entries,) results of the query that score higher
    tied: Rows  # (entries,) results that have just this score, relevant or not
    relevant: Rows  # (entries,) the relevant ones among these

    @classmethod
    def of_ranked(cls, ranked: ArrayLike) -> Self:
        """Read lists that are in order already: `ranked` is (queries, results), true where a result is relevant."""
        flags = np.asarray(ranked)
        if flags.dtype != np.bool_ or flags.ndim != 2:
            raise InputError(
                "hits must be booleans of shape (queries, results), true where a result is relevant, best result "
                f"first; got {flags.dtype} of shape {flags.shape}"
            )
        query, above = np.nonzero(flags)
        single = np.ones_like(above)
        return cls(len(flags), query, above, single, single)

    @classmethod
    def of_scores(
        cls, scores: NDArray[Any], relevant: Sequence[Rows], excluded: Sequence[Rows] | None = None, *, first: int = 0
    ) -> Self:
        """Find the hits in (queries, gallery) scores; `relevant` and `excluded` list gallery rows, query by query.

        Excluded rows are no results of the query, relevant or not. An error counts queries from `first`.
        """
        absent = [np.empty(0, dtype=np.intp)] * len(scores) if excluded is None else excluded
        queries = enumerate(zip(scores, relevant, absent, strict=True), start=first)
        places = [_places(row, right, left, query) for query, (row, right, left) in queries]
        query = np.repeat(np.arange(len(places)), [place.shape[1] for place in places])
        return cls(len(places), query, *np.concatenate([np.empty((3, 0), dtype=np.intp), *places], axis=1))

    @property
    def found(self) -> Rows:
        """Relevant results of each query."""
        return np.bincount(self.query, weights=self.relevant, minlength=self.queries).astype(np.intp)


def _places(scores: NDArray[Any], relevant: Rows, excluded: Rows, query: int) -> Rows:
    """Return `above`, `tied` and `relevant` of one query, best score first.

    Only relevant rows are placed, by bisection among the sorted scores: sorting values is several times as fast as
    sorting indices, and nothing else of the ranking is needed.
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
            f"the score of query {query} and gallery row {row} is NaN, which has no place in a ranking; leave out the "
            "chips that cannot be scored"
        )
    wanted = np.sort(scores[relevant])
    last = np.ones(len(wanted), dtype=np.bool_)  # of those with one score
    np.not_equal(wanted[1:], wanted[:-1], out=last[:-1])
    values, together = wanted[last], last.nonzero()[0] + 1
    together[1:] -= together[:-1].copy()
    upto = ordered.searchsorted(values, side="right")
    tied = np.ones_like(upto)
    again = np.flatnonzero(ordered[upto - 2] == values)  # a second bisection only where something ties, which is rare
    tied[again] = upto[again] - ordered.searchsorted(values[again], side="left")
    return np.array([len(ordered) - upto, tied, together])[:, ::-1]
