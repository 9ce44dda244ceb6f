"""Networks in OpenVINO: a stream a core, each with a few images at a time."""

from __future__ import annotations

import math
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.networks.openvino_guard import openvino

__all__ = ["OpenVinoRuntime"]

_WAITING = 2  # requests a stream: the next one is there at once, also while Python is busy with reading images
_TOGETHER = 8  # images in one pass: what they become on the way still fits into a core's cache, with 16 it does not


class OpenVinoRuntime:
    """A compiled model, and the requests that keep its streams at work.

    They are taken in turn and waited for here, so that nothing calls back into Python from other threads.
    """

    def __init__(self, file: Path, *, threads: int | None = None) -> None:
        # Without the precision, processors that can would compute in bfloat16, three digits instead of seven.
        options: dict[str, Any] = {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_PRECISION_HINT": "f32"}
        if threads is not None:  # not all cores: other processes have the rest, and would be bound to the same ones
            options |= {"INFERENCE_NUM_THREADS": threads, "ENABLE_CPU_PINNING": False}
        model = _core().compile_model(file, "CPU", options)
        self._streams = int(model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
        self._requests = [model.create_infer_request() for _ in range(_WAITING * self._streams)]
        self._widths = [model.output(place).partial_shape[1].get_length() for place in (0, 1)]
        self._one_at_a_time = threading.Lock()

    def run(self, images: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return raw embeddings and their transforms."""
        found = [np.empty((len(images), width), np.float32) for width in self._widths]
        step = min(_TOGETHER, max(1, math.ceil(len(images) / self._streams)))  # few images for every stream
        working: dict[int, slice] = {}

        def finish(turn: int) -> None:
            if (rows := working.pop(turn, None)) is not None:
                self._requests[turn].wait()
                for number, values in enumerate(found):
                    values[rows] = self._requests[turn].get_output_tensor(number).data

        with self._one_at_a_time:
            try:
                for count, begin in enumerate(range(0, len(images), step)):
                    turn = count % len(self._requests)
                    finish(turn)
                    self._requests[turn].start_async({0: np.ascontiguousarray(images[begin : begin + step])})
                    working[turn] = slice(begin, begin + step)
            finally:
                for turn in range(len(self._requests)):
                    finish(turn)
        return found[0], found[1]


@cache
def _core() -> Any:
    """Return the one that all models of a process share, and that stays.

    With one for each model, processes that had dropped some of them ended in a segmentation fault much later.
    """
    return openvino.Core()
