"""A gallery under each of its metrics, as last looked at; the last few views are kept."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lookdown.errors import GalleryError, InputError, LowRankWarning, UnsupportedOperationError
from lookdown.gallery.scale.milvus_collection import MilvusGallery
from lookdown.gallery.scale.milvus_server import MilvusServer
from lookdown.gallery.search.engines import EngineChoice, EngineName, chosen_engine, make_engine
from lookdown.gallery.search.engines.engine import Engine, Vectors, VectorStream
from lookdown.gallery.search.searching import View
from lookdown.gallery.store.inverted_lists import read_lists, write_lists
from lookdown.gallery.store.metric_registry import MetricRegistry
from lookdown.gallery.store.snapshot import Rows, Snapshot
from lookdown.gallery.store.table import ChipTable
from lookdown.metrics import Cosine, GaussianLikelihoodRatio, Metric, MixtureLikelihoodRatio
from lookdown.metrics.metric import L2Metric

__all__ = ["COSINE", "Views", "space_of"]

COSINE = "cosine"  # a metric that every gallery has, to compare with
_KEPT = 2  # metrics whose vectors are in memory: the one in use, and one beside it


@dataclass(frozen=True, slots=True)
class _Moment:
    """The table and the choice of metric at one moment, and the views made of them so far."""

    snapshot: Snapshot
    current: str  # empty where it cannot be told, so that another metric can still be chosen
    kept: OrderedDict[str, View]
    making: threading.RLock = field(default_factory=threading.RLock)


class Views:
    """What searches look at. It changes by `refresh` alone, and then at once: a search sees the old or the new."""

    def __init__(self, folder: Path, records: ChipTable, registry: MetricRegistry, engine: EngineChoice) -> None:
        self._folder, self._table, self._registry = folder, records, registry
        chosen = chosen_engine(engine)
        self._server = chosen if isinstance(chosen, MilvusServer) else None
        self._engine: EngineName = "auto" if isinstance(chosen, MilvusServer) else chosen
        self._refreshing = threading.Lock()
        self._moment = _Moment(records.snapshot(), self._in_use(), OrderedDict())

    @property
    def snapshot(self) -> Snapshot:
        """The table as last looked at."""
        return self._moment.snapshot

    @property
    def current(self) -> str:
        """The metric in use, as last looked at."""
        return self._moment.current or self._registry.current

    def refresh(self) -> bool:
        """Look again; True if chips or the metric in use have changed.

        Where there was a view before, the new one is made first and takes its place afterwards, so that searches in
        other threads go on meanwhile.
        """
        with self._refreshing:
            before = self._moment
            changed = self._table.version != before.snapshot.version
            current = self._in_use()
            if not changed and current == before.current:
                return False
            snapshot = self._table.snapshot() if changed else before.snapshot
            after = _Moment(snapshot, current, OrderedDict() if changed else before.kept.copy())
            if before.kept and current:
                self._view(after, current).engine.come_into_use()
            self._moment = after
            return True

    def under(self, metric: str | Metric | None = None) -> View:
        """Return the gallery under the metric in use, another by its name, or one that is given."""
        moment = self._moment
        if isinstance(metric, Metric):
            return self._made(moment.snapshot, metric, type(metric).__name__)
        return self._view(moment, (moment.current or self._registry.current) if metric is None else metric)

    def _in_use(self) -> str:
        try:
            return self._registry.current
        except GalleryError:
            return ""

    def _view(self, moment: _Moment, name: str) -> View:
        view = moment.kept.get(name)  # without the lock: who finds it must not wait until another is made
        if view is None:
            with moment.making:
                view = moment.kept.get(name) or self._keep(moment, name)
        with suppress(KeyError):  # another thread may have let go of it meanwhile
            moment.kept.move_to_end(name)
        return view

    def _keep(self, moment: _Moment, name: str) -> View:
        metric = self._cosine(moment.snapshot) if name == COSINE else self._registry.load(name)
        view = self._made(moment.snapshot, metric, name, self._place())
        if name == moment.current == self._in_use():  # which others may have changed since
            view.engine.come_into_use()
        others = [known for known in moment.kept.copy() if known != moment.current]
        for known in others[: max(0, len(moment.kept) + 1 - _KEPT)]:
            del moment.kept[known]
        moment.kept[name] = view
        return view

    @staticmethod
    def _cosine(snapshot: Snapshot) -> Metric:
        return Cosine().fit(np.ones((1, snapshot.dimension)))

    def forget(self, name: str) -> None:
        """Remove what a server holds for a metric that is no more."""
        if (place := self._place()) is not None:
            place.drop(name)

    def _place(self) -> MilvusGallery | None:
        """Return where the vectors are, if not in this process; a metric that is brought has no place there."""
        if self._server is None:
            return None
        return MilvusGallery.of(self._server, self._folder, self._registry.info(self._registry.names()[0]).created)

    def _made(self, snapshot: Snapshot, metric: Metric, name: str, place: MilvusGallery | None = None) -> View:
        space = space_of(metric)
        if space.n_features_in_ != snapshot.dimension:
            raise InputError(
                f"the metric compares embeddings of {space.n_features_in_} numbers, and {self._folder} holds "
                f"{snapshot.dimension}; use one that was fitted on the same network"
            )
        stream = VectorStream(len(snapshot), _dimensions(space), lambda: _vectors(snapshot, space))
        engine = self._in_process(snapshot, stream) if place is None else _served(snapshot, stream, place, name, space)
        return View(snapshot, metric, name, space, engine, engine.name)

    def _in_process(self, snapshot: Snapshot, stream: VectorStream) -> Engine:
        file = self._folder / "index" / "lists.safetensors"
        keys = snapshot.keys
        engine = make_engine(self._engine, stream, snapshot.columns, lists=lambda: read_lists(file, keys))
        if engine.lists_changed:
            write_lists(file, keys, engine.assignment)
        return engine


def _served(snapshot: Snapshot, stream: VectorStream, place: MilvusGallery, name: str, space: L2Metric) -> Engine:
    from lookdown.gallery.scale.milvus import Milvus

    def some(rows: Rows) -> Vectors:
        return np.asarray(space.transform(snapshot.embeddings(rows)), np.float32)

    return Milvus(stream, snapshot.columns, snapshot.keys, place, name, some)


def space_of(metric: Metric) -> L2Metric:
    """Return what an engine can search by: the metric, or the nearest to it whose score is a distance."""
    if isinstance(metric, L2Metric) and metric.is_euclidean:
        return metric
    if isinstance(metric, GaussianLikelihoodRatio | MixtureLikelihoodRatio):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LowRankWarning)  # said when the metric was estimated
            return metric.shortlist_metric()
    raise UnsupportedOperationError(f"{type(metric).__name__} has no space that a gallery could be searched in")


def _dimensions(space: L2Metric) -> int:
    return int(space.transform(np.ones((1, space.n_features_in_), np.float32)).shape[1])


def _vectors(snapshot: Snapshot, space: L2Metric) -> Iterator[Vectors]:
    for batch in snapshot.batches():
        yield np.asarray(space.transform(batch), np.float32)
