"""Quantization from float32 to 8-bit integers by nncf; the result is kept only if retrieval hardly suffers."""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.networks.export import times_as_fast
from lookdown.networks.exported_embedder import ExportedEmbedder, write_export
from lookdown.networks.runtimes import FILES

__all__ = ["LARGEST_DROP", "QuantizationReport", "quantize"]

LARGEST_DROP = 0.5  # percent of mAP
_RANGE_CHIPS = 300  # chips on which ranges are measured, as nncf's own default


@dataclass(frozen=True, slots=True)
class QuantizationReport:
    """mAP in percent before and after, and the export if it was kept."""

    before: float
    after: float
    export: ExportedEmbedder | None

    def __str__(self) -> str:
        kept = "int8 is kept" if self.export is not None else f"more than {LARGEST_DROP} is lost, so float32 is kept"
        return f"mAP {self.before:.2f} in float32, {self.after:.2f} in int8; {kept}"


def quantize(
    exported: ExportedEmbedder,
    folder: Path,
    chips: NDArray[np.uint8],
    judge: Callable[[ExportedEmbedder], float],
    *,
    overwrite: bool = False,
) -> QuantizationReport:
    """Write an export in int8, if its mAP falls by no more than `LARGEST_DROP`.

    chips: uint8 (n, bands, size, size), some hundreds, on which ranges are measured.
    judge: returns the mAP of an embedder in percent, on other chips.
    overwrite: replace an export that is there.
    """
    if len(chips) < 2:
        raise InputError("chips has fewer than two images, and ranges are measured on them; give some hundreds")
    made_with = {**exported.description.made_with, "nncf": version("nncf")}
    description = replace(exported.description, precision="int8", measured={}, made_with=made_with)
    with tempfile.TemporaryDirectory(prefix="lookdown-int8-") as temporary:
        step = max(1, len(chips) // _RANGE_CHIPS)
        model = _quantized(exported, chips[::step][:_RANGE_CHIPS], Path(temporary))
        write_export(Path(temporary, "first"), description, model)
        small = ExportedEmbedder.load(Path(temporary, "first"))
        before, after = judge(exported), judge(small)
        if not before - after <= LARGEST_DROP:
            return QuantizationReport(before, after, None)
        measured = {
            "mAP in float32": before,
            "mAP": after,
            "times torch": exported.description.times_torch * times_as_fast(exported, small, chips),
        }
    write_export(folder, replace(description, measured=measured), model, overwrite=overwrite)
    return QuantizationReport(before, after, ExportedEmbedder.load(folder))


def _quantized(exported: ExportedEmbedder, chips: NDArray[np.uint8], folder: Path) -> dict[str, bytes]:
    with _quiet():
        from lookdown.networks.runtimes.openvino import openvino  # before nncf, which would report to its maker
        import nncf  # isort: skip

        def in_8_bits(model: Any, images: str | int) -> Any:
            dataset = nncf.Dataset([{images: chips[row : row + 1]} for row in range(len(chips))])
            return nncf.quantize(model, dataset, preset=nncf.QuantizationPreset.MIXED, subset_size=len(chips))

        if exported.description.runtime == "onnx":
            import onnx

            onnx.save(in_8_bits(onnx.load(exported.folder / "model.onnx"), "images"), folder / "model.onnx")
        else:
            model = in_8_bits(openvino.Core().read_model(exported.folder / "model.xml"), 0)
            openvino.save_model(model, folder / "model.xml", compress_to_fp16=False)
    return {name: (folder / name).read_bytes() for name in FILES[exported.description.runtime]}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence the progress bars and messages of nncf; lookdown shows its own."""
    logger = logging.getLogger("nncf")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.setLevel(level)
