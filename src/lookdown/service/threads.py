"""Threads for work that would block the event loop: a pool with a bounded queue, and one thread for the network."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookdown.service.problems import Problem, too_busy
from lookdown.service.service_settings import ServiceSettings

__all__ = ["EmbeddingBatcher", "ThreadPool"]

T = TypeVar("T")
Squares = NDArray[np.uint8]  # (n, bands, size, size)
Embeddings = NDArray[np.float32]  # (n, d)


class ThreadPool:
    """A few threads and a bounded queue; work is refused while the queue is full.

    The threads are daemons, unlike those of `concurrent.futures`: a decoder that never returns must not keep the
    process alive.

    waiting: how many pieces of work may wait for a thread.
    seconds: how long `run` waits for a result; None for as long as it takes.
    retry_seconds: when a client that was refused should try again.
    """

    def __init__(
        self, name: str, *, threads: int, waiting: int, seconds: float | None = None, retry_seconds: int = 1
    ) -> None:
        self.name, self._seconds, self._retry = name, seconds, retry_seconds
        self._capacity = threading.Semaphore(threads + waiting)
        self._queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"lookdown-{name}_{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, work: Callable[[], T]) -> T:
        """Call `work` in one of the threads and return its result."""
        return await _result_within(self.submit(work), self._seconds)

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Put `work` into the queue."""
        if not self._capacity.acquire(blocking=False):
            raise too_busy(f"the queue of {self.name} is full", self._retry)
        future: Future[T] = Future()
        future.add_done_callback(lambda _: self._capacity.release())
        self._queue.put((future, work))
        return future

    def stop(self, seconds: float) -> None:
        """Cancel what waits, and give running work some time to finish."""
        deadline = time.monotonic() + seconds
        with suppress(queue.Empty):
            while True:
                if (item := self._queue.get_nowait()) is not None:
                    item[0].cancel()
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            future, work = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:  # a library written in Rust may panic, which is no Exception
                future.set_exception(error)
            del item, future, work  # do not keep them in memory until the next piece of work


@dataclass(frozen=True, slots=True)
class _Request:
    squares: Squares
    embeddings: Future[Embeddings] = field(default_factory=Future)


class EmbeddingBatcher:
    """Embed images in batches.

    The first request waits `batch_seconds` for others; while the network runs, the next batch gathers.

    embed: the network.
    observe: is called with the size of each batch.
    """

    def __init__(
        self,
        embed: Callable[[Squares], Embeddings],
        settings: ServiceSettings,
        observe: Callable[[int], None] = lambda images: None,
    ) -> None:
        self._embed, self._settings, self._observe = embed, settings, observe
        self._queue: queue.Queue[_Request | None] = queue.Queue(settings.waiting)
        self._thread = threading.Thread(target=self._work, name="lookdown-embedding", daemon=True)
        self._thread.start()

    async def embed(self, squares: Squares) -> Embeddings:
        """Return the embeddings of images."""
        request = _Request(squares)
        try:
            self._queue.put_nowait(request)
        except queue.Full:
            raise too_busy("too many images are waiting for the network", 1) from None
        return await _result_within(request.embeddings, self._settings.answer_seconds)

    def stop(self, seconds: float) -> None:
        """Answer the requests in the queue and end the thread, if that takes no longer than `seconds`."""
        deadline = time.monotonic() + seconds
        if self._thread.is_alive():
            with suppress(queue.Full):
                self._queue.put(None, timeout=seconds)
            self._thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        stopped = False
        while not stopped and (first := self._queue.get()) is not None:
            requests, stopped = self._gather(first)
            if requests := [request for request in requests if request.embeddings.set_running_or_notify_cancel()]:
                self._answer(requests)

    def _gather(self, first: _Request) -> tuple[list[_Request], bool]:
        """Return the requests of the next batch, and whether the thread should stop after it."""
        requests, images = [first], len(first.squares)
        deadline = time.monotonic() + self._settings.batch_seconds
        while images < self._settings.batch:
            try:
                request = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            if request is None:
                return requests, True
            requests.append(request)
            images += len(request.squares)
        return requests, False

    def _answer(self, requests: list[_Request]) -> None:
        try:
            squares = np.concatenate([request.squares for request in requests])
            self._observe(len(squares))
            embeddings = self._embed(squares)
        except Exception as error:  # every client that waits gets the error
            for request in requests:
                request.embeddings.set_exception(error)
            return
        start = 0
        for request in requests:
            request.embeddings.set_result(embeddings[start : start + len(request.squares)])
            start += len(request.squares)


async def _result_within(future: Future[T], seconds: float | None) -> T:
    """Wait for the result of a thread; the thread goes on if it takes longer, but the client gets an answer."""
    result = asyncio.wrap_future(future)
    finished, _ = await asyncio.wait([result], timeout=seconds)
    if not finished:
        result.cancel()
        raise Problem(
            503, "slow", f"this took more than {seconds:g} s; ask for less, or try later", headers={"Retry-After": "5"}
        )
    return result.result()
