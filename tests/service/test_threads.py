"""Bounded threads; and one thread for the network, with few passes for many requests."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.service.galleries import client_of, encoded, pixels

from lookdown import Gallery
from lookdown.service.problems import Problem
from lookdown.service.service_settings import ServiceSettings
from lookdown.service.threads import EmbeddingBatcher, ThreadPool


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


def square(value: int, views: int = 1) -> NDArray[np.uint8]:
    return np.full((views, 1, 2, 2), value, np.uint8)


def first_pixels(squares: NDArray[np.uint8]) -> NDArray[np.float32]:
    return squares[:, 0, :1, 0].astype(np.float32)


def test_what_comes_together_goes_together_and_each_gets_its_own() -> None:
    passes: list[int] = []

    def slow(squares: NDArray[np.uint8]) -> NDArray[np.float32]:
        time.sleep(0.02)
        return first_pixels(squares)

    pool = EmbeddingBatcher(
        slow, ServiceSettings(batch=16, batch_seconds=0.01, waiting=100, answer_seconds=10), passes.append
    )

    async def main() -> None:
        answers = await asyncio.gather(*(pool.embed(square(n, 1 + n % 3)) for n in range(40)))
        for n, answer in enumerate(answers):
            assert answer.tolist() == [[n]] * (1 + n % 3)

    asyncio.run(main())
    pool.stop(5)
    assert sum(passes) == sum(1 + n % 3 for n in range(40))
    assert len(passes) < 12
    assert max(passes) <= 16 + 2


def test_batching_can_be_off() -> None:
    passes: list[int] = []
    pool = EmbeddingBatcher(
        first_pixels, ServiceSettings(batch=1, batch_seconds=0, waiting=100, answer_seconds=10), passes.append
    )

    async def main() -> None:
        await asyncio.gather(*(pool.embed(square(n)) for n in range(8)))

    asyncio.run(main())
    pool.stop(5)
    assert passes == [1] * 8


def test_what_fails_before_the_network_is_told_and_the_thread_goes_on() -> None:
    failing = [MemoryError("no room for a batch")]

    def observe(images: int) -> None:
        if failing:
            raise failing.pop()

    pool = EmbeddingBatcher(
        first_pixels, ServiceSettings(batch=1, batch_seconds=0, waiting=2, answer_seconds=5), observe
    )

    async def main() -> None:
        with pytest.raises(MemoryError):
            await pool.embed(square(1))
        assert (await pool.embed(square(3))).tolist() == [[3]]

    asyncio.run(main())
    pool.stop(5)


def test_a_full_line_an_error_and_patience() -> None:
    gate, entered = threading.Event(), threading.Event()

    def stuck(squares: NDArray[np.uint8]) -> NDArray[np.float32]:
        entered.set()
        gate.wait()
        if squares[0, 0, 0, 0] == 9:
            raise RuntimeError("broken")
        return first_pixels(squares)

    pool = EmbeddingBatcher(stuck, ServiceSettings(batch=1, batch_seconds=0, waiting=2, answer_seconds=0.2))

    async def main() -> None:
        first = asyncio.create_task(pool.embed(square(9)))
        await asyncio.to_thread(entered.wait)
        waiting = [asyncio.create_task(pool.embed(square(1))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Problem) as full:
            await pool.embed(square(2))
        assert full.value.status_code == 429
        for task in (first, *waiting):
            with pytest.raises(Problem) as slow:
                await task
            assert slow.value.status_code == 503
        gate.set()
        await asyncio.sleep(0.05)  # those that nobody waits for are passed over
        with pytest.raises(RuntimeError, match="broken"):
            await pool.embed(square(9))
        assert (await pool.embed(square(3))).tolist() == [[3]]

    asyncio.run(main())
    pool.stop(5)
    pool.stop(5)


def test_the_end_does_not_wait_for_a_network_that_is_stuck() -> None:
    gate, entered = threading.Event(), threading.Event()

    def stuck(squares: NDArray[np.uint8]) -> NDArray[np.float32]:
        entered.set()
        gate.wait(20)
        return first_pixels(squares)

    pool = EmbeddingBatcher(stuck, ServiceSettings(batch=1, batch_seconds=0, waiting=1, answer_seconds=0.01))

    async def main() -> None:
        for number in range(2):  # one is in the network, one fills the line
            with pytest.raises(Problem, match="503"):
                await pool.embed(square(number))
            await asyncio.to_thread(entered.wait)

    asyncio.run(main())
    begin = time.monotonic()
    pool.stop(0.05)
    assert time.monotonic() - begin < 2
    gate.set()
    pool.stop(5)
    assert not pool._thread.is_alive()


def test_uploads_at_the_same_time_share_passes_of_the_real_network(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gallery = Gallery.open(made)
    assert gallery.embedder is not None
    passes: list[int] = []
    real = gallery.embedder.embed

    def counting(squares: NDArray[np.uint8], *, batch_size: int = 64) -> NDArray[np.float32]:
        passes.append(len(squares))
        time.sleep(0.05)
        return real(squares, batch_size=batch_size)

    monkeypatch.setattr(gallery.embedder, "embed", counting)
    with client_of(gallery, batch=64) as client, ThreadPoolExecutor(24) as threads:
        passes.clear()  # the one that warms it up
        images = [encoded(pixels(n % 4, n)) for n in range(24)]
        asked = {"request": '{"turned": false}'}
        answers = list(threads.map(lambda image: client.post("/v1/search", files={"image": image}, data=asked), images))
    assert {answer.status_code for answer in answers} == {200}
    assert sum(passes) == 24
    assert len(passes) <= 12
    alone = gallery.search(real(np.stack([pixels(0, 0).transpose(2, 0, 1)])))
    assert answers[0].json()["hits"][0]["id"] in {hit.id for hit in alone.hits[:5]}
