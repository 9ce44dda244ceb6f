"""Metrics on disk: a folder with `metric.json` and `metric.safetensors`; data, never code."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from lookdown.atomic import finish_replacement, readable_folder, write_folder
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
FILES = {"metric.json", "metric.safetensors"}
KINDS: dict[str, type[Metric]] = {
    kind.__name__: kind for kind in (GaussianLikelihoodRatio, MixtureLikelihoodRatio, Cosine, Euclidean)
}


def save_metric(metric: Metric, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted metric to the folder `path`, whole or not at all; an older one is lost at no moment."""
    folder = Path(path)
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
    }
    description["sha256"] = _fingerprint(description, payload)
    try:
        finish_replacement(folder, known=FILES)
        _refuse_to_replace(folder, overwrite=overwrite)
        text = json.dumps(description, indent=2, default=_plain) + "\n"
        write_folder(folder, {"metric.safetensors": payload, "metric.json": text.encode()})
    except OSError as error:
        raise StoredMetricError(
            f"{folder} could not be written: {error}; free the disk or name another place"
        ) from error


def load_metric(path: str | Path) -> Metric:
    """Read a metric that `save` wrote; nothing in the folder is executed, and a damaged file is refused by name."""
    folder = readable_folder(Path(path))
    description = _read_description(folder / "metric.json")
    tensors = folder / "metric.safetensors"
    try:
        payload = tensors.read_bytes()
        arrays = load_tensors(payload)
    except (OSError, SafetensorError) as error:
        raise StoredMetricError(f"{tensors} cannot be read: {error}; copy the metric again or save it anew") from error
    recorded = description.pop("sha256", None)
    if recorded != _fingerprint(description, payload):
        raise StoredMetricError(
            f"{folder} is not as it was saved: metric.json or metric.safetensors was changed or damaged; copy the "
            "whole folder again"
        )
    metric = KINDS[description["kind"]](**description["parameters"])
    state = {**description["numbers"], **arrays}
    calibration = {
        name.removeprefix("calibration."): state.pop(name) for name in list(state) if name.startswith("calibration.")
    }
    metric._restore(state)
    metric.calibration_ = Calibration(**calibration) if calibration else None
    return metric


def _read_description(file: Path) -> dict[str, Any]:
    try:
        description = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StoredMetricError(
            f"{file.parent} holds no metric ({file.name} is missing); give a folder that metric.save wrote"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise StoredMetricError(f"{file} cannot be read: {error}; copy the metric again or save it anew") from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise StoredMetricError(f"{file} does not describe a metric; give a folder that metric.save wrote")
    if description.get("version") != VERSION:
        raise StoredMetricError(
            f"{file} has format version {description.get('version')}, this lookdown reads version {VERSION}; "
            "save the metric anew with this version"
        )
    if description.get("kind") not in list(KINDS):
        raise StoredMetricError(f"{file} names the kind {description.get('kind')!r}; known are {', '.join(KINDS)}")
    return description


def _fingerprint(description: dict[str, Any], payload: bytes) -> str:
    """Return a digest of everything that is stored, so that a change of either file shows."""
    text = json.dumps(description, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode() + payload).hexdigest()


def _plain(value: Any) -> Any:
    """Turn a numpy scalar, which parameters may be, into a Python one."""
    if isinstance(value, np.generic):
        return value.item()
    raise StoredMetricError(
        f"a parameter of type {type(value).__name__} cannot be stored; use plain numbers and strings"
    )


def _refuse_to_replace(folder: Path, *, overwrite: bool) -> None:
    """Only a folder that holds a metric and nothing else may be replaced, and only when asked."""
    if not folder.exists():
        return
    if not overwrite:
        raise StoredMetricError(f"{folder} exists; pass overwrite=True to replace it; nothing was written")
    if not folder.is_dir() or {path.name for path in folder.iterdir()} != FILES:
        raise StoredMetricError(
            f"{folder} is not a metric, or holds other files as well; nothing was written, name another folder"
        )
