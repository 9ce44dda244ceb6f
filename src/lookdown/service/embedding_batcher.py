"""Images through the network: one thread, which takes what several requests have brought in one pass."""

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

from lookdown.service.limits import too_busy
from lookdown.service.thread_pool import in_time

__all__ = ["EmbeddingBatcher"]

Squares = NDArray[np.uint8]  # (n, bands, size, size)
Embeddings = NDArray[np.float32]  # (n, d)


@dataclass(frozen=True, slots=True)
class _Brought:
    """What one request has brought, and where it waits for the answer."""

    squares: Squares
    answer: Future[Embeddings] = field(default_factory=Future)


class EmbeddingBatcher:
    """A network that is asked for few images by many.

    The first request waits `seconds` for others; while a batch is in the network the next one gathers by itself.
    """

    def __init__(
        self,
        embed: Callable[[Squares], Embeddings],
        *,
        batch: int,
        seconds: float,
        waiting: int,
        patience: float,
        observe: Callable[[int], None] = lambda images: None,
    ) -> None:
        self._embed, self._batch, self._seconds, self._patience = embed, batch, seconds, patience
        self._observe = observe
        self._queue: queue.Queue[_Brought | None] = queue.Queue(waiting)
        self._thread = threading.Thread(target=self._work, name="lookdown-embedding", daemon=True)
        self._thread.start()

    async def embed(self, squares: Squares) -> Embeddings:
        """Return the embeddings of some images, together with whatever others have brought."""
        brought = _Brought(squares)
        try:
            self._queue.put_nowait(brought)
        except queue.Full:
            raise too_busy("too many images are waiting for the network", 1) from None
        return await in_time(brought.answer, self._patience)

    def stop(self, seconds: float) -> None:
        """Finish what was brought, and end the thread, if both can be done in this time."""
        deadline = time.monotonic() + seconds
        if self._thread.is_alive():
            with suppress(queue.Full):
                self._queue.put(None, timeout=seconds)
            self._thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        ended = False
        while not ended:
            first = self._queue.get()
            if first is None:
                return
            gathered, ended = self._gather(first)
            wanted = [brought for brought in gathered if brought.answer.set_running_or_notify_cancel()]
            if wanted:
                self._answer(wanted)

    def _gather(self, first: _Brought) -> tuple[list[_Brought], bool]:
        gathered, images = [first], len(first.squares)
        deadline = time.monotonic() + self._seconds
        while images < self._batch:
            try:
                brought = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            if brought is None:
                return gathered, True
            gathered.append(brought)
            images += len(brought.squares)
        return gathered, False

    def _answer(self, gathered: list[_Brought]) -> None:
        try:
            squares = np.concatenate([brought.squares for brought in gathered])
            self._observe(len(squares))
            embeddings = self._embed(squares)
        except Exception as error:  # each of those who wait is told
            for brought in gathered:
                brought.answer.set_exception(error)
            return
        begin = 0
        for brought in gathered:
            brought.answer.set_result(embeddings[begin : begin + len(brought.squares)])
            begin += len(brought.squares)
