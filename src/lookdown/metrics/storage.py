"""Metrics on disk: a folder with `metric.json` and `metric.safetensors`; data, never code."""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from lookdown.errors import StoredMetricError
from lookdown.metrics.calibration import Calibration
from lookdown.metrics.cosine import Cosine
from lookdown.metrics.euclidean import Euclidean
from lookdown.metrics.gaussian import GaussianLikelihoodRatio
from lookdown.metrics.metric import Metric
from lookdown.metrics.mixture import MixtureLikelihoodRatio

__all__ = ["load_metric", "save_metric"]

FORMAT = "lookdown-metric"
VERSION = 1
KINDS: dict[str, type[Metric]] = {
    kind.__name__: kind for kind in (GaussianLikelihoodRatio, MixtureLikelihoodRatio, Cosine, Euclidean)
}


def save_metric(metric: Metric, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted metric to the folder `path`: beside it first, then renamed, so that it is whole or absent."""
    folder = Path(path)
    if folder.exists() and not (overwrite and _is_metric(folder)):
        reason = "is not a metric" if overwrite else "exists; pass overwrite=True to replace it"
        raise StoredMetricError(f"{folder} {reason}; nothing was written")
    state = dict(metric._state())
    if metric.calibration_ is not None:
        state |= {f"calibration.{name}": value for name, value in asdict(metric.calibration_).items()}
    arrays = {name: np.ascontiguousarray(value) for name, value in state.items() if isinstance(value, np.ndarray)}
    payload = save_tensors(arrays)
    description = {
        "format": FORMAT,
        "version": VERSION,
        "lookdown": version("lookdown"),
        "kind": type(metric).__name__,
        "parameters": metric.get_params(),
        "numbers": {name: value for name, value in state.items() if name not in arrays},
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as beside:
            fresh, old = Path(beside, "fresh"), Path(beside, "old")
            fresh.mkdir()
            (fresh / "metric.safetensors").write_bytes(payload)
            (fresh / "metric.json").write_text(json.dumps(description, indent=2) + "\n")
            if folder.exists():
                folder.rename(old)
            fresh.rename(folder)
    except OSError as error:
        raise StoredMetricError(
            f"{folder} could not be written: {error}; free the disk or name another place"
        ) from error


def load_metric(path: str | Path) -> Metric:
    """Read a metric that `save` wrote; nothing in the folder is executed, and a damaged file is refused by name."""
    folder = Path(path)
    description = _read_description(folder / "metric.json")
    tensors = folder / "metric.safetensors"
    try:
        payload = tensors.read_bytes()
        arrays = load_tensors(payload)
    except (OSError, SafetensorError) as error:
        raise StoredMetricError(f"{tensors} cannot be read: {error}; copy the metric again or save it anew") from error
    if hashlib.sha256(payload).hexdigest() != description.get("sha256"):
        raise StoredMetricError(f"{tensors} is not the file that metric.json describes; copy the whole folder again")
    try:
        metric = KINDS[description["kind"]](**description["parameters"])
        state = {**description["numbers"], **arrays}
        calibration = {
            name.removeprefix("calibration."): state.pop(name)
            for name in list(state)
            if name.startswith("calibration.")
        }
        metric._restore(state)
        metric.calibration_ = Calibration(**calibration) if calibration else None
    except (KeyError, TypeError, ValueError) as error:
        raise StoredMetricError(f"{folder / 'metric.json'} is incomplete: {error!r}; save the metric anew") from error
    return metric


def _read_description(file: Path) -> dict[str, Any]:
    try:
        description = json.loads(file.read_text())
    except FileNotFoundError as error:
        raise StoredMetricError(
            f"{file.parent} holds no metric ({file.name} is missing); give a folder that metric.save wrote"
        ) from error
    except (OSError, ValueError) as error:
        raise StoredMetricError(f"{file} cannot be read: {error}; copy the metric again or save it anew") from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise StoredMetricError(f"{file} does not describe a metric; give a folder that metric.save wrote")
    if description.get("version") != VERSION:
        raise StoredMetricError(
            f"{file} has format version {description.get('version')}, this lookdown reads version {VERSION}; "
            "save the metric anew with this version"
        )
    if description.get("kind") not in KINDS:
        raise StoredMetricError(f"{file} names the kind {description.get('kind')!r}; known are {', '.join(KINDS)}")
    return description


def _is_metric(folder: Path) -> bool:
    return (folder / "metric.json").is_file() and (folder / "metric.safetensors").is_file()
