"""The embeddings of a gallery in shards, which the machines of a Ray cluster read from the table where it lies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookdown.adaptation.shards import Shards
from lookdown.errors import WorkersError
from lookdown.gallery.scale.ray_cluster import Workers, workers_at
from lookdown.gallery.store.snapshot import Embeddings, Snapshot
from lookdown.gallery.store.table import ChipTable

__all__ = ["TableShards", "shards_on_ray"]

T = TypeVar("T")

_FEWEST, _MOST = 8_192, 262_144  # rows of a shard: 64 MB of 64 numbers each


@contextmanager
def shards_on_ray(records: ChipTable, address: str, snapshot: Snapshot | None = None) -> Iterator[TableShards]:
    """Have the embeddings of a gallery, as it is now or as a snapshot shows it, in shards on a Ray cluster."""
    with workers_at(address) as workers:
        yield TableShards(workers, records, snapshot or records.snapshot())


class TableShards(Shards):
    """Runs of rows of one version of the table."""

    def __init__(self, workers: Workers, records: ChipTable, snapshot: Snapshot) -> None:
        self.shape = len(snapshot), snapshot.dimension
        self.dtype = np.dtype(np.float32)
        self._workers, self._snapshot = workers, snapshot
        self._table = records.uri, snapshot.version, records.storage_options

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> Embeddings:
        if isinstance(rows, slice):
            return self._snapshot.embeddings(None if rows == slice(None) else np.arange(len(self))[rows])
        return self._snapshot.embeddings(np.asarray(rows, np.intp))

    def map(self, work: Callable[[Embeddings, int], T]) -> Iterator[T]:
        """Do work on each shard on some machine; what comes of it is handed on in the order of the rows."""
        share = math.ceil(len(self) / (2 * self._workers.processors))
        size = min(max(_FEWEST, share), _MOST)
        jobs = [range(begin, min(begin + size, len(self))) for begin in range(0, len(self), size)]
        early: dict[int, T] = {}
        following = 0
        for number, result in self._workers.spread(jobs, _OnRows(*self._table, work)):
            early[number] = result
            while following in early:
                yield early.pop(following)
                following += 1


@dataclass(frozen=True, slots=True)
class _OnRows:
    """The work, as it is sent to the machines."""

    uri: str
    version: int
    storage_options: dict[str, str]
    work: Callable[[Embeddings, int], Any]

    def __call__(self, rows: range) -> Any:
        import lance

        if "://" not in self.uri and not Path(self.uri).is_dir():
            raise WorkersError(
                f"there is no table at {self.uri}; put the gallery on a disk that every node has under the same path"
            )
        table = lance.dataset(self.uri, version=self.version, storage_options=self.storage_options or None)
        read = table.scanner(columns=["embedding"], offset=rows.start, limit=len(rows)).to_table()["embedding"]
        values = read.combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return self.work(np.asarray(values, np.float32).reshape(len(rows), -1), rows.start)
