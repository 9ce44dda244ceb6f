"""One search: a shortlist from the engine, scores by the metric, one hit an object, and what a score is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import NotCalibratedError
from lookdown.gallery.results.hit import Hit, Results
from lookdown.gallery.search.engines.engine import Engine
from lookdown.gallery.search.expansion import expand
from lookdown.gallery.search.rates import Rates, scaled
from lookdown.gallery.search.request import Request
from lookdown.gallery.search.reranking import rerank
from lookdown.gallery.search.suppression import suppress
from lookdown.gallery.store.snapshot import Rows, Snapshot
from lookdown.metrics import Metric
from lookdown.metrics.estimate import Estimate
from lookdown.metrics.metric import L2Metric

__all__ = ["View"]

Array = NDArray[np.float64]
Embeddings = NDArray[np.float32]

_SHORTLIST = 2_000  # hits of the Gaussian that another metric scores again, at least
_AT_ONCE = 16_384  # rows scored again at a time
_SHOWN = (
    "id", "label", "background", "scene", "time", "sensor", "gsd", "source", "polygon", "footprint", "thumbnail",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Query:
    """One point in the space of the engine that stands for several examples, by their weights.

    The mean over examples of |z_i - y|^2 / 2 is |mean - y|^2 / 2 + spread, so one search does for all of them.
    """

    examples: Embeddings
    weights: Array  # sum to 1
    point: NDArray[np.float32]  # (r,)
    spread: float

    @classmethod
    def of(cls, examples: Embeddings, weights: Array, space: L2Metric) -> _Query:
        z = space.transform(examples).astype(np.float64)
        shares = weights / weights.sum()
        point = shares @ z
        return cls(examples, shares, point.astype(np.float32), float(shares @ ((z - point) ** 2).sum(axis=1)) / 2)


@dataclass(frozen=True, slots=True)
class _Scored:
    """Rows with their scores, best first."""

    rows: Rows
    scores: Array

    @classmethod
    def sorted(cls, rows: Rows, scores: Array) -> _Scored:
        order = np.lexsort((rows, -scores))
        return cls(rows[order], scores[order])

    def at(self, places: NDArray[Any]) -> _Scored:
        return _Scored(self.rows[places], self.scores[places])

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class View:
    """A gallery as it was at one moment, under one metric."""

    snapshot: Snapshot
    metric: Metric
    name: str  # of the metric
    space: L2Metric  # what the engine searches by: the metric itself, or its best Gaussian
    engine: Engine
    engine_name: str

    def search(self, request: Request) -> Results:
        """Find, score, merge and judge."""
        query = self._query(request)
        # Views of one object count as one: their mean exceeds a threshold less often than a single one does.
        several = request.objects > 1 or len(query.examples) > len(request.examples)
        rates = Rates(self.metric, several=several)
        threshold = None
        unmerged = 0
        if request.false_alarm_rate is not None:
            threshold = self._threshold(rates, request.false_alarm_rate)
            found, merged, unmerged = self._first(self._accepted(query, request, float(threshold)), request)
        else:
            found, merged = self._best(query, request)
        if request.rerank and len(found):
            first = rerank(query.point, self.engine.vectors(found.rows[:_SHORTLIST]))
            order = np.r_[first, len(first) : len(found)]
            found, merged = found.at(order), merged[order]
        wanted = request.most if request.k is None else request.k
        beyond = unmerged + (0 if wanted is None or request.k is not None else max(0, len(found) - wanted))
        if wanted is not None:
            found, merged = found.at(np.arange(min(wanted, len(found)))), merged[:wanted]
        results = replace(self._results(request, found, merged, rates, threshold), beyond=beyond)
        if request.expand and len(query.examples) == len(request.examples):
            return replace(results, notes=(*results.notes, "No hit was close enough to join the query."))
        return results

    def _threshold(self, rates: Rates, rate: float) -> Estimate:
        try:
            return rates.threshold(rate)
        except NotCalibratedError as error:
            raise NotCalibratedError(
                f"the metric {self.name} knows no false-alarm rates; label chips of two kinds, or background, and run "
                f"`lookdown gallery calibrate {self.snapshot.folder}`, or ask for a number of hits"
            ) from error

    def _query(self, request: Request) -> _Query:
        query = _Query.of(request.examples, request.weights, self.space)
        if not request.expand:
            return query
        first, _ = self._merged(self._ranked(query, request, 4 * request.expand), request.overlap)
        more = first.at(np.arange(min(request.expand, len(first))))
        itself = float(self.metric.score_pairs(request.examples[:1], request.examples[:1])[0])
        own, *trust = expand(more.scores, itself)
        weights = np.r_[query.weights * own, trust]  # the hits come in beside the examples as a whole
        examples = np.concatenate([request.examples, self.snapshot.embeddings(more.rows)])
        return _Query.of(examples[weights > 0], weights[weights > 0], self.space)

    def _best(self, query: _Query, request: Request) -> tuple[_Scored, NDArray[np.intp]]:
        """Return at least k hits that are left after merging, if there are as many: the shortlist grows until then."""
        assert request.k is not None
        wanted = max(4 * request.k, 100) if request.rerank else request.k
        asked = wanted + (wanted if request.overlap is not None else 0)
        while True:
            found = self._ranked(query, request, asked)
            kept, merged = self._merged(found, request.overlap)
            if len(kept) >= wanted or len(found) < asked:
                return kept, merged
            asked *= 4

    def _ranked(self, query: _Query, request: Request, wanted: int) -> _Scored:
        """Return the best rows by the final score, at least `wanted` of them if there are as many.

        Counter-examples only take away from a score, so once the last of the shortlist could not pass the last that is
        wanted, nothing beyond it can.
        """
        asked = wanted + len(request.left_out)
        if not self._is_direct:
            asked = max(asked, 20 * wanted, _SHORTLIST)
        while True:
            rows, closeness = self.engine.nearest(query.point[None], asked, request.where)[0]
            scored = self._scored(query, request, rows, closeness)
            if not len(request.counter_examples) or len(rows) < asked or len(scored) < wanted:
                return scored
            if scored.scores[wanted - 1] >= self._plain(query, closeness[-1:])[0]:
                return scored.at(np.arange(wanted))
            asked *= 4

    def _accepted(self, query: _Query, request: Request, threshold: float) -> _Scored:
        """Return every row whose final score reaches the threshold."""
        if self._is_direct:
            closeness = threshold - self.space.offset_ + query.spread
            found = self._scored(query, request, *self.engine.reaching(query.point, closeness, request.where))
        else:
            every = np.arange(len(self.snapshot))
            rows = every if request.where is None else every[self.snapshot.columns.matching(request.where)]
            found = self._scored(query, request, rows, np.zeros(len(rows)))
        return found.at(np.flatnonzero(found.scores >= threshold))

    def _scored(self, query: _Query, request: Request, rows: Rows, closeness: Array) -> _Scored:
        others = ~np.isin(rows, request.left_out)
        rows, closeness = rows[others], closeness[others]
        if self._is_direct and not len(request.counter_examples):
            return _Scored.sorted(rows, self._plain(query, closeness))
        scores = np.empty(len(rows))
        for begin in range(0, len(rows), _AT_ONCE):
            some = slice(begin, begin + _AT_ONCE)
            x = self.snapshot.embeddings(rows[some])
            own = self._plain(query, closeness[some])
            scores[some] = own if self._is_direct else query.weights @ self.metric.score(query.examples, x)
            scores[some] -= self._held_against(request.counter_examples, x)
        return _Scored.sorted(rows, scores)

    def _held_against(self, counter_examples: Embeddings, x: Embeddings) -> Array:
        """Return log(1 + e^s) with s the score against the likeliest counter-example.

        The score is then the log-likelihood ratio of "of the examples' kind" to "of another kind, or of the
        counter-examples'": it is never higher than without them, so no false alarm is added.
        """
        if not len(counter_examples):
            return np.zeros(len(x))
        return np.asarray(np.logaddexp(0, self.metric.score(counter_examples, x).max(axis=0)), np.float64)

    def _plain(self, query: _Query, closeness: Array) -> Array:
        return np.asarray(self.space.offset_ - query.spread + closeness)

    @property
    def _is_direct(self) -> bool:
        return self.space is self.metric

    def _first(self, found: _Scored, request: Request) -> tuple[_Scored, NDArray[np.intp], int]:
        """Merge as many of the best as are wanted; the rest is counted, since to merge it all of it must be read."""
        if request.most is None or request.overlap is None:
            return *self._merged(found, request.overlap), 0
        wanted = max(request.most, _SHORTLIST) if request.rerank else request.most
        looked = 2 * wanted
        while True:
            kept, merged = self._merged(found.at(np.arange(min(looked, len(found)))), request.overlap)
            if len(kept) >= wanted or looked >= len(found):
                return kept, merged, max(0, len(found) - looked)
            looked *= 4

    def _merged(self, found: _Scored, overlap: float | None) -> tuple[_Scored, NDArray[np.intp]]:
        if overlap is None or not len(found):
            return found, np.zeros(len(found), np.intp)
        rows = self.snapshot.read(found.rows, ["scene", "polygon"])
        kept, merged = suppress([row["scene"] for row in rows], [row["polygon"] for row in rows], overlap)
        return found.at(kept), merged

    def _results(
        self, request: Request, found: _Scored, merged: NDArray[np.intp], rates: Rates, threshold: Estimate | None
    ) -> Results:
        rows = self._rows_searched(request)
        posteriors = rates.posteriors(found.scores, request.prior)
        alarms = rates.false_alarm_rates(found.scores)
        hits = tuple(
            Hit(score=float(score), posterior=posterior, false_alarm_rate=alarm, merged=int(more), **shown)
            for score, posterior, alarm, more, shown in zip(
                found.scores, posteriors, alarms, merged, self.snapshot.read(found.rows, _SHOWN), strict=True
            )
        )
        lowest = found.scores.min(initial=np.inf) if threshold is None else float(threshold)
        rate = rates.false_alarm_rate(lowest) if np.isfinite(lowest) else None
        return Results(
            query=request.told,
            hits=hits,
            rows=rows,
            metric=self.name,
            engine=self.engine_name,
            prior=request.prior,
            requested_rate=request.false_alarm_rate,
            threshold=threshold,
            expected_false_hits=None if rate is None else scaled(rate, rows),
            notes=rates.notes(),
        )

    def _rows_searched(self, request: Request) -> int:
        if request.where is None:
            return len(self.snapshot) - len(np.unique(request.left_out))
        kept = self.snapshot.columns.matching(request.where)
        return int(kept.sum() - kept[request.left_out].sum())
