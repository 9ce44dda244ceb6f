"""A query, one point that stands for all examples, and the rows of the gallery that it ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import InputError
from lookdown.gallery.search.overlap import merge_overlapping
from lookdown.gallery.search.request import Examples, SearchRequest
from lookdown.gallery.search.where import Where
from lookdown.gallery.store.snapshot import Embeddings, Rows
from lookdown.metrics.metric import L2Metric

if TYPE_CHECKING:
    from lookdown.gallery.search.searcher import Searcher

__all__ = ["SHORTLIST_ROWS", "Query", "RankedRows", "RowSearch", "expansion_weights"]

Array = NDArray[np.float64]

SHORTLIST_ROWS = 2_000  # hits of the Gaussian that another metric scores again, at least; at most so many are re-ranked
_BATCH_ROWS = 16_384  # scored again at a time


@dataclass(frozen=True, slots=True)
class Query:
    """Examples with their weights, as one point.

    The weighted mean over examples of |z_i - y|^2 / 2 is |point - y|^2 / 2 + spread, so one search serves all of them.
    """

    examples: Embeddings  # (n, d)
    weights: Array  # (n,), which sum to 1
    point: NDArray[np.float32]  # (r,)
    spread: float

    @classmethod
    def of(cls, examples: Embeddings, weights: Array, space: L2Metric) -> Query:
        """Average examples in the space of a metric."""
        z = space.transform(examples).astype(np.float64)
        shares = weights / weights.sum()
        point = shares @ z
        return cls(examples, shares, point.astype(np.float32), float(shares @ ((z - point) ** 2).sum(axis=1)) / 2)


@dataclass(frozen=True, slots=True)
class RankedRows:
    """Rows with their scores, best first, and how many overlapping windows each stands for."""

    rows: Rows
    scores: Array
    merged: NDArray[np.intp]

    @classmethod
    def of(cls, rows: Rows, scores: Array) -> RankedRows:
        """Sort rows by their scores."""
        order = np.lexsort((rows, -scores))
        return cls(rows[order], scores[order], np.zeros(len(rows), np.intp))

    def __getitem__(self, positions: slice | NDArray[Any]) -> RankedRows:
        return RankedRows(self.rows[positions], self.scores[positions], self.merged[positions])

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class RowSearch:
    """The rows that one request to a searcher ranks."""

    searcher: Searcher
    request: SearchRequest
    counter_examples: Embeddings
    excluded: Rows  # examples and counter-examples that are chips of the gallery
    where: Where | None

    def query(self, examples: Examples) -> Query:
        """Return the query, expanded by the best hits if the request says so."""
        query = Query.of(examples.embeddings, examples.weights, self.searcher.space)
        if not self.request.expand:
            return query
        hits = self._merged(self._ranked(query, 4 * self.request.expand))[: self.request.expand]
        itself = float(self.searcher.metric.score_pairs(query.examples[:1], query.examples[:1])[0])
        own, *trust = expansion_weights(hits.scores, itself)
        weights = np.r_[query.weights * own, trust]  # all examples together weigh as much as one trusted hit
        embeddings = np.concatenate([query.examples, self.searcher.snapshot.embeddings(hits.rows)])
        return Query.of(embeddings[weights > 0], weights[weights > 0], self.searcher.space)

    def best(self, query: Query) -> RankedRows:
        """Return at least k hits after merging, if there are as many; the shortlist grows until then."""
        assert self.request.hits is not None
        wanted = max(4 * self.request.hits, 100) if self.request.rerank else self.request.hits
        count = wanted + (wanted if self._merges else 0)
        while True:
            ranking = self._ranked(query, count)
            kept = self._merged(ranking)
            if len(kept) >= wanted or len(ranking) < count:
                return kept
            count *= 4

    def accepted(self, query: Query, threshold: float, most: int | None) -> tuple[RankedRows, int]:
        """Return the hits that reach a threshold, and how many windows beyond them were not merged.

        Only as many as are wanted are merged, because merging needs their polygons from the table.
        """
        ranking = self._reaching(query, threshold)
        if most is None or not self._merges:
            return self._merged(ranking), 0
        wanted = max(most, SHORTLIST_ROWS) if self.request.rerank else most
        count = 2 * wanted
        while True:
            kept = self._merged(ranking[:count])
            if len(kept) >= wanted or count >= len(ranking):
                return kept, max(0, len(ranking) - count)
            count *= 4

    def rows_searched(self) -> int:
        """Return how many rows the filter keeps, without the examples."""
        snapshot = self.searcher.snapshot
        if self.where is None:
            return len(snapshot) - len(self.excluded)
        kept = snapshot.columns.matching(self.where)
        return int(kept.sum() - kept[self.excluded].sum())

    @property
    def _merges(self) -> bool:
        return self.request.overlap < 1

    @property
    def _is_direct(self) -> bool:
        return self.searcher.space is self.searcher.metric

    def _ranked(self, query: Query, wanted: int) -> RankedRows:
        """Return the best rows by the final score, at least `wanted` of them if there are as many.

        Counter-examples only lower scores. So once the last row of the shortlist could not pass the last one wanted,
        no row beyond the shortlist can.
        """
        count = wanted + len(self.excluded)
        if not self._is_direct:
            count = max(count, 20 * wanted, SHORTLIST_ROWS)
        while True:
            rows, closeness = self.searcher.engine.nearest(query.point[None], count, self.where)[0]
            ranking = self._scored(query, rows, closeness)
            if not len(self.counter_examples) or len(rows) < count or len(ranking) < wanted:
                return ranking
            if ranking.scores[wanted - 1] >= self._direct_scores(query, closeness[-1:])[0]:
                return ranking[:wanted]
            count *= 4

    def _reaching(self, query: Query, threshold: float) -> RankedRows:
        """Return every row whose final score reaches the threshold."""
        engine, snapshot = self.searcher.engine, self.searcher.snapshot
        if self._is_direct:
            closeness = threshold - self.searcher.space.offset_ + query.spread
            ranking = self._scored(query, *engine.reaching(query.point, closeness, self.where))
        else:
            every = np.arange(len(snapshot))
            rows = every if self.where is None else every[snapshot.columns.matching(self.where)]
            ranking = self._scored(query, rows, np.zeros(len(rows)))
        return ranking[ranking.scores >= threshold]

    def _scored(self, query: Query, rows: Rows, closeness: Array) -> RankedRows:
        """Return the final scores of rows that are no examples.

        With counter-examples that is the log-likelihood ratio of "of the examples' kind" to "of another kind, or of the
        counter-examples'". It is never higher than without them, so they add no false alarm.
        """
        others = ~np.isin(rows, self.excluded)
        rows, closeness = rows[others], closeness[others]
        if self._is_direct and not len(self.counter_examples):
            return RankedRows.of(rows, self._direct_scores(query, closeness))
        scores = np.empty(len(rows))
        for begin in range(0, len(rows), _BATCH_ROWS):
            batch = slice(begin, begin + _BATCH_ROWS)
            x = self.searcher.snapshot.embeddings(rows[batch])
            if self._is_direct:
                scores[batch] = self._direct_scores(query, closeness[batch])
            else:
                scores[batch] = query.weights @ self.searcher.metric.score(query.examples, x)
            if len(self.counter_examples):
                unlike = self.searcher.metric.score(self.counter_examples, x).max(axis=0)
                scores[batch] -= np.logaddexp(0, unlike)
        return RankedRows.of(rows, scores)

    def _direct_scores(self, query: Query, closeness: Array) -> Array:
        return np.asarray(self.searcher.space.offset_ - query.spread + closeness)

    def _merged(self, ranking: RankedRows) -> RankedRows:
        if not self._merges or not len(ranking):
            return ranking
        rows = self.searcher.snapshot.read(ranking.rows, ["scene", "polygon"])
        scenes, polygons = [row["scene"] for row in rows], [row["polygon"] for row in rows]
        kept, merged = merge_overlapping(scenes, polygons, self.request.overlap)
        return RankedRows(ranking.rows[kept], ranking.scores[kept], merged)


def expansion_weights(scores: ArrayLike, own: float, *, alpha: float = 3.0) -> Array:
    """Return the weights of the query, which is 1, and of m hits with these scores, in an array of m + 1.

    own: the score of the query against itself: 1 for a cosine, the metric's `offset_` for a likelihood ratio.
    alpha: the exponent in weight = (score / own)^alpha, which lies between 0 and 1.

    Cosines are thus weighted as in alpha-QE (Radenovic, Tolias and Chum, PAMI 2019, the source of the default 3).
    Log-likelihood ratios can be weighted in the same way, because zero is neutral in both: a hit that scores no more
    than zero is evidence against the query's kind and gets weight 0. So does every hit where `own` is not above zero.

    The weights are not relative to the best hit: otherwise it would always count in full, even where the gallery holds
    nothing of the query's kind.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any():
        raise InputError(f"scores must be one number per hit, none of them NaN; got shape {values.shape}")
    if not np.isfinite(own):
        raise InputError(f"own, the score of the query against itself, must be a finite number; got {own}")
    if not 0 < alpha < np.inf:
        raise InputError(f"alpha must be a number above 0; got {alpha}")
    weights = np.zeros(len(values) + 1)
    weights[0] = 1
    if own > 0:
        weights[1:] = (values.clip(0, own) / own) ** alpha
    return weights
