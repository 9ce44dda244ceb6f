"""Metrics on disk: a folder with `metric.json` and `metric.safetensors`, which are data and never executed."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from lookdown.atomic import StoredKind
from lookdown.errors import StoredMetricError
from lookdown.metrics.calibration import Calibration
from lookdown.metrics.fixed_metrics import Cosine, Euclidean
from lookdown.metrics.gaussian import GaussianLikelihoodRatio
from lookdown.metrics.metric import Metric
from lookdown.metrics.mixture import MixtureLikelihoodRatio
from lookdown.suggestions import did_you_mean

__all__ = ["load_metric", "save_metric"]

FOLDER = StoredKind(
    name="a metric",
    marker="metric.json",
    files=("metric.json", "metric.safetensors"),
    format="lookdown-metric",
    version=1,
    written_by="metric.save",
    again="copy the whole folder again, or save the metric anew",
    error=StoredMetricError,
)
KINDS: dict[str, type[Metric]] = {
    kind.__name__: kind for kind in (GaussianLikelihoodRatio, MixtureLikelihoodRatio, Cosine, Euclidean)
}


def save_metric(metric: Metric, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted metric to the folder `path`, whole or not at all."""
    state = dict(metric._state())
    if metric.calibration_ is not None:
        state |= {f"calibration.{name}": value for name, value in asdict(metric.calibration_).items()}
    arrays = {name: np.ascontiguousarray(value) for name, value in state.items() if isinstance(value, np.ndarray)}
    description = {
        "lookdown": version("lookdown"),
        "kind": type(metric).__name__,
        "parameters": metric.get_params(),
        "numbers": {name: value for name, value in state.items() if name not in arrays},
    }
    plain = json.loads(json.dumps(description, default=_plain))
    FOLDER.write(path, plain, {"metric.safetensors": save_tensors(arrays)}, overwrite=overwrite)


def load_metric(path: str | Path) -> Metric:
    """Read a metric that `save` wrote; nothing in the folder is executed, and a damaged file is refused by name.

    path: the folder.

    >>> import lookdown, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lookdown.Cosine().fit([[1.0, 0.0]]).save(f"{folder}/cosine")
    ...     lookdown.load_metric(f"{folder}/cosine")
    Cosine()
    """
    description = FOLDER.describe(path)
    if description.get("kind") not in list(KINDS):
        kind = description.get("kind")
        raise StoredMetricError(f"{path} names the unknown metric {kind!r}; {did_you_mean(kind, KINDS)}")
    files = FOLDER.read(path, description, ["metric.safetensors"])
    try:
        arrays = load_tensors(files["metric.safetensors"])
    except SafetensorError as error:
        raise StoredMetricError(f"{path} cannot be read: {error}; {FOLDER.again}") from error
    metric = KINDS[description["kind"]](**description["parameters"])
    state = {**description["numbers"], **arrays}
    calibration = {
        name.removeprefix("calibration."): state.pop(name) for name in list(state) if name.startswith("calibration.")
    }
    metric._restore(state)
    metric.calibration_ = Calibration(**calibration) if calibration else None
    return metric


def _plain(value: Any) -> Any:
    """Return a numpy scalar as a Python one."""
    if isinstance(value, np.generic):
        return value.item()
    raise StoredMetricError(
        f"a parameter of type {type(value).__name__} cannot be stored; use plain numbers and strings"
    )
