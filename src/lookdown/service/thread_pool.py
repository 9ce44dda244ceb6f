"""Threads for work that would hold up the event loop, few of them, and with a bounded number of pieces waiting."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from lookdown.service.limits import too_busy
from lookdown.service.problems import Problem

__all__ = ["ThreadPool", "in_time"]

T = TypeVar("T")


class ThreadPool:
    """A pool of threads; a piece of work beyond those that may wait is refused.

    They are daemons, which those of the standard library are not: an image that is decoded for ever would keep the
    process from ending.
    """

    def __init__(self, name: str, *, threads: int, waiting: int, seconds: float) -> None:
        self.name, self._most, self._seconds = name, threads + waiting, seconds
        self._counting = threading.Lock()
        self._pending = 0
        self._queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"lookdown-{name}_{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, work: Callable[[], T]) -> T:
        """Do a piece of work in one of the threads."""
        return await in_time(self.begin(work), self._seconds)

    def begin(self, work: Callable[[], T]) -> Future[T]:
        """Put a piece of work into the line."""
        with self._counting:
            if self._pending >= self._most:
                raise too_busy(f"too many are waiting for {self.name}", 1)
            self._pending += 1
        future: Future[T] = Future()
        future.add_done_callback(self._done)
        self._queue.put((future, work))
        return future

    def stop(self, seconds: float) -> None:
        """Drop what waits, and give what runs some time to end."""
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
            except BaseException as error:  # whoever waits is told, be it a panic of a library
                future.set_exception(error)
            del item, future, work  # or they would be held until the next piece comes

    def _done(self, future: Future[T]) -> None:
        with self._counting:
            self._pending -= 1


async def in_time(future: Future[T], seconds: float) -> T:
    """Wait for work in a thread; it cannot be stopped there, but nobody has to wait for it."""
    done = asyncio.wrap_future(future)
    finished, _ = await asyncio.wait([done], timeout=seconds)
    if not finished:
        done.cancel()
        raise Problem(
            503, "slow", f"this took more than {seconds:g} s; ask for less, or try later", headers={"Retry-After": "5"}
        )
    return done.result()
