"""Bounded threads."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from lookdown.service.problems import Problem
from lookdown.service.thread_pool import ThreadPool


def test_work_is_done_elsewhere_and_errors_come_back() -> None:
    workers = ThreadPool("tests", threads=1, waiting=1, seconds=5)

    def fail() -> None:
        raise KeyError("x")

    async def main() -> None:
        assert await workers.run(lambda: threading.current_thread().name) == "lookdown-tests_0"
        with pytest.raises(KeyError):
            await workers.run(fail)

    asyncio.run(main())
    workers.stop(5)


def test_the_end_drops_what_waits_and_does_not_wait_for_ever() -> None:
    workers = ThreadPool("tests", threads=1, waiting=3, seconds=5)
    gate, entered = threading.Event(), threading.Event()

    def stuck() -> None:
        entered.set()
        gate.wait(20)

    running = workers.submit(stuck)
    waiting = workers.submit(lambda: 2)
    entered.wait()
    begin = time.monotonic()
    workers.stop(0.05)
    assert time.monotonic() - begin < 2
    assert (running.done(), waiting.cancelled()) == (False, True)
    assert all(thread.daemon for thread in workers._threads), "or the process would wait for them"
    gate.set()
    workers.stop(5)
    assert not any(thread.is_alive() for thread in workers._threads)


def test_too_much_is_refused_and_what_takes_too_long_is_not_waited_for() -> None:
    workers = ThreadPool("tests", threads=1, waiting=1, seconds=0.1)
    gate = threading.Event()

    async def main() -> None:
        first = asyncio.create_task(workers.run(gate.wait))
        second = asyncio.create_task(workers.run(lambda: 2))
        await asyncio.sleep(0)
        with pytest.raises(Problem) as refused:
            await workers.run(lambda: 3)
        assert (refused.value.status_code, refused.value.headers) == (429, {"Retry-After": "1"})
        for task in (first, second):
            with pytest.raises(Problem) as slow:
                await task
            assert slow.value.status_code == 503
        gate.set()
        await asyncio.sleep(0.05)
        assert await workers.run(lambda: 4) == 4  # the places are free again

    asyncio.run(main())
    workers.stop(5)
