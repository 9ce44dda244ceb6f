"""Networks in onnxruntime: all threads work on one batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

__all__ = ["OnnxRuntime"]

_PASS_IMAGES = 16  # images in one pass


class OnnxRuntime:
    """A session, which several threads may use."""

    def __init__(self, file: Path, *, threads: int | None = None) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0  # 0 is as many as there are cores
        self._session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self._input = self._session.get_inputs()[0].name

    def run(self, images: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return raw embeddings and their transforms."""
        parts = [
            self._session.run(None, {self._input: np.ascontiguousarray(images[begin : begin + _PASS_IMAGES])})
            for begin in range(0, len(images), _PASS_IMAGES)
        ]
        raw, transformed = zip(*parts, strict=True)
        return np.concatenate(raw), np.concatenate(transformed)
