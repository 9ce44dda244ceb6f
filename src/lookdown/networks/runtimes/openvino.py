"""Networks in OpenVINO: a stream a core, each with a few images at a time."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.networks.openvino_guard import openvino

__all__ = ["OpenVinoRuntime"]

_TOGETHER = 8  # images in one pass: what they become on the way still fits into a core's cache, with 16 it does not


class OpenVinoRuntime:
    """A compiled model, and the streams that it runs in."""

    def __init__(self, file: Path) -> None:
        # Without the precision, processors that can would compute in bfloat16, three digits instead of seven.
        options = {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_PRECISION_HINT": "f32"}
        self._model = openvino.Core().compile_model(file, "CPU", options)
        self._queue = openvino.AsyncInferQueue(self._model)
        self._queue.set_callback(_keep)
        self._one_at_a_time = threading.Lock()

    def run(self, images: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return raw embeddings and their transforms."""
        widths = [self._model.output(place).partial_shape[1].get_length() for place in (0, 1)]
        found = tuple(np.empty((len(images), width), np.float32) for width in widths)
        step = min(_TOGETHER, max(1, math.ceil(len(images) / len(self._queue))))  # few images for every stream
        with self._one_at_a_time:
            for begin in range(0, len(images), step):
                rows = slice(begin, begin + step)
                self._queue.start_async({0: np.ascontiguousarray(images[rows])}, (found, rows))
            self._queue.wait_all()
        return found[0], found[1]


def _keep(request: Any, place: tuple[tuple[NDArray[np.float32], ...], slice]) -> None:
    found, rows = place
    for number, values in enumerate(found):
        values[rows] = request.get_output_tensor(number).data
