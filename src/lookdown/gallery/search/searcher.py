"""One search: a shortlist from the engine, scores by the metric, one hit per object, and what a score is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError, NotCalibratedError
from lookdown.gallery.results.hit import Hit, Results
from lookdown.gallery.search.engines.engine import Engine
from lookdown.gallery.search.examples import Examples
from lookdown.gallery.search.overlap import merge_overlapping
from lookdown.gallery.search.query import Query, expansion_weights
from lookdown.gallery.search.rates import Rates, scaled
from lookdown.gallery.search.request import SearchRequest
from lookdown.gallery.search.reranking import rerank
from lookdown.gallery.search.where import Where
from lookdown.gallery.store.snapshot import Rows, Snapshot
from lookdown.metrics import Metric
from lookdown.metrics.estimate import Estimate
from lookdown.metrics.metric import L2Metric

__all__ = ["Searcher"]

Array = NDArray[np.float64]
Embeddings = NDArray[np.float32]

_SHORTLIST_ROWS = 2_000  # hits of the Gaussian that another metric scores again, at least
_BATCH_ROWS = 16_384  # scored again at a time
_COLUMNS = (
    "id", "label", "background", "scene", "time", "sensor", "gsd", "source", "polygon", "footprint", "thumbnail",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Rows with their scores, best first, and how many overlapping windows each stands for."""

    rows: Rows
    scores: Array
    merged: NDArray[np.intp]

    @classmethod
    def of(cls, rows: Rows, scores: Array) -> _Ranking:
        order = np.lexsort((rows, -scores))
        return cls(rows[order], scores[order], np.zeros(len(rows), np.intp))

    def at(self, positions: NDArray[Any]) -> _Ranking:
        return _Ranking(self.rows[positions], self.scores[positions], self.merged[positions])

    def first(self, count: int) -> _Ranking:
        return _Ranking(self.rows[:count], self.scores[:count], self.merged[:count])

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Searcher:
    """Searches a snapshot of a gallery by one metric."""

    snapshot: Snapshot
    metric: Metric
    metric_name: str
    space: L2Metric  # what the engine searches by: the metric itself, or the Gaussian nearest to it
    engine: Engine

    def search(
        self, request: SearchRequest, examples: Examples, counter_examples: Examples, *, most: int | None = None
    ) -> Results:
        """Find, score, merge and judge.

        examples, counter_examples: those of the request, as embeddings.
        most: return at most so many of the hits that a rate accepts.
        """
        if most is not None and most < 1:
            raise InputError(f"`most` must be at least 1, got {most!r}")
        if not len(examples.embeddings):
            raise InputError("there is nothing to search for; give at least one example")
        where = None if request.where is None or request.where.everything else request.where
        excluded = np.unique(np.r_[examples.rows, counter_examples.rows])
        search = _Search(self, request, counter_examples.embeddings, excluded, where, most)
        query = search.query(examples)
        # Several embeddings of one object count as one: their mean exceeds a threshold less often than a single one.
        expanded = len(query.examples) > len(examples.embeddings)
        rates = Rates(self.metric, several=examples.objects > 1 or expanded)
        threshold, unmerged = None, 0
        if request.false_alarm_rate is None:
            ranking = search.best(query)
        else:
            threshold = self._threshold(rates, request.false_alarm_rate)
            ranking, unmerged = search.accepted(query, float(threshold))
        if request.rerank and len(ranking):
            first = rerank(query.point, self.engine.vectors(ranking.rows[:_SHORTLIST_ROWS]))
            ranking = ranking.at(np.r_[first, len(first) : len(ranking)])
        wanted = most if request.hits is None else request.hits
        hits = ranking if wanted is None else ranking.first(wanted)
        total = len(hits) if request.hits is not None else len(ranking) + unmerged
        notes = rates.notes()
        if request.expand and not expanded:
            notes += ("No hit was close enough to join the query.",)
        rows_searched = search.rows_searched()
        lowest = hits.scores.min(initial=np.inf) if threshold is None else float(threshold)
        rate = rates.false_alarm_rate(lowest) if np.isfinite(lowest) else None
        return Results(
            query=_description(examples, counter_examples, where),
            hits=self._hits(hits, rates, request.prior),
            rows_searched=rows_searched,
            metric=self.metric_name,
            engine=self.engine.name,
            prior=request.prior,
            requested_false_alarm_rate=request.false_alarm_rate,
            threshold=threshold,
            expected_false_hits=None if rate is None else scaled(rate, rows_searched),
            accepted=total,
            notes=notes,
        )

    def _threshold(self, rates: Rates, rate: float) -> Estimate:
        try:
            return rates.threshold(rate)
        except NotCalibratedError as error:
            raise NotCalibratedError(
                f"the metric {self.metric_name} knows no false-alarm rates; label chips of two kinds, or background, "
                f"and run `lookdown gallery calibrate {self.snapshot.folder}`, or ask for a number of hits"
            ) from error

    def _hits(self, ranking: _Ranking, rates: Rates, prior: float) -> tuple[Hit, ...]:
        columns = zip(
            ranking.scores,
            rates.posteriors(ranking.scores, prior),
            rates.false_alarm_rates(ranking.scores),
            ranking.merged,
            self.snapshot.read(ranking.rows, _COLUMNS),
            strict=True,
        )
        return tuple(
            Hit(rank=rank, score=float(score), posterior=posterior, false_alarm_rate=rate, merged=int(merged), **row)
            for rank, (score, posterior, rate, merged, row) in enumerate(columns, 1)
        )


