"""Threads for work that would hold up the event loop, few of them, and with a bounded number of pieces waiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from lookdown.service.limits import too_busy
from lookdown.service.problems import Problem

__all__ = ["Workers", "in_time"]

T = TypeVar("T")


class Workers:
    """A pool of threads; a piece of work beyond those that may wait is refused."""

    def __init__(self, name: str, *, threads: int, waiting: int, seconds: float) -> None:
        self.name, self._most, self._seconds = name, threads + waiting, seconds
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"lookdown-{name}")
        self._counting = threading.Lock()
        self._pending = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Do a piece of work in one of the threads."""
        with self._counting:
            if self._pending >= self._most:
                raise too_busy(f"too many are waiting for {self.name}", 1)
            self._pending += 1
        future = self._executor.submit(work)
        future.add_done_callback(self._done)
        return await in_time(future, self._seconds)

    def stop(self) -> None:
        """Let running work end, and drop what waits."""
        self._executor.shutdown(wait=True, cancel_futures=True)

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
