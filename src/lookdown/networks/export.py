"""Export from torch to ONNX or OpenVINO, with preprocessing and the metric's transform; refused if it embeds otherwise.

The graph takes uint8 images (n, bands, size, size). It returns `embedding`, raw x, and `transformed`, z = factor' x; if
the metric normalises, x is put on the unit sphere first.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from lookdown.errors import ExportError, InputError
from lookdown.networks.embedded_chips import Embeddings
from lookdown.networks.embedder import Embedder
from lookdown.networks.exported_embedder import ExportDescription, ExportedEmbedder, write_export
from lookdown.networks.runtimes import FILES, RuntimeName
from lookdown.networks.trace import trace_apart

__all__ = ["LARGEST_DISTANCE", "Space", "export"]

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
        model = _converted(_as_onnx(embedder, space, Path(temporary)), runtime)
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


def _as_onnx(embedder: Embedder, space: Space, folder: Path) -> Path:
    file = folder / "model.onnx"
    trace_apart(embedder, torch.tensor(space.factor, dtype=torch.float32), file, normalize=space.normalize)
    return file


def _converted(onnx: Path, runtime: RuntimeName) -> dict[str, bytes]:
    """Return the files of a model for a runtime."""
    if runtime == "openvino":
        from lookdown.networks.runtimes.openvino import openvino

        openvino.save_model(openvino.convert_model(onnx), onnx.with_suffix(".xml"), compress_to_fp16=False)
    return {name: onnx.with_name(name).read_bytes() for name in FILES[runtime]}


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
    worst = max(_cosine_distances(ours, theirs).max() for ours, theirs in pairs)
    if not worst <= LARGEST_DISTANCE:
        raise ExportError(
            f"{folder} was not written: in {exported.description.runtime} the network embeds a chip at a cosine "
            f"distance of {worst:.1e} from torch, and {LARGEST_DISTANCE:g} is allowed; use another runtime, or torch"
        )
    return float(worst)


def _cosine_distances(first: NDArray[np.floating], second: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return 1 - cosine of rows, 0 where both are zero."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    both_zero = ~(a.any(axis=1) | b.any(axis=1))
    return np.where(both_zero, 0.0, 1 - (a * b).sum(axis=1) / np.maximum(lengths, np.finfo(np.float64).tiny))
