"""Batches as the network is trained on them, the next one drawn while the network works."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lookdown.training.samples import Samples

__all__ = ["Draw", "Drawn", "drawn_batches"]


@dataclass(frozen=True, slots=True)
class Draw:
    """What makes a batch: which chips, the seed of their views, and their place in the batch of all processes."""

    indices: NDArray[np.int64]
    seed: int
    first: int


class Drawn(NamedTuple):
    """A batch, and how long the loop waited for it."""

    indices: NDArray[np.int64]
    inputs: Tensor
    seconds: float


def drawn_batches(samples: Samples, draws: Sequence[Draw], *, ahead: bool) -> Iterator[Drawn]:
    """Yield the batches in their order; `ahead` draws the next one in a thread.

    Worth it where another device does the training. On a CPU both would only share its cores, so there `ahead` is
    off. What is drawn is the same either way, since each batch has a seed of its own.
    """
    if not ahead:
        for draw in draws:
            begin = time.perf_counter()
            inputs = samples.drawn(draw.indices, draw.seed, draw.first)
            yield Drawn(draw.indices, inputs, time.perf_counter() - begin)
        return
    with ThreadPoolExecutor(max_workers=1) as thread:
        asked = [thread.submit(samples.drawn, draw.indices, draw.seed, draw.first) for draw in draws[:1]]
        for place, draw in enumerate(draws):
            begin = time.perf_counter()
            inputs = asked.pop().result()
            waited = time.perf_counter() - begin
            asked = [thread.submit(samples.drawn, one.indices, one.seed, one.first) for one in draws[place + 1 :][:1]]
            yield Drawn(draw.indices, inputs, waited)
