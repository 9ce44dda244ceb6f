"""Networks in OpenVINO: a stream a core, each with a few images at a time.

This is the only place that imports OpenVINO, and it must be imported before nncf. From their import on, both report to
their maker over the network, unless the package `openvino_telemetry` is missing. lookdown works on closed networks and
reports to nobody, so it hides that package.
"""

from __future__ import annotations

import math
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # its import fails from now on

import openvino  # noqa: E402  # after the line above

__all__ = ["OpenVinoRuntime", "openvino"]

# If absl is installed, OpenVINO imports it. Its log handler later closes the stream that is sys.stderr now, which may
# be a test's or a notebook's; the stream of the process it leaves open.
if "absl.logging" in sys.modules:
    sys.modules["absl.logging"].get_absl_handler().python_handler.stream = sys.__stderr__

_STREAM_REQUESTS = 2  # requests a stream: the next one is ready at once, even while Python reads images
_PASS_IMAGES = 8  # images in one pass: their features fit into a core's cache, those of 16 do not


class OpenVinoRuntime:
    """A compiled model, and the requests that keep its streams busy.

    Requests are used in turn and awaited here, so that no other thread calls back into Python.
    """

    def __init__(self, file: Path, *, threads: int | None = None) -> None:
        # Without the precision hint, some processors would compute in bfloat16: three digits instead of seven.
        options: dict[str, Any] = {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_PRECISION_HINT": "f32"}
        if threads is not None:  # other processes use the other cores, and pinning would bind all to the same
            options |= {"INFERENCE_NUM_THREADS": threads, "ENABLE_CPU_PINNING": False}
        model = _core().compile_model(file, "CPU", options)
        self._streams = int(model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
        self._requests = [model.create_infer_request() for _ in range(_STREAM_REQUESTS * self._streams)]
        self._widths = [model.output(number).partial_shape[1].get_length() for number in (0, 1)]
        self._one_at_a_time = threading.Lock()

    def run(self, images: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return raw embeddings and their transforms."""
        outputs = [np.empty((len(images), width), np.float32) for width in self._widths]
        step = min(_PASS_IMAGES, max(1, math.ceil(len(images) / self._streams)))  # few images: some for every stream
        working: dict[int, slice] = {}

        def finish(turn: int) -> None:
            if (rows := working.pop(turn, None)) is not None:
                self._requests[turn].wait()
                for number, values in enumerate(outputs):
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
        return outputs[0], outputs[1]


@cache
def _core() -> Any:
    """Return the core that all models of a process share.

    With one core for each model, processes that had dropped some of them crashed with a segmentation fault much later.
    """
    return openvino.Core()
