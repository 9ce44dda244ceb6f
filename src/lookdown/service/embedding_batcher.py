"""One thread that embeds the images of several requests in one pass of the network."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lookdown.service.problems import too_busy
from lookdown.service.thread_pool import result_within

__all__ = ["EmbeddingBatcher"]

Squares = NDArray[np.uint8]  # (n, bands, size, size)
Embeddings = NDArray[np.float32]  # (n, d)


@dataclass(frozen=True, slots=True)
class _Request:
    squares: Squares
    embeddings: Future[Embeddings] = field(default_factory=Future)


class EmbeddingBatcher:
    """Embed images in batches.

    The first request waits `batch_seconds` for others; while the network runs, the next batch gathers.

    embed: the network.
    batch: how many images make a full batch.
    waiting: how many requests may wait.
    answer_seconds: how long a request waits for its embeddings.
    observe: is called with the size of each batch.
    """

    def __init__(
        self,
        embed: Callable[[Squares], Embeddings],
        *,
        batch: int,
        batch_seconds: float,
        waiting: int,
        answer_seconds: float,
        observe: Callable[[int], None] = lambda images: None,
    ) -> None:
        self._embed, self._batch, self._observe = embed, batch, observe
        self._batch_seconds, self._answer_seconds = batch_seconds, answer_seconds
        self._queue: queue.Queue[_Request | None] = queue.Queue(waiting)
        self._thread = threading.Thread(target=self._work, name="lookdown-embedding", daemon=True)
        self._thread.start()

    async def embed(self, squares: Squares) -> Embeddings:
        """Return the embeddings of images."""
        request = _Request(squares)
        try:
            self._queue.put_nowait(request)
        except queue.Full:
            raise too_busy("too many images are waiting for the network", 1) from None
        return await result_within(request.embeddings, self._answer_seconds)

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
        deadline = time.monotonic() + self._batch_seconds
        while images < self._batch:
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
