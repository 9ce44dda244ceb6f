"""The runtimes of exported networks, one file each; none needs torch."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError, MissingExtraError

__all__ = ["FILES", "Runtime", "RuntimeName", "installed", "open_runtime"]

RuntimeName = Literal["onnx", "openvino"]
FILES: dict[RuntimeName, tuple[str, ...]] = {"onnx": ("model.onnx",), "openvino": ("model.xml", "model.bin")}
_PACKAGES: dict[RuntimeName, str] = {"onnx": "onnxruntime", "openvino": "openvino"}


class Runtime(Protocol):
    """A network that is loaded."""

    def run(self, images: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return raw embeddings x and their transforms z, one row for each image of (n, bands, size, size)."""


def installed(name: RuntimeName) -> bool:
    """Whether the package of a runtime is installed."""
    return find_spec(_PACKAGES[name]) is not None


def open_runtime(name: RuntimeName, folder: Path, *, threads: int | None = None) -> Runtime:
    """Read the model in a folder.

    threads: how many run it; by default one a core.
    """
    if name not in get_args(RuntimeName):
        raise InputError(f"runtime must be one of {', '.join(get_args(RuntimeName))}, got {name!r}")
    if not installed(name):
        raise MissingExtraError(f"a network exported to {name}", name)
    file = folder / FILES[name][0]
    if name == "onnx":
        from lookdown.networks.runtimes.onnx import OnnxRuntime

        return OnnxRuntime(file, threads=threads)
    from lookdown.networks.runtimes.openvino import OpenVinoRuntime

    return OpenVinoRuntime(file, threads=threads)
