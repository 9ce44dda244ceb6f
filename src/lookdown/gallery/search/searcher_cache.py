"""The searchers of a gallery, one per metric; the last few are kept, and the lists of the IVF index on disk.

The lists serve every metric, since an engine searches a linear map of the embeddings. Clustering them is the slow part.
The file is a cache: where it is missing, damaged or older than the table, the engine assigns the lists again.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from lookdown.atomic import write_file
from lookdown.errors import DamagedCacheWarning, GalleryError, InputError
from lookdown.gallery.scale.milvus_server import MilvusGallery, MilvusServer
from lookdown.gallery.search.engines.engine import (
    Engine,
    EngineChoice,
    EngineName,
    Lists,
    VectorStream,
    chosen_engine,
    make_engine,
)
from lookdown.gallery.search.searcher import Searcher
from lookdown.gallery.search.space import search_space
from lookdown.gallery.store.metric_registry import MetricRegistry
from lookdown.gallery.store.snapshot import Snapshot
from lookdown.gallery.store.table import ChipTable
from lookdown.metrics import Cosine, Metric

__all__ = ["COSINE", "SearcherCache", "read_lists", "write_lists"]

COSINE = "cosine"  # a metric that every gallery has, to compare with
_KEPT_METRICS = 2  # whose vectors are in memory: the one in use, and one more


@dataclass(frozen=True, slots=True)
class _State:
    """The table and the metric in use at one moment, and the searchers built for them so far."""

    snapshot: Snapshot
    current: str  # empty where it cannot be read, so that another metric can still be chosen
    searchers: OrderedDict[str, Searcher]
    building: threading.RLock = field(default_factory=threading.RLock)


class SearcherCache:
    """Searchers of one gallery. Its state changes only by `refresh`, and at once: a search sees the old or the new."""

    def __init__(self, folder: Path, table: ChipTable, registry: MetricRegistry, engine: EngineChoice) -> None:
        self._folder, self._table, self._registry = folder, table, registry
        chosen = chosen_engine(engine)
        self._server = chosen if isinstance(chosen, MilvusServer) else None
        self._engine: EngineName = "auto" if isinstance(chosen, MilvusServer) else chosen
        self._refreshing = threading.Lock()
        self._state = _State(table.snapshot(), self._metric_in_use(), OrderedDict())

    @property
    def snapshot(self) -> Snapshot:
        """The table as of the last refresh."""
        return self._state.snapshot

    @property
    def current(self) -> str:
        """The metric in use as of the last refresh."""
        return self._state.current or self._registry.current

    def refresh(self) -> bool:
        """Read the table and the metric in use again; return whether they have changed.

        If there was a searcher before, the new one is built first, so that searches in other threads go on meanwhile.
        """
        with self._refreshing:
            before = self._state
            changed = self._table.version != before.snapshot.version
            current = self._metric_in_use()
            if not changed and current == before.current:
                return False
            snapshot = self._table.snapshot() if changed else before.snapshot
            after = _State(snapshot, current, OrderedDict() if changed else before.searchers.copy())
            if before.searchers and current:
                self._searcher(after, current).engine.come_into_use()
            self._state = after
            return True

    def searcher(self, metric: str | Metric | None = None) -> Searcher:
        """Return the searcher of the metric in use, of another one by its name, or of a metric object."""
        state = self._state
        if isinstance(metric, Metric):
            return self._build(state.snapshot, metric, type(metric).__name__)
        return self._searcher(state, (state.current or self._registry.current) if metric is None else metric)

    def forget(self, name: str) -> None:
        """Remove what a server holds for a metric that was dropped."""
        if (milvus := self._milvus()) is not None:
            milvus.drop(name)

    def _metric_in_use(self) -> str:
        try:
            return self._registry.current
        except GalleryError:
            return ""

    def _searcher(self, state: _State, name: str) -> Searcher:
        searcher = state.searchers.get(name)  # without the lock: a hit must not wait while another is built
        if searcher is None:
            with state.building:
                searcher = state.searchers.get(name) or self._keep(state, name)
        with suppress(KeyError):  # another thread may have dropped it meanwhile
            state.searchers.move_to_end(name)
        return searcher

    def _keep(self, state: _State, name: str) -> Searcher:
        if name == COSINE:
            metric: Metric = Cosine().fit(np.ones((1, state.snapshot.dimension)))
        else:
            metric = self._registry.load(name)
        searcher = self._build(state.snapshot, metric, name, self._milvus())
        if name == state.current == self._metric_in_use():  # another process may have changed it
            searcher.engine.come_into_use()
        others = [other for other in state.searchers.copy() if other != state.current]
        for other in others[: max(0, len(state.searchers) + 1 - _KEPT_METRICS)]:
            del state.searchers[other]
        state.searchers[name] = searcher
        return searcher

    def _milvus(self) -> MilvusGallery | None:
        """Return the gallery on the server; None where the vectors are in this process."""
        if self._server is None:
            return None
        return MilvusGallery.of(self._server, self._folder, self._registry.info(self._registry.names()[0]).created)

    def _build(self, snapshot: Snapshot, metric: Metric, name: str, milvus: MilvusGallery | None = None) -> Searcher:
        space = search_space(metric)
        if space.dimension != snapshot.dimension:
            raise InputError(
                f"the metric compares embeddings of {space.dimension} numbers, and {self._folder} holds "
                f"{snapshot.dimension}; use one that was fitted on the same network"
            )
        dimensions = space.vectors(np.ones((1, space.dimension), np.float32)).shape[1]
        stream = VectorStream(len(snapshot), dimensions, lambda: map(space.vectors, snapshot.batches()))
        if milvus is None:
            return Searcher(snapshot, metric, name, space, self._engine_in_process(snapshot, stream))
        from lookdown.gallery.scale.milvus_engine import MilvusEngine

        engine = MilvusEngine(
            stream, snapshot.columns, snapshot.keys, milvus, name, lambda rows: space.vectors(snapshot.embeddings(rows))
        )
        return Searcher(snapshot, metric, name, space, engine)

    def _engine_in_process(self, snapshot: Snapshot, stream: VectorStream) -> Engine:
        file = self._folder / "index" / "lists.safetensors"
        keys = snapshot.keys
        engine = make_engine(self._engine, stream, snapshot.columns, lists=lambda: read_lists(file, keys))
        if engine.lists_changed:
            write_lists(file, keys, engine.assignment)
        return engine


def read_lists(file: Path, keys: NDArray[np.int64]) -> Lists | None:
    """Return the list of each chip by its key, -1 for chips added later; None where there is no usable file."""
    try:
        stored = load(file.read_bytes())
        known, lists = stored["keys"], stored["lists"]
        if known.dtype != np.int64 or lists.dtype != np.int32 or known.shape != lists.shape or lists.min(initial=0) < 0:
            raise ValueError("it holds something else")
    except FileNotFoundError:
        return None
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        warnings.warn(f"{file} is damaged ({error}); the index is built again", DamagedCacheWarning, stacklevel=2)
        return None
    if not len(known):
        return None
    order = np.argsort(known)
    nearest = order[np.searchsorted(known, keys, sorter=order).clip(max=len(known) - 1)]
    return np.where(known[nearest] == keys, lists[nearest], -1).astype(np.int32)


def write_lists(file: Path, keys: NDArray[np.int64], lists: Lists) -> None:
    """Write the lists. A full or read-only disk is no error: it only makes the next opening slower.

    Readers write this file too, without the lock of the gallery.
    """
    content = save({"keys": np.ascontiguousarray(keys), "lists": np.ascontiguousarray(lists)})
    with suppress(OSError):
        file.parent.mkdir(exist_ok=True)
        write_file(file, content, flush=False)
