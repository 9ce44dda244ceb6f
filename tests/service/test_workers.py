"""Bounded threads."""

from __future__ import annotations

import asyncio
import threading

import pytest

from lookdown.service.problems import Problem
from lookdown.service.workers import Workers


def test_work_is_done_elsewhere_and_errors_come_back() -> None:
    workers = Workers("tests", threads=1, waiting=1, seconds=5)

    def fail() -> None:
        raise KeyError("x")

    async def main() -> None:
        assert await workers.run(lambda: threading.current_thread().name) == "lookdown-tests_0"
        with pytest.raises(KeyError):
            await workers.run(fail)

    asyncio.run(main())
    workers.stop()


def test_too_much_is_refused_and_what_takes_too_long_is_not_waited_for() -> None:
    workers = Workers("tests", threads=1, waiting=1, seconds=0.1)
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
    workers.stop()
