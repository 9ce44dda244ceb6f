"""Threads for work that would block the event loop, with a bounded queue."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from lookdown.service.problems import Problem, too_busy

__all__ = ["ThreadPool", "result_within"]

T = TypeVar("T")


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
        self.name, self._capacity, self._seconds, self._retry = name, threads + waiting, seconds, retry_seconds
        self._lock = threading.Lock()
        self._pending = 0
        self._queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"lookdown-{name}_{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, work: Callable[[], T]) -> T:
        """Call `work` in one of the threads and return its result."""
        return await result_within(self.submit(work), self._seconds)

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Put `work` into the queue."""
        with self._lock:
            if self._pending >= self._capacity:
                raise too_busy(f"the queue of {self.name} is full", self._retry)
            self._pending += 1
        future: Future[T] = Future()
        future.add_done_callback(self._done)
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

    def _done(self, future: Future[T]) -> None:
        with self._lock:
            self._pending -= 1


async def result_within(future: Future[T], seconds: float | None) -> T:
    """Wait for the result of a thread; the thread goes on if it takes longer, but the client gets an answer."""
    result = asyncio.wrap_future(future)
    finished, _ = await asyncio.wait([result], timeout=seconds)
    if not finished:
        result.cancel()
        raise Problem(
            503, "slow", f"this took more than {seconds:g} s; ask for less, or try later", headers={"Retry-After": "5"}
        )
    return result.result()
