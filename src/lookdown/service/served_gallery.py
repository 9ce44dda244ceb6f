"""A gallery at work: the threads around it, what is remembered of it, and the look at what others have changed."""

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
from lookdown.gallery import Gallery, Learnt
from lookdown.progress import Progress
from lookdown.service.embedding_batcher import EmbeddingBatcher
from lookdown.service.embedding_map import Plane
from lookdown.service.jobs import Job, JobQueue, Kind, Work
from lookdown.service.problems import Problem, unknown
from lookdown.service.prometheus import PrometheusMetrics
from lookdown.service.service_settings import Access, ServiceSettings
from lookdown.service.thread_pool import ThreadPool
from lookdown.service.thresholds import describe
from lookdown.service.uploads import Upload, read_upload

__all__ = ["GalleryDependency", "ServedGallery", "needs"]

T = TypeVar("T")

_LOG = logging.getLogger("lookdown.service")
_REMEMBERED = 16  # metrics whose thresholds are kept


class ServedGallery:
    """One gallery, and everything that answers for it."""

    def __init__(self, gallery: Gallery, settings: ServiceSettings) -> None:
        self.gallery, self.settings = gallery, settings
        self.instruments = PrometheusMetrics()
        self.instruments.chips.set_function(lambda: len(gallery))
        self._thresholds: dict[tuple[str, int], dict[str, Any]] = {}
        self._plane: Plane | None = None
        self._writer = threading.Lock()  # the gallery has one at a time, and does not wait for it

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start the threads, and end them: what was asked for is answered, what runs gets some time."""
        limits = self.settings
        self.decoding = ThreadPool(
            "images", threads=limits.decoders, waiting=limits.waiting, seconds=limits.answer_seconds
        )
        self.searching = ThreadPool(
            "searches", threads=limits.searchers, waiting=limits.waiting, seconds=limits.answer_seconds
        )
        self.reading = ThreadPool("chips", threads=2, waiting=limits.in_flight, seconds=limits.answer_seconds)
        self.writing = ThreadPool("changes", threads=1, waiting=limits.waiting, seconds=limits.answer_seconds)
        self.looking = ThreadPool("looks", threads=1, waiting=0, seconds=limits.answer_seconds)
        self.jobs = JobQueue(self.gallery.path, waiting=limits.jobs_waiting, kept=limits.jobs_kept)
        self.embedding = await asyncio.to_thread(self._pool)
        await asyncio.to_thread(self._warm)
        looking = asyncio.create_task(self._look())
        try:
            yield
        finally:
            looking.cancel()
            deadline = time.monotonic() + limits.shutdown_seconds
            threads = (self.decoding, self.searching, self.reading, self.writing, self.looking)
            parts = [part for part in (*threads, self.embedding, self.jobs) if part is not None]
            await asyncio.gather(*(asyncio.to_thread(_stop, part, deadline) for part in parts))

    async def read_image(self, content: bytes, *, turned: bool) -> Upload:
        """Read an image that a client has sent."""
        embedder = self.gallery.embedder
        if embedder is None:
            raise GalleryError(
                f"{self.gallery.path} has no embedder, so it cannot be asked for images; give an embedding or an id"
            )
        bands, size = embedder.settings.bands, embedder.settings.size
        read = partial(read_upload, content, pixels=self.settings.pixels, bands=bands, size=size, turned=turned)
        return await self.decoding.run(read)

    async def embed(self, upload: Upload) -> NDArray[np.float32]:
        """Return the embeddings of an image, a row a view."""
        assert self.embedding is not None
        return await self.embedding.embed(upload.squares)

    async def change(self, work: Callable[[], T]) -> T:
        """Write to the gallery, one change after the other; while a job writes, which may take long, none."""

        def alone() -> T:
            if not self._writer.acquire(blocking=False):
                raise GalleryBusyError("a job is writing to the gallery; wait until it is done, then do it again")
            try:
                return work()
            finally:
                self._writer.release()

        return await self.writing.run(alone)

    def start(self, kind: Kind, work: Work) -> Job:
        """Put a job into the line; it waits for a change that is being written."""

        def alone(progress: Progress) -> Learnt:
            with self._writer:
                return work(progress)

        return self.jobs.start(kind, alone)

    def check_chips(self, names: list[str]) -> None:
        """Refuse ids that are not there: what a client calls a chip is never taken for a file."""
        if names and (missing := self.gallery.snapshot.find(names) < 0).any():
            raise unknown("chip", names[int(np.argmax(missing))])

    def check_metric(self, name: str) -> None:
        """Refuse a metric that is not on the shelf; one that was dropped may still be in memory."""
        if name != "cosine":
            self.check_shelved(name)

    def check_shelved(self, name: str) -> None:
        """Refuse a metric that is not on the shelf, the cosine too, which every gallery has without one."""
        if name not in self.gallery.metric_names():
            raise unknown("metric", name)

    def thresholds(self, name: str) -> dict[str, Any]:
        """Return what scores of a metric are worth; worked out once for each."""
        key = name, len(self.gallery)
        told = self._thresholds.get(key)
        if told is None:
            told = describe(self.gallery.read_metric(name), name, key[1])
            if len(self._thresholds) >= _REMEMBERED:
                self._thresholds.clear()
            self._thresholds[key] = told
        return told

    def plane(self) -> Plane:
        """Return the plane that chips are shown in; laid once for each version of the table."""
        snapshot = self.gallery.snapshot
        if self._plane is None or self._plane.version != snapshot.version:
            self._plane = Plane.of(snapshot)
        return self._plane

    def _pool(self) -> EmbeddingBatcher | None:
        """Load the network now: the first who asks should not wait for it."""
        embedder, limits = self.gallery.embedder, self.settings
        if embedder is None:
            return None
        return EmbeddingBatcher(
            partial(embedder.embed, batch_size=max(limits.batch, 8)),
            batch=limits.batch,
            seconds=limits.batch_seconds,
            waiting=limits.waiting,
            patience=limits.answer_seconds,
            observe=self.instruments.batches.observe,
        )

    def _warm(self) -> None:
        """Search once, and embed once: vectors are derived and memory is taken at the first time."""
        snapshot = self.gallery.snapshot
        with suppress(LookdownError):  # whoever asks is told
            if len(snapshot):
                self.gallery.search(snapshot.embeddings(np.array([0]))[0], k=1)
            if (embedder := self.gallery.embedder) is not None:
                size = embedder.settings.size
                embedder.embed(np.zeros((1, embedder.settings.bands, size, size), np.uint8))

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self.settings.refresh_seconds)
            try:
                await asyncio.wrap_future(self.looking.begin(self.gallery.refresh))
            except LookdownError as error:
                _LOG.warning("the gallery cannot be looked at: %s", error)
            except Exception:  # whatever it was may be over at the next look
                _LOG.exception("the gallery cannot be looked at")


def _stop(part: ThreadPool | EmbeddingBatcher | JobQueue, deadline: float) -> None:
    part.stop(max(0.0, deadline - time.monotonic()))


def _served(request: Request) -> ServedGallery:
    served = request.app.state.served
    assert isinstance(served, ServedGallery)
    return served


GalleryDependency = Annotated[ServedGallery, Depends(_served)]


def needs(access: Access) -> Any:
    """Return a dependency that refuses clients where the service was started with less access."""

    def allowed(served: GalleryDependency) -> None:
        if not served.settings.allows(access):
            raise Problem(
                403, "access", f"this service only allows to {served.settings.access}; start it with --access {access}"
            )

    return Depends(allowed)
