"""Export from torch to ONNX or OpenVINO, with preprocessing and the metric's transform; refused if it embeds otherwise.

The graph takes uint8 images (n, bands, size, size). It returns `embedding`, raw x, and `transformed`, z = factor' x; if
the metric normalises, x is put on the unit sphere first.

torch's exporter imports much, writes to the terminal and to logs, and changes settings of torch. So it runs in a
process of its own, `python -m lookdown.networks.export`, which leaves only the file behind.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors.torch import load_file, save_file
from sklearn.metrics.pairwise import paired_cosine_distances
from torch import Tensor, nn

from lookdown.errors import ExportError, InputError
from lookdown.networks.embedder import Embedder
from lookdown.networks.embedding import Embeddings
from lookdown.networks.exported_embedder import ExportDescription, ExportedEmbedder, write_export
from lookdown.networks.layers import FixedProjection
from lookdown.networks.runtimes import FILES, RuntimeName
from lookdown.networks.stored_embedder import load_embedder

__all__ = ["LARGEST_DISTANCE", "Space", "export", "times_as_fast", "trace_apart"]

LARGEST_DISTANCE = 1e-4  # 1 - cosine of embeddings, and of transforms, to those of torch
_TIMED_IMAGES = 64
_SINGLE_CHIPS = 4  # chips that are also compared one by one
_PACKAGES = {"onnx": ("onnx", "onnxruntime"), "openvino": ("onnx", "openvino")}


@dataclass(frozen=True, slots=True)
class Space:
    """What a metric does to an embedding before it takes distances: factor' x, with x on the unit sphere or raw."""

    factor: NDArray[np.float64]  # (d, r)
    normalize: bool
    name: str  # of the metric

    @classmethod
    def of(cls, transform: Callable[[NDArray[np.float64]], ArrayLike], dimension: int, name: str) -> Space:
        """Derive it from a transform: unit vectors give the factor, vectors of length 2 show whether it normalises."""
        axes = np.eye(dimension)
        factor = np.asarray(transform(axes), np.float64)
        return cls(factor, bool(np.allclose(np.asarray(transform(2 * axes)), factor)), name)

    def of_embeddings(self, x: Embeddings) -> NDArray[np.float64]:
        """Return z."""
        wide = x.astype(np.float64)
        if self.normalize:
            wide /= np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return wide @ self.factor


def export(
    embedder: Embedder,
    path: str | Path,
    runtime: RuntimeName,
    chips: NDArray[np.uint8],
    space: Space,
    *,
    overwrite: bool = False,
) -> ExportedEmbedder:
    """Write an embedder for a runtime, in float32.

    chips: uint8 (n, bands, size, size), a few dozen. If any is not embedded as torch does, nothing is written.
    space: what the metric does to embeddings.
    overwrite: replace an export that is there.
    """
    folder = Path(path)
    if not len(chips):
        raise InputError("chips is empty, and an export is compared with torch on them; give a few dozen")
    description = ExportDescription(
        runtime=runtime,
        precision="fp32",
        settings=embedder.settings,
        source=embedder.fingerprint,
        fingerprint=embedder.fingerprint,
        transformed_by=space.name,
        width=space.factor.shape[1],
        measured={},
        made_with={package: version(package) for package in ("lookdown", "torch", "timm", *_PACKAGES[runtime])},
    )
    with tempfile.TemporaryDirectory(prefix="lookdown-export-") as temporary:
        model = _converted(embedder, space, runtime, Path(temporary))
        write_export(Path(temporary, "first"), description, model)
        exported = ExportedEmbedder.load(Path(temporary, "first"))
        measured = {
            "worst cosine distance": _worst_distance(embedder, exported, chips, space, folder),
            "chips compared": float(len(chips)),
            "times torch": times_as_fast(embedder, exported, chips),
        }
    write_export(folder, replace(description, measured=measured), model, overwrite=overwrite)
    return ExportedEmbedder.load(folder)


def times_as_fast(peer: Embedder | ExportedEmbedder, exported: ExportedEmbedder, chips: NDArray[np.uint8]) -> float:
    """Return images a second divided by those of a peer; the two are timed in turns."""
    images = np.resize(chips, (_TIMED_IMAGES, *chips.shape[1:]))

    def seconds(embedder: Embedder | ExportedEmbedder) -> float:
        begin = time.perf_counter()
        embedder.embed(images)
        return time.perf_counter() - begin

    seconds(peer), seconds(exported)
    return statistics.median(seconds(peer) / seconds(exported) for _ in range(3))


