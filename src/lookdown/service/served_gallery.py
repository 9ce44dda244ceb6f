"""A gallery and everything that a running service keeps around it: threads, jobs, caches and the refresh."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Annotated, Any, TypeVar

import numpy as np
from fastapi import Depends, Request
from numpy.typing import NDArray

from lookdown.errors import GalleryBusyError, GalleryError, LookdownError
from lookdown.gallery import Gallery, MetricUpdate
from lookdown.gallery.store.snapshot import Rows, Snapshot
from lookdown.progress import Progress
from lookdown.service.embedding_map import Plane
from lookdown.service.jobs import JobQueue, Work
from lookdown.service.problems import Problem, unknown
from lookdown.service.prometheus import PrometheusMetrics
from lookdown.service.schemas import Job
from lookdown.service.service_settings import Access, ServiceSettings
from lookdown.service.threads import EmbeddingBatcher, ThreadPool
from lookdown.service.thresholds import describe
from lookdown.service.uploads import read_upload

__all__ = ["GalleryDependency", "ServedGallery", "known_rows", "needs"]

T = TypeVar("T")

_LOG = logging.getLogger("lookdown.service")
_CACHED_THRESHOLDS = 16


class ServedGallery:
    """One gallery with the threads that answer requests for it."""

    def __init__(self, gallery: Gallery, settings: ServiceSettings) -> None:
        self.gallery, self.settings = gallery, settings
        self.prometheus = PrometheusMetrics()
        self.prometheus.chips.set_function(lambda: len(gallery))
        self._thresholds: dict[tuple[str, int], dict[str, Any]] = {}
        self._plane: Plane | None = None
        self._write_lock = threading.Lock()  # a gallery refuses a second writer at once; jobs should wait

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start the threads; at the end, give running work some time and stop them."""
        settings = self.settings
        pool = partial(ThreadPool, seconds=settings.answer_seconds)
        self.decoding = pool("images", threads=settings.decoders, waiting=settings.waiting)
        self.searching = pool("searches", threads=settings.searchers, waiting=settings.waiting)
        self.reading = pool("chips", threads=2, waiting=settings.in_flight)
        self.writing = pool("changes", threads=1, waiting=settings.waiting)
        self.refreshing = pool("refreshes", threads=1, waiting=0)
        self.jobs = JobQueue(self.gallery.path, settings)
        self.network = await asyncio.to_thread(self._batcher)
        await asyncio.to_thread(self._warm_up)
        refresh = asyncio.create_task(self._refresh())
        try:
            yield
        finally:
            refresh.cancel()
            deadline = time.monotonic() + settings.shutdown_seconds
            pools = (self.decoding, self.searching, self.reading, self.writing, self.refreshing)
            parts = [part for part in (*pools, self.network, self.jobs) if part is not None]
            await asyncio.gather(*(asyncio.to_thread(_stop, part, deadline) for part in parts))

    async def embed(self, content: bytes, *, turned: bool) -> tuple[NDArray[np.float32], bytes]:
        """Read an uploaded image; return its embeddings, one row for each view, and its thumbnail, a JPEG."""
        embedder = self.gallery.embedder
        if embedder is None or self.network is None:
            raise GalleryError(
                f"{self.gallery.path} has no embedder, so it cannot be searched by images; send an embedding or an id"
            )
        bands, size = embedder.settings.bands, embedder.settings.size
        read = partial(read_upload, content, pixels=self.settings.pixels, bands=bands, size=size, turned=turned)
        upload = await self.decoding.run(read)
        return await self.network.embed(upload.squares), upload.thumbnail

    async def change(self, work: Callable[[], T]) -> T:
        """Write to the gallery, one change at a time; refuse while a job writes, which may take long."""

        def exclusive() -> T:
            if not self._write_lock.acquire(blocking=False):
                raise GalleryBusyError("a job is writing to the gallery; wait until it is done, then try again")
            try:
                return work()
            finally:
                self._write_lock.release()

        return await self.writing.run(exclusive)

    def start(self, kind: str, work: Work) -> Job:
        """Put a job into the queue; it waits for the change that is being written."""

        def exclusive(progress: Progress) -> MetricUpdate:
            with self._write_lock:
                return work(progress)

        return self.jobs.start(kind, exclusive)

    def check_chips(self, ids: list[str]) -> None:
        """Refuse unknown ids, so that the gallery never takes an id from a client for the name of a file."""
        known_rows(self.gallery.snapshot, ids)

    def check_metric(self, name: str, *, stored: bool = False) -> None:
        """Refuse a metric that the gallery does not have; it may still be in memory after it was dropped.

        stored: also refuse the cosine, which is always available, if it is not stored.
        """
        if (stored or name != "cosine") and name not in self.gallery.metric_names():
            raise unknown("metric", name)

    def thresholds(self, name: str) -> dict[str, Any]:
        """Return the thresholds of a metric, from a cache if possible."""
        key = name, len(self.gallery)
        thresholds = self._thresholds.get(key)
        if thresholds is None:
            thresholds = describe(self.gallery.read_metric(name), name, key[1])
            if len(self._thresholds) >= _CACHED_THRESHOLDS:
                self._thresholds.clear()
            self._thresholds[key] = thresholds
        return thresholds

    def plane(self) -> Plane:
        """Return the plane of the embedding map, computed once for each version of the table."""
        snapshot = self.gallery.snapshot
        if self._plane is None or self._plane.version != snapshot.version:
            self._plane = Plane.of(snapshot)
        return self._plane

    def _batcher(self) -> EmbeddingBatcher | None:
        """Load the network now, so that the first client does not wait for it."""
        embedder, settings = self.gallery.embedder, self.settings
        if embedder is None:
            return None
        embed = partial(embedder.embed, batch_size=max(settings.batch, 8))
        return EmbeddingBatcher(embed, settings, self.prometheus.batches.observe)

    def _warm_up(self) -> None:
        """Search and embed once: the first time derives vectors and allocates memory."""
        snapshot = self.gallery.snapshot
        with suppress(LookdownError):  # the first client gets the error
            if len(snapshot):
                self.gallery.search(snapshot.embeddings(np.array([0]))[0], k=1)
            if (embedder := self.gallery.embedder) is not None:
                size = embedder.settings.size
                embedder.embed(np.zeros((1, embedder.settings.bands, size, size), np.uint8))

    async def _refresh(self) -> None:
        """Check now and then whether another process has changed the gallery."""
        while True:
            await asyncio.sleep(self.settings.refresh_seconds)
            try:
                await asyncio.wrap_future(self.refreshing.submit(self.gallery.refresh))
            except LookdownError as error:
                _LOG.warning("the gallery cannot be refreshed: %s", error)
            except Exception:  # the next refresh may work again
                _LOG.exception("the gallery cannot be refreshed")


def known_rows(snapshot: Snapshot, ids: list[str]) -> Rows:
    """Return the rows of chips; refuse an id that is not in the table."""
    rows = snapshot.find(ids)
    if (rows < 0).any():
        raise unknown("chip", ids[int(np.argmin(rows))])
    return rows


def _stop(part: ThreadPool | EmbeddingBatcher | JobQueue, deadline: float) -> None:
    part.stop(max(0.0, deadline - time.monotonic()))


def _served(request: Request) -> ServedGallery:
    served: ServedGallery = request.app.state.served
    return served


GalleryDependency = Annotated[ServedGallery, Depends(_served)]


def needs(access: Access) -> Any:
    """Return a dependency that refuses clients if the service was started with less access."""

    def check(served: GalleryDependency) -> None:
        if not served.settings.allows(access):
            allowed = served.settings.access
            raise Problem(403, "access", f"this service only allows to {allowed}; start it with --access {access}")

    return Depends(check)
