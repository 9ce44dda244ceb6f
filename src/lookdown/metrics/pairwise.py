"""Distances between the rows of two matrices, and the best rows of one for each row of the other, in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.metrics.inputs import Embeddings

__all__ = [
    "Ranking",
    "Rows",
    "best",
    "best_first",
    "centred",
    "half_squared_distances",
    "half_squares",
    "half_squares_of_gaps",
    "paired_differences",
    "query_blocks",
    "row_blocks",
    "similarities",
]

Rows = NDArray[np.intp]  # row numbers of the gallery

_BLOCK_QUERIES = 256
_BLOCK_SCORES = 1 << 19  # similarities at a time, which stay in the cache
_FEWEST_ROWS, _MOST_ROWS = 1 << 13, 1 << 16  # of a block: more amortise Python overhead, fewer save memory


class Ranking(NamedTuple):
    """The best gallery rows of each query, best first."""

    indices: Rows  # (queries, k)
    scores: Embeddings  # (queries, k)


def half_squared_distances(a: Embeddings, b: Embeddings) -> Embeddings:
    """Return `|a_i - b_j|^2 / 2` as (rows of a, rows of b)."""
    a, b = centred(a, b)
    return half_squares_of_gaps(a, b, half_squares(a), half_squares(b))


def half_squares_of_gaps(
    a: Embeddings, b: Embeddings, own: Embeddings, other: Embeddings, out: Embeddings | None = None
) -> Embeddings:
    """Return `|a_i - b_j|^2 / 2` of centred rows, given `own`, the half squares of `a`, and `other`, those of `b`."""
    halves: Embeddings = np.matmul(a, b.T, out=out)
    np.subtract(own[:, None], halves, out=halves)
    halves += other
    return np.maximum(halves, 0, out=halves)  # rounding may put equal rows closer than zero


def centred(a: Embeddings, b: Embeddings) -> tuple[Embeddings, Embeddings]:
    """Subtract the mean of `b` from both.

    Distances stay the same. Without it, |a|^2 + |b|^2 - 2 ab loses a digit for each by which an offset exceeds the
    spread.
    """
    centre = b.mean(axis=0, dtype=np.float64).astype(b.dtype)
    return a - centre, b - centre


def half_squares(rows: Embeddings) -> Embeddings:
    """Return `|row|^2 / 2`, or refuse rows whose square overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows) / 2
    if not np.isfinite(squares).all():
        raise InputError(
            f"an embedding is so large that its square overflows {rows.dtype}; scale the embeddings down, or use a "
            "metric with normalize=True"
        )
    return np.asarray(squares)


def paired_differences(first: Embeddings, second: Embeddings) -> Embeddings:
    """Return `first - second`, row by row."""
    if len(first) != len(second):
        raise InputError(f"pairs need as many rows on both sides; got {len(first)} and {len(second)}")
    return np.asarray(first - second)


def query_blocks(queries: Embeddings) -> Iterator[Embeddings]:
    """Split queries into blocks."""
    return (queries[begin : begin + _BLOCK_QUERIES] for begin in range(0, len(queries), _BLOCK_QUERIES))


def row_blocks(rows: int, queries: int) -> Iterator[slice]:
    """Split a gallery into blocks of rows, larger ones for fewer queries."""
    step = min(max(_BLOCK_SCORES // queries, _FEWEST_ROWS), _MOST_ROWS)
    return (slice(begin, min(begin + step, rows)) for begin in range(0, rows, step))


def similarities(queries: Embeddings, gallery: Embeddings, halves: Embeddings) -> Embeddings:
    """Return x'y - |y|^2 / 2, given these `halves`: the score up to a constant of the query."""
    block: Embeddings = queries @ gallery.T
    block -= halves
    return block


def best(blocks: Iterable[tuple[Rows, Embeddings]], k: int) -> Ranking:
    """Keep the best k of each query over (queries, rows) blocks of scores, each with its row numbers.

    Only the few columns that beat the worst of the best so far are merged.
    """
    blocks = iter(blocks)
    numbers, scores = next(blocks)
    top = _partition(np.broadcast_to(numbers, scores.shape), scores, k)
    for numbers, block in blocks:
        if top.scores.shape[1] < k:
            rows, columns = np.nonzero(np.ones(block.shape, dtype=np.bool_))
        else:
            rows, columns = np.divmod(np.flatnonzero(block > top.scores.min(axis=1)[:, None]), block.shape[1])
        if not len(rows):
            continue
        better = np.bincount(rows, minlength=len(block))
        position = np.arange(len(rows)) - (better.cumsum() - better)[rows]
        more = np.full((len(block), better.max()), -np.inf, dtype=block.dtype)
        indices = np.zeros(more.shape, dtype=np.intp)
        more[rows, position], indices[rows, position] = block[rows, columns], numbers[columns]
        top = _partition(np.hstack([top.indices, indices]), np.hstack([top.scores, more]), k)
    return best_first(*top)


def best_first(indices: Rows, scores: Embeddings) -> Ranking:
    """Order a ranking by falling score, equal scores by rising row."""
    order = np.lexsort((indices, -scores), axis=1)
    return Ranking(np.take_along_axis(indices, order, axis=1), np.take_along_axis(scores, order, axis=1))


def _partition(indices: Rows, scores: Embeddings, k: int) -> Ranking:
    if scores.shape[1] <= k:
        return Ranking(indices, scores)
    chosen = np.argpartition(scores, -k, axis=1)[:, -k:]
    return Ranking(np.take_along_axis(indices, chosen, axis=1), np.take_along_axis(scores, chosen, axis=1))
