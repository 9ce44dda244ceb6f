"""From float32 to 8-bit integers by nncf, ranges measured on real chips; kept only if retrieval hardly suffers."""

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
from lookdown.networks.exported import ExportedEmbedder, write_export
from lookdown.networks.exporting import times_as_fast
from lookdown.networks.runtimes import FILES, RuntimeName

__all__ = ["LARGEST_DROP", "Quantized", "quantize"]

LARGEST_DROP = 0.5  # mAP in percent
_RANGES = 300  # chips that ranges are measured on, as nncf's own default


@dataclass(frozen=True, slots=True)
class Quantized:
    """How well the network finds before and after, mAP in percent, and the export if it was kept."""

    before: float
    after: float
    export: ExportedEmbedder | None

    def __str__(self) -> str:
        kept = "int8 is kept" if self.export is not None else f"more than {LARGEST_DROP} is lost, so float32 is kept"
        return f"mAP {self.before:.2f} in float32, {self.after:.2f} in int8; {kept}"


def quantize(
    made: ExportedEmbedder,
    folder: Path,
    chips: NDArray[np.uint8],
    judge: Callable[[ExportedEmbedder], float],
    *,
    overwrite: bool = False,
) -> Quantized:
    """Write an export in int8, if `judge`, an mAP in percent on other chips, falls by no more than `LARGEST_DROP`."""
    if len(chips) < 2:
        raise InputError("chips has fewer than two images: ranges are measured on some hundreds; give those")
    about = replace(
        made.about, precision="int8", measured={}, made_with={**made.about.made_with, "nncf": version("nncf")}
    )
    with tempfile.TemporaryDirectory(prefix="lookdown-int8-") as place:
        model = _quantized(made, chips[:: max(1, len(chips) // _RANGES)][:_RANGES], Path(place))
        write_export(Path(place, "first"), about, model)
        small = ExportedEmbedder.load(Path(place, "first"))
        before, after = judge(made), judge(small)
        if not before - after <= LARGEST_DROP:
            return Quantized(before, after, None)
        measured = {
            "mAP in float32": before,
            "mAP": after,
            "times torch": made.about.times_torch * times_as_fast(made, small, chips),
        }
    write_export(folder, replace(about, measured=measured), model, overwrite=overwrite)
    return Quantized(before, after, ExportedEmbedder.load(folder))


def _quantized(made: ExportedEmbedder, chips: NDArray[np.uint8], place: Path) -> dict[str, bytes]:
    with _quiet():
        from lookdown.networks import openvino_guard  # noqa: F401  # before nncf, which would report to its maker
        import nncf  # isort: skip

        model = _read(made.about.runtime, made.folder)
        name = "images" if made.about.runtime == "onnx" else 0
        dataset = nncf.Dataset([{name: chips[row : row + 1]} for row in range(len(chips))])
        found = nncf.quantize(model, dataset, preset=nncf.QuantizationPreset.MIXED, subset_size=len(chips))
        _save(made.about.runtime, found, place)
    return {name: (place / name).read_bytes() for name in FILES[made.about.runtime]}


def _read(runtime: RuntimeName, folder: Path) -> Any:
    if runtime == "onnx":
        import onnx

        return onnx.load(folder / "model.onnx")
    from lookdown.networks.openvino_guard import openvino

    return openvino.Core().read_model(folder / "model.xml")


def _save(runtime: RuntimeName, model: Any, place: Path) -> None:
    if runtime == "onnx":
        import onnx

        onnx.save(model, place / "model.onnx")
    else:
        from lookdown.networks.openvino_guard import openvino

        openvino.save_model(model, place / "model.xml", compress_to_fp16=False)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep nncf's progress and remarks to itself; ours is what a user reads."""
    logger = logging.getLogger("nncf")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.setLevel(level)