@dataclass(frozen=True, slots=True)
class _Search:
    """One request to a searcher."""

    searcher: Searcher
    request: SearchRequest
    counter_examples: Embeddings
    excluded: Rows  # examples and counter-examples that are chips of the gallery
    where: Where | None
    most: int | None

    def query(self, examples: Examples) -> Query:
        """Return the query, expanded by the best hits if the request says so."""
        query = Query.of(examples.embeddings, examples.weights, self.searcher.space)
        if not self.request.expand:
            return query
        hits = self._merged(self._ranked(query, 4 * self.request.expand)).first(self.request.expand)
        itself = float(self.searcher.metric.score_pairs(query.examples[:1], query.examples[:1])[0])
        own, *trust = expansion_weights(hits.scores, itself)
        weights = np.r_[query.weights * own, trust]  # all examples together weigh as much as one trusted hit
        embeddings = np.concatenate([query.examples, self.searcher.snapshot.embeddings(hits.rows)])
        return Query.of(embeddings[weights > 0], weights[weights > 0], self.searcher.space)

    def best(self, query: Query) -> _Ranking:
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

    def accepted(self, query: Query, threshold: float) -> tuple[_Ranking, int]:
        """Return the hits that reach a threshold, and how many windows beyond them were not merged.

        Only as many as are wanted are merged, because merging needs their polygons from the table.
        """
        ranking = self._reaching(query, threshold)
        if self.most is None or not self._merges:
            return self._merged(ranking), 0
        wanted = max(self.most, _SHORTLIST_ROWS) if self.request.rerank else self.most
        count = 2 * wanted
        while True:
            kept = self._merged(ranking.first(count))
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

    def _ranked(self, query: Query, wanted: int) -> _Ranking:
        """Return the best rows by the final score, at least `wanted` of them if there are as many.

        Counter-examples only lower scores. So once the last row of the shortlist could not pass the last one wanted,
        no row beyond the shortlist can.
        """
        count = wanted + len(self.excluded)
        if not self._is_direct:
            count = max(count, 20 * wanted, _SHORTLIST_ROWS)
        while True:
            rows, closeness = self.searcher.engine.nearest(query.point[None], count, self.where)[0]
            ranking = self._scored(query, rows, closeness)
            if not len(self.counter_examples) or len(rows) < count or len(ranking) < wanted:
                return ranking
            if ranking.scores[wanted - 1] >= self._direct_scores(query, closeness[-1:])[0]:
                return ranking.first(wanted)
            count *= 4

    def _reaching(self, query: Query, threshold: float) -> _Ranking:
        """Return every row whose final score reaches the threshold."""
        engine, snapshot = self.searcher.engine, self.searcher.snapshot
        if self._is_direct:
            closeness = threshold - self.searcher.space.offset_ + query.spread
            ranking = self._scored(query, *engine.reaching(query.point, closeness, self.where))
        else:
            every = np.arange(len(snapshot))
            rows = every if self.where is None else every[snapshot.columns.matching(self.where)]
            ranking = self._scored(query, rows, np.zeros(len(rows)))
        return ranking.at(np.flatnonzero(ranking.scores >= threshold))

    def _scored(self, query: Query, rows: Rows, closeness: Array) -> _Ranking:
        others = ~np.isin(rows, self.excluded)
        rows, closeness = rows[others], closeness[others]
        if self._is_direct and not len(self.counter_examples):
            return _Ranking.of(rows, self._direct_scores(query, closeness))
        scores = np.empty(len(rows))
        for begin in range(0, len(rows), _BATCH_ROWS):
            batch = slice(begin, begin + _BATCH_ROWS)
            x = self.searcher.snapshot.embeddings(rows[batch])
            if self._is_direct:
                scores[batch] = self._direct_scores(query, closeness[batch])
            else:
                scores[batch] = query.weights @ self.searcher.metric.score(query.examples, x)
            scores[batch] -= self._penalty(x)
        return _Ranking.of(rows, scores)

    def _penalty(self, x: Embeddings) -> Array:
        """Return log(1 + e^s), where s is the score against the likeliest counter-example.

        The final score is then the log-likelihood ratio of "of the examples' kind" to "of another kind, or of the
        counter-examples'". It is never higher than without counter-examples, so they add no false alarm.
        """
        if not len(self.counter_examples):
            return np.zeros(len(x))
        scores = self.searcher.metric.score(self.counter_examples, x)
        return np.asarray(np.logaddexp(0, scores.max(axis=0)), np.float64)

    def _direct_scores(self, query: Query, closeness: Array) -> Array:
        return np.asarray(self.searcher.space.offset_ - query.spread + closeness)

    def _merged(self, ranking: _Ranking) -> _Ranking:
        if not self._merges or not len(ranking):
            return ranking
        rows = self.searcher.snapshot.read(ranking.rows, ["scene", "polygon"])
        scenes, polygons = [row["scene"] for row in rows], [row["polygon"] for row in rows]
        kept, merged = merge_overlapping(scenes, polygons, self.request.overlap)
        return _Ranking(ranking.rows[kept], ranking.scores[kept], merged)


def _description(examples: Examples, counter_examples: Examples, where: Where | None) -> str:
    unlike = f", unlike {counter_examples.description}" if len(counter_examples.embeddings) else ""
    return examples.description + unlike + (f", {where.describe()}" if where is not None else "")
