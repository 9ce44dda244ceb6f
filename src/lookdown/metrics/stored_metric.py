"""Metrics on disk: a folder with `metric.json` and `metric.safetensors`, which are data and never executed."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from lookdown.atomic import StoredKind
from lookdown.errors import StoredMetricError
from lookdown.metrics.calibration import Calibration
from lookdown.metrics.fixed_metrics import Cosine, Euclidean
from lookdown.metrics.gaussian import GaussianLikelihoodRatio
from lookdown.metrics.kinds import KindLikelihoodRatio
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
    kind.__name__: kind
    for kind in (GaussianLikelihoodRatio, MixtureLikelihoodRatio, KindLikelihoodRatio, Cosine, Euclidean)
}


def save_metric(metric: Metric, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted metric to the folder `path`, whole or not at all."""
    arrays: dict[str, NDArray[Any]] = {}
    description = {"lookdown": version("lookdown"), **_described(metric, arrays)}
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
    _refuse_unknown(path, description.get("kind"))
    files = FOLDER.read(path, description, ["metric.safetensors"])
    try:
        arrays = load_tensors(files["metric.safetensors"])
    except SafetensorError as error:
        raise StoredMetricError(f"{path} cannot be read: {error}; {FOLDER.again}") from error
    return _restored(path, description, arrays)


def _described(metric: Metric, arrays: dict[str, NDArray[Any]], prefix: str = "") -> dict[str, Any]:
    """Return a metric, and the metrics in it, as plain values; arrays are added to `arrays`, by prefixed names."""
    state = dict(metric._state())
    if metric.calibration_ is not None:
        state |= {f"calibration.{name}": value for name, value in asdict(metric.calibration_).items()}
    numbers, metrics = {}, {}
    for name, value in state.items():
        if isinstance(value, Metric):
            metrics[name] = _described(value, arrays, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray):
            arrays[prefix + name] = np.ascontiguousarray(value)
        else:
            numbers[name] = value
    return {"kind": type(metric).__name__, "parameters": metric.get_params(), "numbers": numbers, "metrics": metrics}


def _restored(path: str | Path, description: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Metric:
    _refuse_unknown(path, description.get("kind"))
    metric = KINDS[description["kind"]](**description["parameters"])
    inner = {}
    for name, described in description["metrics"].items():
        own = {key.removeprefix(f"{name}."): arrays.pop(key) for key in list(arrays) if key.startswith(f"{name}.")}
        inner[name] = _restored(path, described, own)
    state = {**description["numbers"], **arrays, **inner}
    calibration = {
        name.removeprefix("calibration."): state.pop(name) for name in list(state) if name.startswith("calibration.")
    }
    metric._restore(state)
    metric.calibration_ = Calibration(**calibration) if calibration else None
    return metric


def _refuse_unknown(path: str | Path, kind: Any) -> None:
    if kind not in list(KINDS):
        raise StoredMetricError(f"{path} names the unknown metric {kind!r}; {did_you_mean(kind, KINDS)}")


def _plain(value: Any) -> Any:
    """Return a numpy scalar as a Python one."""
    if isinstance(value, np.generic):
        return value.item()
    raise StoredMetricError(
        f"a parameter of type {type(value).__name__} cannot be stored; use plain numbers and strings"
    )
