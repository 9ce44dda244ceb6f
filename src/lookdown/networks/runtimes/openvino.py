"""Networks in OpenVINO: a stream a core, each with a few images at a time."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookdown.networks.openvino_guard import openvino

__all__ = ["OpenVinoRuntime"]

_TOGETHER = 8  # images in one pass: what they become on the way still fits into a core's cache, with 16 it does not


class OpenVinoRuntime:
    """A compiled model, and the requests that keep its streams at work.

    They are taken in turn and waited for here. OpenVINO's own queue would call back from its threads, and a process
    that had used and dropped some such queues has ended in a segmentation fault.
    """

    def __init__(self, file: Path) -> None:
        # Without the precision, processors that can would compute in bfloat16, three digits instead of seven.
        options = {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_PRECISION_HINT": "f32"}
        model = openvino.Core().compile_model(file, "CPU", options)
        streams = int(model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
        self._requests = [model.create_infer_request() for _ in range(streams)]
        self._widths = [model.output(place).partial_shape[1].get_length() for place in (0, 1)]
        self._one_at_a_time = threading.Lock()

    def run(self, images: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return raw embeddings and their transforms."""
        found = [np.empty((len(images), width), np.float32) for width in self._widths]
        step = min(_TOGETHER, max(1, math.ceil(len(images) / len(self._requests))))  # few images for every stream
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
