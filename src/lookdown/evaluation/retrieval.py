"""Rank a gallery for each query and measure the ranking."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import InputError
from lookdown.evaluation.evaluation import Evaluation
from lookdown.evaluation.measures import RelevantRanks, Rows, average_precision, hit_rate_at, precision_at, recall_at
from lookdown.evaluation.query_scores import Label, QueryScores
from lookdown.metrics.inputs import Embeddings, as_count, as_embeddings, as_flags, as_labels, as_numpy, known_labels
from lookdown.metrics.metric import L2Metric, Metric
from lookdown.metrics.pairwise import centred, half_squares, half_squares_of_gaps

__all__ = ["evaluate"]

_BLOCK_SCORES = 1 << 21  # scores at a time: 16 MB in double precision


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
    """Rank the gallery for each query and measure the ranking; a gallery row with the query's label is relevant.

    metric_or_scores: a fitted metric, or (queries, gallery) scores, higher for more alike.
    queries, gallery: embeddings, (rows, dimensions); None if the first argument is scores.
    query_labels, gallery_labels: strings or integers, None where a label is unknown. Such a gallery row is never
        relevant; such a query is left out of the means and counted.
    background: booleans over the gallery, true for chips that show none of the objects. They are results like any
        other, but never relevant, whatever their label.
    groups: the scene group of each query. Intervals come from resampling groups, or queries without groups.
    query_ids, gallery_ids: names of the chips, for queries that are in the gallery too: a gallery row with the id of
        the query is not among its results.
    k: the number of results that recall and precision count.

    Scores are computed in blocks of two million, so memory does not grow with the number of queries. Tied scores count
    as their mean over every order, see `lookdown.evaluation.measures`.

    >>> import lookdown
    >>> gallery = [[0.9, 0.1], [0.0, 1.0], [0.8, 0.3]]
    >>> result = lookdown.evaluate(lookdown.Cosine(), [[1.0, 0.0]], ["ship"], gallery, ["ship", "jet", "ship"], k=2)
    >>> result.mean_average_precision, result.recall
    (1.0, 1.0)
    """
    k = as_count(k, "k")
    blocks = ScoreBlocks.of(metric_or_scores, queries, gallery)
    query_count, items = blocks.shape
    if not query_count or not items:
        raise InputError(f"there are {query_count} queries and {items} gallery rows; give at least one of each")
    labels = plain_labels(query_labels, query_count, "query_labels")
    empty = as_flags(background, items, name="background")
    classes = plain_labels(gallery_labels, items, "gallery_labels")
    objects = [None if blank else label for label, blank in zip(classes, empty.tolist(), strict=True)]
    relevant = rows_with(labels, objects, ("query_labels", "gallery_labels"))
    members = None if groups is None else tuple(as_labels(groups, query_count, name="groups").tolist())
    ids, own = _own_rows(query_ids, gallery_ids, query_count, items)
    parts = []
    first = 0
    for scores in blocks:
        block = slice(first, first + len(scores))
        ranks = RelevantRanks.of_scores(scores, relevant[block], own and own[block], first=first)
        parts.append(_measures(ranks, k))
        first = block.stop
    counts, *measures = np.concatenate(parts, axis=1)
    query_scores = QueryScores(tuple(labels), members, ids, counts.astype(np.int64), *measures)
    return Evaluation(queries=query_scores, k=k, gallery_size=items, background_count=int(empty.sum()))


def _measures(ranks: RelevantRanks, k: int) -> NDArray[np.float64]:
    """Return the relevant items of each query and the rows of `MEASURES`, NaN for queries without relevant items."""
    relevant = ranks.counts  # the ranking is complete, so it holds every relevant item
    measures = [
        average_precision(ranks, relevant),
        recall_at(ranks, relevant, k),
        precision_at(ranks, k),
        hit_rate_at(ranks, 1),
    ]
    return np.stack([relevant, *np.where(relevant > 0, measures, np.nan)])


def _own_rows(
    query_ids: ArrayLike | None, gallery_ids: ArrayLike | None, query_count: int, items: int
) -> tuple[tuple[Label, ...] | None, list[Rows] | None]:
    """Return the ids of the queries, and the gallery rows that are the query itself."""
    if query_ids is None and gallery_ids is None:
        return None, None
    if query_ids is None or gallery_ids is None:
        raise InputError("query_ids and gallery_ids tell which gallery rows are the query itself; give both or neither")
    ids: list[Label] = as_labels(query_ids, query_count, name="query_ids").tolist()
    names = as_labels(gallery_ids, items, name="gallery_ids").tolist()
    return tuple(ids), rows_with(ids, names, ("query_ids", "gallery_ids"))


def plain_labels(labels: Iterable[Any], rows: int, name: str) -> list[Label | None]:
    """Return strings or numbers, one a row, and None where a label is None or NaN: unknown."""
    if labels is None:
        raise InputError(f"{name} is missing; give one label a row, None where it is unknown")
    known, values = known_labels(labels, rows, name=name)
    plain = np.full(rows, None, dtype=object)
    plain[known] = values.tolist()
    return list(plain)


def rows_with(wanted: Sequence[Label | None], among: Sequence[Label | None], names: tuple[str, str]) -> list[Rows]:
    """Return the rows of `among` that have each wanted label; an unknown label has no rows.

    names: the two arguments, for errors.
    """
    wanted_text, among_text = (
        {isinstance(label, str) for label in labels if label is not None} for labels in (wanted, among)
    )
    if len(wanted_text | among_text) == 2:
        text, number = names if True in wanted_text else names[::-1]
        raise InputError(f"{text} are strings but {number} are numbers, so none can be equal; use one kind for both")
    rows: dict[Label, list[int]] = defaultdict(list)
    for row, label in enumerate(among):
        if label is not None:
            rows[label].append(row)
    arrays = {label: np.array(members, dtype=np.intp) for label, members in rows.items()}
    no_rows = np.empty(0, dtype=np.intp)
    return [no_rows if label is None else arrays.get(label, no_rows) for label in wanted]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreBlocks:
    """Iterate over the (queries, gallery) scores in blocks of about two million, at least one query each.

    A block may be overwritten by the next one.
    """

    shape: tuple[int, ...]
    score: Callable[[slice], NDArray[Any]]  # of a slice of the queries

    @classmethod
    def of(
        cls, metric_or_scores: Metric | ArrayLike, queries: ArrayLike | None, gallery: ArrayLike | None
    ) -> ScoreBlocks:
        """Take a fitted metric with embeddings, or scores; then embeddings are not read."""
        if not isinstance(metric_or_scores, Metric):
            scores = _as_scores(metric_or_scores)
            return cls(scores.shape, scores.__getitem__)
        metric = metric_or_scores
        if queries is None or gallery is None:
            raise InputError("a metric needs embeddings to compare; give queries and gallery, or scores instead")
        metric._require_fit()
        rows, columns = as_embeddings(queries, name="queries"), as_embeddings(gallery, name="gallery")
        shape = len(rows), len(columns)
        if isinstance(metric, L2Metric) and metric.is_euclidean:
            return cls(shape, _by_distance(metric, rows, columns))
        return cls(shape, lambda block: metric.score(rows[block], columns))

    def __iter__(self) -> Iterator[NDArray[Any]]:
        step = _block_queries(self.shape[1])
        return (self.score(slice(begin, begin + step)) for begin in range(0, self.shape[0], step))


def _block_queries(gallery_size: int) -> int:
    return max(1, _BLOCK_SCORES // gallery_size)


def _by_distance(metric: L2Metric, queries: Embeddings, gallery: Embeddings) -> Callable[[slice], Embeddings]:
    """Return a function that does what `metric.score` does, but transforms both sides once and reuses one buffer."""
    a, b = centred(*metric._transform_both(queries, gallery, "queries", "gallery"))
    own, other = half_squares(a), half_squares(b)
    buffer = np.empty((min(len(a), _block_queries(len(b))), len(b)), dtype=np.result_type(a, b))

    def score(block: slice) -> Embeddings:
        halves = half_squares_of_gaps(a[block], b, own[block], other, out=buffer[: len(a[block])])
        return np.subtract(metric.offset_, halves, out=halves)

    return score


def _as_scores(scores: ArrayLike) -> NDArray[Any]:
    try:
        matrix = np.asarray(as_numpy(scores))
    except (ValueError, TypeError) as error:
        raise InputError(f"neither a metric nor scores: {str(error).splitlines()[0]}") from error
    if matrix.ndim != 2 or matrix.dtype.kind not in "fui":
        raise InputError(
            "the first argument is a fitted metric or scores of shape (queries, gallery), higher for more alike; got "
            f"{type(scores).__name__} of {matrix.dtype} and shape {matrix.shape}"
        )
    return matrix
