"""From torch to ONNX or OpenVINO, preprocessing and the metric's transform included; written only if it is the same.

The graph takes uint8 images (n, bands, size, size) and gives `embedding`, raw x, and `transformed`, z = factor' x, of
x on the unit sphere where the metric puts it there.
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
from lookdown.networks.embedder import Embedder
from lookdown.networks.embedding import Embeddings
from lookdown.networks.exported import About, ExportedEmbedder, write_export
from lookdown.networks.runtimes import FILES, RuntimeName
from lookdown.networks.tracing import trace_apart

__all__ = ["LARGEST_DISTANCE", "Space", "export"]

LARGEST_DISTANCE = 1e-4  # 1 - cosine of embeddings, and of transforms, to those of torch
_TIMED = 64  # images
_ALONE = 4  # chips that are also compared one by one
_PACKAGES = {"onnx": ("onnx", "onnxruntime"), "openvino": ("onnx", "openvino")}


@dataclass(frozen=True, slots=True)
class Space:
    """What a metric does to an embedding before distances are taken: factor' x, of x on the unit sphere or as it is."""

    factor: NDArray[np.float64]  # (d, r)
    normalize: bool
    name: str  # of the metric

    @classmethod
    def of(cls, transform: Callable[[NDArray[np.float64]], ArrayLike], dimension: int, name: str) -> Space:
        """Read it off a transform: unit vectors are on the sphere already, longer ones show whether that matters."""
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
    """Write an embedder for a runtime, in float32; refused if it embeds any of the chips otherwise than torch does."""
    folder = Path(path)
    if not len(chips):
        raise InputError("chips is empty: an export is compared with torch on some; give a few dozen")
    about = About(
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
    with tempfile.TemporaryDirectory(prefix="lookdown-export-") as place:
        model = _converted(_as_onnx(embedder, space, Path(place)), runtime)
        write_export(Path(place, "first"), about, model)
        made = ExportedEmbedder.load(Path(place, "first"))
        measured = {
            "worst cosine distance": _worst_distance(embedder, made, chips, space, folder),
            "chips compared": float(len(chips)),
            "times torch": times_as_fast(embedder, made, chips),
        }
    write_export(folder, replace(about, measured=measured), model, overwrite=overwrite)
    return ExportedEmbedder.load(folder)


def times_as_fast(peer: Embedder | ExportedEmbedder, made: ExportedEmbedder, chips: NDArray[np.uint8]) -> float:
    """Return images a second over those of a peer, both in turns."""
    some = np.resize(chips, (_TIMED, *chips.shape[1:]))

    def seconds(embedder: Embedder | ExportedEmbedder) -> float:
        begin = time.perf_counter()
        embedder.embed(some)
        return time.perf_counter() - begin

    seconds(peer), seconds(made)
    return statistics.median(seconds(peer) / seconds(made) for _ in range(3))


def _as_onnx(embedder: Embedder, space: Space, place: Path) -> Path:
    file = place / "model.onnx"
    trace_apart(embedder, torch.tensor(space.factor, dtype=torch.float32), file, normalize=space.normalize)
    return file


def _converted(onnx: Path, runtime: RuntimeName) -> dict[str, bytes]:
    """Return the files of a model for a runtime."""
    if runtime == "openvino":
        from lookdown.networks.openvino_guard import openvino

        openvino.save_model(openvino.convert_model(onnx), onnx.with_suffix(".xml"), compress_to_fp16=False)
    return {name: onnx.with_name(name).read_bytes() for name in FILES[runtime]}


def _worst_distance(
    embedder: Embedder, made: ExportedEmbedder, chips: NDArray[np.uint8], space: Space, folder: Path
) -> float:
    raw, alone = embedder.embed(chips), np.concatenate([made.embed(chip[None]) for chip in chips[:_ALONE]])
    pairs = (
        (raw, made.embed(chips)),
        (raw[:_ALONE], alone),  # a runtime may go another way for a single image, and has been wrong on one of them
        (space.of_embeddings(raw), made.embed_transformed(chips)),
    )
    worst = max(_cosine_distances(ours, theirs).max() for ours, theirs in pairs)
    if not worst <= LARGEST_DISTANCE:
        raise ExportError(
            f"{folder} was not written: in {made.about.runtime} the network embeds a chip at a cosine distance of "
            f"{worst:.1e} from torch, and {LARGEST_DISTANCE:g} is allowed; use another runtime, or go on with torch"
        )
    return float(worst)


def _cosine_distances(first: NDArray[np.floating], second: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return 1 - cosine of rows, 0 where both are zero."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    both_zero = ~(a.any(axis=1) | b.any(axis=1))
    return np.where(both_zero, 0.0, 1 - (a * b).sum(axis=1) / np.maximum(lengths, np.finfo(np.float64).tiny))
