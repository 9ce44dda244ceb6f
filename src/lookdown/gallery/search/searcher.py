"""One search: a ranking of the gallery, one hit per object, and what scores are worth: rates and posteriors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError, NotCalibratedError
from lookdown.gallery.results.hit import Hit, Results
from lookdown.gallery.search.engines.engine import Engine
from lookdown.gallery.search.query import SHORTLIST_ROWS, RankedRows, RowSearch
from lookdown.gallery.search.request import Examples, SearchRequest
from lookdown.gallery.search.reranking import rerank
from lookdown.gallery.search.space import SearchSpace
from lookdown.gallery.store.snapshot import Rows, Snapshot
from lookdown.gallery.store.table import schema
from lookdown.metrics import KindLikelihoodRatio, Metric
from lookdown.metrics.estimate import Estimate
from lookdown.metrics.metric import Answer

__all__ = ["Rates", "Searcher", "scaled"]

Array = NDArray[np.float64]

_COLUMNS = [field.name for field in fields(Hit) if field.name in schema(1).names]
# Scores at which rates are computed where there are more hits; rates of a model are smooth, and take a millisecond.
_GRID_SCORES = {"empirical": 256, "analytic": 24, "simulated": 256}
_BATCH_ROWS = 16_384  # whose kinds are predicted at a time
_LEAST_RATE = 1e-300  # so that a rate of zero has a logarithm


@dataclass(frozen=True, slots=True)
class Searcher:
    """Searches a snapshot of a gallery by one metric."""

    snapshot: Snapshot
    metric: Metric
    metric_name: str
    space: SearchSpace  # in which the engine searches for what the metric scores highest
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
        if not len(examples.embeddings) and request.kind is None:
            raise InputError("there is nothing to search for; give at least one example")
        where = None if request.where is None or request.where.everything else request.where
        excluded = np.unique(np.r_[examples.rows, counter_examples.rows])
        search = RowSearch(self, request, counter_examples.embeddings, excluded, where)
        query = search.query(examples)
        # Several embeddings of one object count as one: their mean exceeds a threshold less often than a single one.
        expanded = len(query.examples) > len(examples.embeddings)
        rates = Rates(self.metric, several=examples.objects > 1 or expanded)
        threshold, unmerged = None, 0
        if request.false_alarm_rate is None:
            ranking = search.best(query)
        else:
            threshold = self._threshold(rates, request.false_alarm_rate)
            ranking, unmerged = search.accepted(query, float(threshold), most)
        if request.rerank and len(ranking):
            first = rerank(query.points[0], self.engine.vectors(ranking.rows[:SHORTLIST_ROWS]))
            ranking = ranking[np.r_[first, len(first) : len(ranking)]]
        hits = ranking[: most if request.hits is None else request.hits]
        total = len(hits) if request.hits is not None else len(ranking) + unmerged
        notes = rates.notes()
        if request.expand and not expanded:
            notes += ("No hit was close enough to join the query.",)
        rows_searched = search.rows_searched()
        unlike = f", unlike {counter_examples.description}" if len(counter_examples.embeddings) else ""
        lowest = hits.scores.min(initial=np.inf) if threshold is None else float(threshold)
        rate = rates.false_alarm_rate(lowest) if np.isfinite(lowest) else None
        return Results(
            query=(examples.description if request.kind is None else f"kind {request.kind}")
            + unlike
            + ("" if where is None else f", {where.describe()}"),
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

    def _hits(self, ranking: RankedRows, rates: Rates, prior: float) -> tuple[Hit, ...]:
        columns = zip(
            ranking.scores,
            rates.posteriors(ranking.scores, prior),
            rates.false_alarm_rates(ranking.scores),
            self._kinds(ranking.rows),
            ranking.merged,
            self.snapshot.read(ranking.rows, _COLUMNS),
            strict=True,
        )
        return tuple(
            Hit(
                rank=rank,
                score=float(score),
                posterior=posterior,
                false_alarm_rate=rate,
                kind=kind,
                kind_probability=probability,
                merged=int(merged),
                **row,
            )
            for rank, (score, posterior, rate, (kind, probability), merged, row) in enumerate(columns, 1)
        )

    def _kinds(self, rows: Rows) -> list[tuple[str | None, float | None]]:
        """Return the kind that each row is taken for, None for none of these, and how probable that is."""
        if not (isinstance(self.metric, KindLikelihoodRatio) and self.metric.names_kinds):
            return [(None, None)] * len(rows)
        kinds: list[tuple[str | None, float | None]] = []
        for begin in range(0, len(rows), _BATCH_ROWS):
            shares = self.metric.predict_proba(self.snapshot.embeddings(rows[begin : begin + _BATCH_ROWS]))
            every = np.column_stack([shares, 1 - shares.sum(axis=1)])
            names = [*map(str, self.metric.kinds_.tolist()), None]
            kinds += [(names[best], float(row[best])) for best, row in zip(every.argmax(axis=1), every, strict=True)]
        return kinds


class Rates:
    """What scores are worth under a metric; None where it cannot tell.

    several: whether the query is a mean of several examples, for which rates were not measured.
    """

    def __init__(self, metric: Metric, *, several: bool) -> None:
        self.metric = metric
        self.several = several
        # Not "auto", which warns about rates of the model: the results name the source of a rate themselves.
        self._method: Answer = "analytic" if metric.calibration_ is None else "empirical"

    def threshold(self, rate: float) -> Estimate:
        """Return the score from which on chips are accepted; raise NotCalibratedError if the metric knows no rates."""
        return self._of_several(self.metric.threshold(rate, self._method))

    def false_alarm_rate(self, score: float) -> Estimate | None:
        """Return how often a chip of another kind scores as high."""
        try:
            return self._of_several(self.metric.false_alarm_rate(score, self._method))
        except NotCalibratedError:
            return None

    def false_alarm_rates(self, scores: Array) -> Sequence[Estimate | None]:
        """Return the rates of many scores; beyond a few, the logarithm of the rate is interpolated on a grid."""
        first = self.false_alarm_rate(scores[0]) if len(scores) else None
        if first is None or len(scores) <= _GRID_SCORES[first.method]:
            return [None if first is None else self.false_alarm_rate(score) for score in scores]
        grid = np.linspace(scores.min(), scores.max(), _GRID_SCORES[first.method])
        rates = [rate for score in grid if (rate := self.false_alarm_rate(score)) is not None]
        value, low, high = (
            np.exp(np.interp(scores, grid, np.log(np.maximum(column, _LEAST_RATE))))
            for column in zip(*((float(rate), rate.low, rate.high) for rate in rates), strict=True)
        )
        supported = np.interp(scores, grid, [float(rate.supported) for rate in rates]) == 1
        return [
            Estimate(value[i], method=first.method, low=low[i], high=high[i], supported=bool(supported[i]))
            for i in range(len(scores))
        ]

    def posteriors(self, scores: Array, prior: float) -> Sequence[float | None]:
        """Return how probable it is that chips with these scores are of the query's kind."""
        try:
            return [float(value) for value in self.metric.posterior(scores, prior, self._method)]
        except NotCalibratedError:
            return [None] * len(scores)

    def notes(self) -> tuple[str, ...]:
        """Return what a reader should know about the figures."""
        if self.several and self.false_alarm_rate(0.0) is not None:
            return ("Rates were measured for one example; for the mean of several they are a rough guide.",)
        return ()

    def _of_several(self, rate: Estimate) -> Estimate:
        if not self.several:
            return rate
        return Estimate(float(rate), method=rate.method, low=rate.low, high=rate.high, supported=False)


def scaled(rate: Estimate, rows: int) -> Estimate:
    """Return the expected number of rows at a rate."""
    low, high = rate.low * rows, rate.high * rows
    return Estimate(float(rate) * rows, method=rate.method, low=low, high=high, supported=rate.supported)
