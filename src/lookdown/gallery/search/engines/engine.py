"""What an engine does: find the vectors nearest to a query, among all chips or those a filter keeps; and its choice.

What measures closeness is the same for every engine, so that the closeness of a row does not depend on the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, cast, get_args

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.gallery.scale.milvus_server import MilvusServer
from lookdown.gallery.search.filters import Where
from lookdown.gallery.store.snapshot import FilterColumns, Rows
from lookdown.metrics.inputs import refuse_non_finite
from lookdown.metrics.pairwise import half_squares
from lookdown.suggestions import did_you_mean

__all__ = [
    "EXACT_ROWS", "SPARE", "Engine", "EngineChoice", "EngineName", "Lists", "Nearest", "VectorStream", "Vectors",
    "as_points", "chosen_engine", "closeness_to", "make_engine", "mean_of", "nearest_first", "nothing",
]  # fmt: skip

Vectors = NDArray[np.float32]  # (n, r), z = transform(x): L2 distance between them ranks as the metric's score does
Lists = NDArray[np.int32]  # the list that each row is in, -1 where it is in none yet

EngineName = Literal["auto", "exact", "ivf"]  # those that need nothing but memory
EngineChoice = EngineName | Literal["milvus"] | MilvusServer
EXACT_ROWS = 1_000_000  # up to which comparing with all of them is fast enough
SPARE = 8  # candidates beyond those wanted: rounding may swap neighbours at the cut
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class VectorStream:
    """All vectors of a gallery in the order of its table, a batch at a time and as often as asked."""

    rows: int
    dimensions: int
    batches: Callable[[], Iterator[Vectors]]

    def numbered(self) -> Iterator[tuple[slice, Vectors]]:
        """Yield the batches with their rows of the table, large ones in parts; too few or too many are refused."""
        begin = 0
        for batch in self.batches():
            for first in range(0, len(batch), _BATCH_ROWS):
                part = batch[first : first + _BATCH_ROWS]
                if begin + len(part) > self.rows or part.shape[1] != self.dimensions:
                    raise InputError(
                        f"vectors of shape {part.shape} came after {begin} of {self.rows} x {self.dimensions}; the "
                        "table has changed, open the gallery again"
                    )
                yield slice(begin, begin + len(part)), part
                begin += len(part)
        if begin != self.rows:
            raise InputError(
                f"{begin} vectors came for {self.rows} rows; the table has changed, open the gallery again"
            )


class Nearest(NamedTuple):
    """Rows of the table, nearest first, and equal ones by rising row."""

    rows: Rows
    closeness: NDArray[np.float64]  # -|z - y|^2 / 2, from the differences: the score without the metric's offset

    def at(self, positions: slice | NDArray[np.bool_]) -> Nearest:
        """Return some of the rows, in the same order."""
        return Nearest(self.rows[positions], self.closeness[positions])


class Engine(Protocol):
    """Vectors and filters behind one search."""

    name: str
    assignment: Lists  # worth keeping: an engine that gets it again need not find lists; empty without lists
    lists_changed: bool  # whether `assignment` differs from the one that the engine got

    def nearest(self, queries: Vectors, k: int, where: Where | None = None) -> list[Nearest]:
        """Return for each query the k nearest rows that the filter keeps, or all of them if there are fewer.

        Without a filter an engine may be approximate. With one it is exact, because approximate search and filters
        together miss too much. Which of several equally near rows are returned at the cut is not defined.
        """

    def reaching(self, query: Vectors, closeness: float, where: Where | None = None) -> Nearest:
        """Return every row at least this close to one query (r,), exactly."""

    def count(self, where: Where | None = None) -> int:
        """Return how many rows the filter keeps."""

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of rows."""

    def come_into_use(self) -> None:
        """Publish that the metric of this engine is the one in use."""


def chosen_engine(choice: str | MilvusServer, uri: str | None = None) -> EngineName | MilvusServer:
    """Check the name of an engine; for `milvus`, return its server at `uri`, or at the address in the environment."""
    if isinstance(choice, MilvusServer):
        return choice
    if choice == "milvus":
        return MilvusServer.from_environment(uri)
    if choice not in get_args(EngineName):
        raise InputError(f"there is no engine {choice!r}; {did_you_mean(choice, [*get_args(EngineName), 'milvus'])}")
    if uri is not None:
        raise InputError(f"the engine {choice} searches in this process and has no address; omit `uri`")
    return cast("EngineName", choice)


def make_engine(
    kind: EngineName,
    stream: VectorStream,
    columns: FilterColumns,
    lists: Lists | Callable[[], Lists | None] | None = None,
) -> Engine:
    """Load vectors into an engine; `auto` is exact up to a million rows.

    lists: the `assignment` of an earlier approximate engine, or a function that reads it, called only if needed.
    """
    if kind not in get_args(EngineName):
        raise InputError(f"there is no engine {kind!r}; {did_you_mean(kind, get_args(EngineName))}")
    if kind == "exact" or (kind == "auto" and stream.rows <= EXACT_ROWS):
        from lookdown.gallery.search.engines.in_memory import ExactEngine  # an engine imports this file

        return ExactEngine(stream, columns)
    from lookdown.gallery.search.engines.ivf import IVFEngine  # faiss: only where it is used

    return IVFEngine(stream, columns, lists() if callable(lists) else lists)


def as_points(queries: Vectors, centre: Vectors) -> Vectors:
    """Return queries less the mean, rounded like the gallery, so that a row is at no distance from itself."""
    with np.errstate(over="ignore"):
        rows = np.asarray(queries, np.float32)
    if rows.ndim != 2 or rows.shape[1] != len(centre):
        raise InputError(f"queries must be (n, {len(centre)}) vectors, got shape {rows.shape}")
    points = rows - centre
    if not np.isfinite(np.vdot(points, points)):  # one number shows that all are finite
        refuse_non_finite(rows, "queries")
        half_squares(points)  # refuses numbers whose squares overflow
    return points


def closeness_to(point: Vectors, vectors: Vectors) -> NDArray[np.float64]:
    """Return -|z - y|^2 / 2 from the differences, in double precision."""
    gaps = np.subtract(point, vectors, dtype=np.float64)
    return np.asarray(np.einsum("ij,ij->i", gaps, gaps) / -2)


def nearest_first(rows: Rows, closeness: NDArray[np.float64]) -> Nearest:
    """Sort rows, nearest first and equal ones by rising row."""
    order = np.lexsort((rows, -closeness))
    return Nearest(rows[order], closeness[order])


def nothing() -> Nearest:
    """Return a result without rows."""
    return Nearest(np.empty(0, np.intp), np.empty(0))


def mean_of(total: NDArray[np.float64], rows: int) -> Vectors:
    """Return the mean of a gallery from the sum of its vectors; 0 if it is empty."""
    if not np.isfinite(total).all():
        raise InputError("the gallery has vectors with NaN or inf; add those chips again")
    return (total / max(rows, 1)).astype(np.float32)
