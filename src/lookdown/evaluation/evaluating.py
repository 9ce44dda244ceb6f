"""From a metric, or from scores, to an `Evaluation`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import InputError
from lookdown.evaluation.evaluation import Evaluation
from lookdown.evaluation.hits import Hits
from lookdown.evaluation.query_scores import QueryScores
from lookdown.evaluation.relevance import KnownLabels, Label, Rows, relevant_rows, rows_with
from lookdown.evaluation.scores import average_precision, check_k, hit_rate_at, precision_at, recall_at
from lookdown.evaluation.scoring import ScoreBlocks
from lookdown.metrics.inputs import as_flags, as_labels
from lookdown.metrics.metric import Metric

__all__ = ["evaluate"]


def evaluate(
    metric_or_scores: Metric | ArrayLike,
    queries: ArrayLike | None,
    query_labels: Iterable[Any],
    gallery: ArrayLike | None,
    gallery_labels: Iterable[Any],
    background: ArrayLike | None = None,
    *,
    groups: ArrayLike | None = None,
    query_ids: ArrayLike | None = None,
    gallery_ids: ArrayLike | None = None,
    k: int = 50,
) -> Evaluation:
    """Rank the gallery for each query and score the ranking; a gallery row with the query's label is relevant.

    metric_or_scores: a fitted metric, or (queries, gallery) scores, higher for more alike; `queries` and `gallery`
        are embeddings, and not read when scores are given.
    query_labels, gallery_labels: strings or integers; None where a label is not known. Such a row of the gallery is
        never relevant, such a query is left out of the means and counted.
    background: booleans over the gallery, true for chips that show none of the objects. They are results like any
        other, and never relevant, whatever their label.
    groups: the scene group of each query. Intervals come from drawing groups again, or queries where none are given.
    query_ids, gallery_ids: names of the chips, for queries that stand in the gallery themselves: rows with the id of
        the query are no results of it, right or wrong.
    k: where recall and precision are cut.

    Goes through the queries in blocks of two million scores, so memory does not grow with their number. Equal scores
    count as if in every order at once, see `lookdown.evaluation.scores`.
    """
    k = check_k(k)
    blocks = ScoreBlocks(metric_or_scores, queries, gallery)
    asked, items = blocks.shape
    if not asked or not items:
        raise InputError(f"there are {asked} queries and {items} gallery rows; give at least one of each")
    labels = KnownLabels.of(query_labels, asked, "query_labels")
    empty = as_flags(background, items, name="background")
    relevant = relevant_rows(labels, KnownLabels.of(gallery_labels, items, "gallery_labels"), empty)
    members = None if groups is None else tuple(as_labels(groups, asked, name="groups").tolist())
    ids, own = _own_rows(query_ids, gallery_ids, asked, items)
    parts = []
    first = 0
    for scores in blocks:
        block = slice(first, first + len(scores))
        parts.append(_measures(Hits.of_scores(scores, relevant[block], own and own[block], first=first), k))
        first = block.stop
    counts, *measures = np.concatenate(parts, axis=1)
    found = QueryScores(tuple(labels.tolist()), members, ids, counts.astype(np.int64), *measures)
    return Evaluation(queries=found, k=k, gallery_size=items, background_count=int(empty.sum()))


def _measures(hits: Hits, k: int) -> NDArray[np.float64]:
    """Return the relevant items of each query and the rows of `MEASURES`, NaN for queries without relevant items."""
    relevant = hits.found  # the ranking is whole, so nothing relevant is missing from it
    found = [
        average_precision(hits, relevant),
        recall_at(hits, relevant, k),
        precision_at(hits, k),
        hit_rate_at(hits, 1),
    ]
    return np.stack([relevant, *np.where(relevant > 0, found, np.nan)])


def _own_rows(
    query_ids: ArrayLike | None, gallery_ids: ArrayLike | None, asked: int, items: int
) -> tuple[tuple[Label, ...] | None, list[Rows] | None]:
    """Return the ids of the queries, and the gallery rows that each of them is."""
    if query_ids is None and gallery_ids is None:
        return None, None
    if query_ids is None or gallery_ids is None:
        raise InputError("query_ids and gallery_ids tell which gallery rows are the query itself; give both or neither")
    ids = as_labels(query_ids, asked, name="query_ids")
    names = as_labels(gallery_ids, items, name="gallery_ids")
    own = rows_with(KnownLabels.of(ids, asked, "query_ids"), KnownLabels.of(names, items, "gallery_ids"))
    return tuple(ids.tolist()), own
