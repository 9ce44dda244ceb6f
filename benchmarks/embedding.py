"""Chips a second in each runtime against torch, and against OpenVINO without anything of ours around it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookdown import Cosine, Embedder
from lookdown.chips.manifest import Manifest
from lookdown.chips.reader import ImageReader
from lookdown.lab.synthetic.world import World, draw_world
from lookdown.networks import ExportedEmbedder
from lookdown.networks.export import Space, export
from lookdown.networks.quantize import quantize
from lookdown.networks.runtimes import RuntimeName
from lookdown.networks.runtimes.openvino import openvino
from sidebyside import QUICK, Row, compare, report

CHIPS = 64 if QUICK else 512
BATCH = 8  # images in a request to the bare runtime; the fastest of 1, 4, 8, 16 and 64
# Of the time that torch takes. In 8-bit integers onnxruntime may be slower than in float32, so that has no target:
# it is reported, and `index`, `search` and `serve` take what was fastest when it was made.
LIMITS = {"openvino": 1 / 2, "openvino-int8": 1 / 4, "onnx": 1.0, "onnx-int8": None}


def chips() -> NDArray[np.uint8]:
    """Return chips of the synthetic world at the size of the default network."""
    with tempfile.TemporaryDirectory() as folder:
        draw_world(World(kinds="ships", chips=max(10, CHIPS // 16), size=128), Path(folder))
        return ImageReader(Manifest.read(folder).paths[:CHIPS], bands=3, size=112).read_all()[0]


def exports(embedder: Embedder, images: NDArray[np.uint8], folder: Path) -> dict[str, ExportedEmbedder]:
    """Return the network in both runtimes and precisions; what int8 costs is measured elsewhere."""
    space = Space.of(Cosine().fit(embedder.embed(images[:8])).transform, embedder.settings.dimension, "cosine")
    exported: dict[str, ExportedEmbedder] = {}
    runtimes: tuple[RuntimeName, ...] = ("openvino", "onnx")
    for runtime in runtimes:
        exported[runtime] = export(embedder, folder / runtime, runtime, images[:64], space)
        small = quantize(exported[runtime], folder / f"{runtime}-int8", images, lambda embedder: 0.0).export
        assert small is not None
        exported[f"{runtime}-int8"] = small
    return exported


class Bare:
    """OpenVINO as its own documents use it for throughput."""

    def __init__(self, exported: ExportedEmbedder) -> None:
        options = {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_PRECISION_HINT": "f32"}
        self._queue = openvino.AsyncInferQueue(
            openvino.Core().compile_model(exported.folder / "model.xml", "CPU", options)
        )

    def run(self, images: NDArray[np.uint8]) -> None:
        """Put all images through, and drop what comes out."""
        for begin in range(0, len(images), BATCH):
            self._queue.start_async({0: images[begin : begin + BATCH]})
        self._queue.wait_all()


def main() -> None:
    """Measure with all cores: so are networks run."""
    images = chips()
    embedder = Embedder("tf_efficientnet_lite0").eval()
    with tempfile.TemporaryDirectory() as folder:
        exported = exports(embedder, images, Path(folder))
        rows = [_against_torch(exported[name], embedder, images, limit) for name, limit in LIMITS.items()]
        rows += [_against_bare(exported[name], images) for name in ("openvino", "openvino-int8")]
    print("EfficientNet-Lite0 at 112 pixels, chips as uint8 in memory\n")
    report("Embedding", rows, threads=None)


def _against_torch(
    exported: ExportedEmbedder, embedder: Embedder, images: NDArray[np.uint8], limit: float | None
) -> Row:
    what = f"{len(images)} chips by {exported.description.name}"
    work = (lambda: exported.embed(images)), (lambda: embedder.embed(images))
    return compare(what, work[0], "torch, eager", work[1], limit=limit, turns=5)


def _against_bare(exported: ExportedEmbedder, images: NDArray[np.uint8]) -> Row:
    bare = Bare(exported)
    what = f"{len(images)} chips by {exported.description.name}"
    work = (lambda: exported.embed(images)), (lambda: bare.run(images))
    return compare(what, work[0], f"bare {exported.description.name}", work[1], limit=1.1, turns=5)


if __name__ == "__main__":
    main()
