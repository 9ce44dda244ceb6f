"""A query, the points that stand for its examples, and the rows of the gallery that it ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import InputError, UnsupportedOperationError
from lookdown.gallery.search.engines.engine import Nearest, Vectors
from lookdown.gallery.search.filters import Where
from lookdown.gallery.search.overlap import merge_overlapping
from lookdown.gallery.search.request import Examples, SearchRequest
from lookdown.gallery.search.space import KindSpace, Probe, SearchSpace
from lookdown.gallery.store.snapshot import Embeddings, Rows
from lookdown.metrics import Metric

if TYPE_CHECKING:
    from lookdown.gallery.search.searcher import Searcher

__all__ = ["SHORTLIST_ROWS", "Query", "RankedRows", "RowSearch", "expansion_weights"]

Array = NDArray[np.float64]

SHORTLIST_ROWS = 2_000  # hits of the Gaussian that another metric scores again, at least; at most so many are re-ranked
LEAST_SCORE = -6.0  # of a ratio of kinds: below it, rows are ranked as far as the shortlist goes
_BATCH_ROWS = 16_384  # scored again at a time


@dataclass(frozen=True, slots=True)
class Query:
    """Examples with their weights, the points that an engine searches around for them, and their score."""

    examples: Embeddings  # (n, d); none for a kind
    weights: Array  # (n,); views of one object share its weight of 1
    probes: tuple[Probe, ...]
    score: Callable[[Embeddings], NDArray[np.floating[Any]]]  # of embeddings

    @classmethod
    def of(cls, examples: Embeddings, weights: Array, space: SearchSpace, metric: Metric) -> Query:
        """Return the query of examples in the space of a metric."""
        return cls(examples, weights, space.probes(examples, weights), partial(metric.score_query, examples, weights))

    @classmethod
    def of_kind(cls, kind: str, space: KindSpace) -> Query:
        """Return the query of a kind that the metric names."""
        none = np.empty((0, space.dimension), np.float32)
        return cls(none, np.empty(0), space.kind_probes(kind), partial(space.metric.score_kind, kind))

    @property
    def points(self) -> Vectors:
        """The points of all probes."""
        return np.stack([probe.point for probe in self.probes])


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
        space, metric = self.searcher.space, self.searcher.metric
        if self.request.kind is not None:
            if not (isinstance(space, KindSpace) and space.metric.names_kinds):
                raise UnsupportedOperationError(
                    f"the metric {self.searcher.metric_name} knows no kinds by name, as one does that your labels have "
                    "taught in an archive that forms clusters; give an example instead"
                )
            return Query.of_kind(self.request.kind, space)
        query = Query.of(examples.embeddings, examples.weights, space, metric)
        if not self.request.expand:
            return query
        hits = self._merged(self._ranked(query, 4 * self.request.expand))[: self.request.expand]
        itself = float(metric.score_pairs(query.examples[:1], query.examples[:1])[0])
        own, *trust = expansion_weights(hits.scores, itself)
        weights = np.r_[query.weights / query.weights.sum() * own, trust]  # all examples weigh as one trusted hit
        embeddings = np.concatenate([query.examples, self.searcher.snapshot.embeddings(hits.rows)])
        return Query.of(embeddings[weights > 0], weights[weights > 0], space, metric)

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

    def _ranked(self, query: Query, wanted: int) -> RankedRows:
        """Return the best rows by the final score, at least `wanted` of them if there are as many.

        Probes bound the score of every row beyond the shortlist, and counter-examples only lower it. So once the last
        row wanted scores as high as that bound, no other row can pass it.
        """
        space = self.searcher.space
        count = wanted + len(self.excluded)
        if not space.bounded:
            count = max(count, 20 * wanted, SHORTLIST_ROWS)
        while True:
            lists = self.searcher.engine.nearest(query.points, count, self.where)
            ranking = self._scored(query, lists)
            short = min(len(nearest.rows) for nearest in lists) < count
            if short or not space.bounded or len(ranking) < wanted:
                return ranking
            last = [probe.score(nearest.closeness[-1:])[0] for probe, nearest in zip(query.probes, lists, strict=True)]
            bound = float(np.logaddexp.reduce(last))
            if ranking.scores[wanted - 1] >= bound or (not space.exact and bound < LEAST_SCORE):
                return ranking[:wanted]
            count *= 4

    def _reaching(self, query: Query, threshold: float) -> RankedRows:
        """Return every row whose final score reaches the threshold."""
        engine, snapshot = self.searcher.engine, self.searcher.snapshot
        if self.searcher.space.bounded:  # where several probes add up, one of them has its share
            share = threshold - np.log(len(query.probes))
            lists = [engine.reaching(probe.point, probe.closeness(share), self.where) for probe in query.probes]
        else:
            every = np.arange(len(snapshot))
            rows = every if self.where is None else every[snapshot.columns.matching(self.where)]
            lists = [Nearest(rows, np.zeros(len(rows)))]
        ranking = self._scored(query, lists)
        return ranking[ranking.scores >= threshold]

    def _scored(self, query: Query, lists: Sequence[Nearest]) -> RankedRows:
        """Return the final scores of the rows in the lists of the probes, without the examples.

        With counter-examples that is the log-likelihood ratio of "of the examples' kind" to "of another kind, or of the
        counter-examples'". It is never higher than without them, so they add no false alarm.
        """
        exact, snapshot = self.searcher.space.exact, self.searcher.snapshot
        rows, first = np.unique(np.concatenate([nearest.rows for nearest in lists]), return_index=True)
        others = ~np.isin(rows, self.excluded)
        rows, first = rows[others], first[others]
        scores = np.asarray(query.probes[0].score(lists[0].closeness[first])) if exact else np.empty(len(rows))
        for begin in range(0, len(rows) if not exact or len(self.counter_examples) else 0, _BATCH_ROWS):
            batch = slice(begin, begin + _BATCH_ROWS)
            x = snapshot.embeddings(rows[batch])
            if not exact:
                scores[batch] = query.score(x)
            if len(self.counter_examples):
                unlike = self.searcher.metric.score(self.counter_examples, x).max(axis=0)
                scores[batch] -= np.logaddexp(0, unlike)
        return RankedRows.of(rows, scores)

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