class Graph(nn.Module):
    """What is exported: an embedder, and what a metric does to its embeddings."""

    factor: Tensor

    def __init__(self, embedder: Embedder, factor: Tensor, *, normalize: bool) -> None:
        super().__init__()
        self.embedder = embedder
        self.normalize = normalize
        self.register_buffer("factor", factor)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return raw embeddings and their transforms."""
        x = self.embedder(images)
        length = torch.linalg.vector_norm(x, dim=1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)
        return x, (x / length if self.normalize else x) @ self.factor


def trace_apart(embedder: Embedder, space: Space, file: Path) -> None:
    """Write the graph of an embedder to a file, in another process."""
    with tempfile.TemporaryDirectory(prefix="lookdown-tracing-") as folder:
        embedder.save(Path(folder, "embedder"))
        save_file({"factor": torch.tensor(space.factor, dtype=torch.float32)}, Path(folder, "space.safetensors"))
        words = [sys.executable, "-W", "ignore", "-m", __name__, folder, str(file), str(int(space.normalize))]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or [f"it ended with {done.returncode}"]
        raise ExportError(
            f"{embedder.settings.backbone} cannot be exported by torch {version('torch')}: {lines[-1].strip()}; use "
            "torch, or train another backbone"
        )


def main() -> None:
    """Trace the network that the parent process has put into a folder."""
    folder, file, normalize = Path(sys.argv[1]), Path(sys.argv[2]), bool(int(sys.argv[3]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter; a user can do nothing about them
            factor = load_file(folder / "space.safetensors")["factor"]
            _trace(load_embedder(folder / "embedder"), factor, file, normalize=normalize)
    except Exception as error:  # torch raises a dozen kinds of error for what it cannot trace
        sys.exit((str(error).strip() or type(error).__name__).splitlines()[0])


def _trace(embedder: Embedder, factor: Tensor, file: Path, *, normalize: bool) -> None:
    settings = embedder.settings
    if isinstance(embedder.head, FixedProjection):  # OpenVINO 2026.4 computes its subtraction wrongly in batches
        embedder.head = embedder.head.as_linear()
    program = torch.onnx.export(
        Graph(embedder.float(), factor, normalize=normalize).eval(),
        (torch.zeros((2, settings.bands, settings.size, settings.size), dtype=torch.uint8),),
        dynamo=True,
        dynamic_shapes={"images": {0: torch.export.Dim("images")}},
        input_names=["images"],
        output_names=["embedding", "transformed"],
        verbose=False,
    )
    assert program is not None
    program.save(file, external_data=False)


def _converted(embedder: Embedder, space: Space, runtime: RuntimeName, folder: Path) -> dict[str, bytes]:
    """Return the files of the model for a runtime."""
    onnx = folder / "model.onnx"
    trace_apart(embedder, space, onnx)
    if runtime == "openvino":
        from lookdown.networks.runtimes.openvino import openvino

        openvino.save_model(openvino.convert_model(onnx), folder / "model.xml", compress_to_fp16=False)
    return {name: (folder / name).read_bytes() for name in FILES[runtime]}


def _worst_distance(
    embedder: Embedder, exported: ExportedEmbedder, chips: NDArray[np.uint8], space: Space, folder: Path
) -> float:
    raw = embedder.embed(chips)
    single = np.concatenate([exported.embed(chip[None]) for chip in chips[:_SINGLE_CHIPS]])
    pairs = (
        (raw, exported.embed(chips)),
        (raw[:_SINGLE_CHIPS], single),  # a runtime may use other code for a single image, which has been wrong before
        (space.of_embeddings(raw), exported.embed_transformed(chips)),
    )
    worst = max(paired_cosine_distances(ours.astype(np.float64), theirs).max() for ours, theirs in pairs)
    if not worst <= LARGEST_DISTANCE:
        raise ExportError(
            f"{folder} was not written: in {exported.description.runtime} the network embeds a chip at a cosine "
            f"distance of {worst:.1e} from torch, and {LARGEST_DISTANCE:g} is allowed; use another runtime, or torch"
        )
    return float(worst)


if __name__ == "__main__":
    main()
