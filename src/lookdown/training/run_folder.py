"""The folder of a run: what made it, how it went, and what came of it."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from lookdown import atomic
from lookdown.chips.manifest import Manifest
from lookdown.config import read_recipe, to_toml
from lookdown.errors import InputError, OutputError
from lookdown.training.recipe import Recipe

__all__ = [
    "MOST_CHECKPOINTS", "Checkpoint", "MetricInRun", "RunFolder", "TensorBoard", "data_fingerprint", "last_checkpoint",
    "write_checkpoint",
]  # fmt: skip

MARKER = "run.json"
MetricInRun = Literal["metric", "kinds"]  # folders: the ratio of differences, as in the paper, and the ratio of kinds
CHANGEABLE = ("stage1.learning_rate", "stage2.learning_rate", "optimizer.clip")  # while a run is under way
_PACKAGES = ("lookdown", "torch", "timm", "numpy", "scikit-learn", "lightning-fabric")
_CHECKPOINT = re.compile(r"epoch-(\d{5})\.json")
_KEPT = 2
MOST_CHECKPOINTS = _KEPT + 1  # on the disk, while one more is written


@dataclass(frozen=True, slots=True)
class RunFolder:
    """recipe.toml, run.json, metrics.jsonl, checkpoints/, and at the end embedder/, kinds/ and metric/."""

    path: Path
    recipe: Recipe
    data: str  # fingerprint of the manifest and its files
    trunk: str  # fingerprint of the trunk that training began with

    @classmethod
    def create(cls, path: Path, recipe: Recipe, data: str, trunk: str) -> RunFolder:
        """Begin a run in an empty or new folder; one that was killed while it began counts as empty."""
        origin = {"versions": _versions(), "python": platform.python_version(), "data": data, "trunk": trunk}
        with atomic.explained(path, "free the disk, or name another folder"):
            if path.exists() and not _is_free(path):
                advice = f", or go on with `lookdown train --resume {path}`" if (path / MARKER).exists() else ""
                raise OutputError(f"{path} exists; name another folder{advice}")
            path.mkdir(parents=True, exist_ok=True)
            (path / "recipe.toml").unlink(missing_ok=True)  # of a killed run: first, since what is left is free as well
            for file in path.iterdir():
                file.unlink()
            with atomic.replacing(path / MARKER) as temporary:  # before the recipe, and in place after it: see _is_free
                temporary.write_text(json.dumps(origin, indent=2) + "\n")
                atomic.write_file(path / "recipe.toml", to_toml(recipe))
        return cls(path, recipe, data, trunk)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open a run that was begun before."""
        try:
            origin = json.loads((path / MARKER).read_text())
            return cls(path, read_recipe(Recipe, path / "recipe.toml"), origin["data"], origin["trunk"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OutputError(f"{path} is not a run of `lookdown train`: {error}; name the folder of a run") from error

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints are."""
        return self.path / "checkpoints"

    @property
    def finished(self) -> bool:
        """Whether the run is finished; the metric is written last."""
        return (self.path / "metric" / "metric.json").is_file()

    def use_metric(self, name: MetricInRun) -> None:
        """Write which metric galleries of this run begin with."""
        self.write("metric_in_use", name + "\n")

    def changed(self, settings: Sequence[str]) -> RunFolder:
        """Return the run with other learning rates or another clip, `key=value` each."""
        for setting in settings:
            key = setting.partition("=")[0].strip()
            if key not in CHANGEABLE:
                raise InputError(
                    f"--set {setting}: only {', '.join(CHANGEABLE)} of a run can be changed after its start; start a "
                    f"new run with another {key}"
                )
        return replace(self, recipe=read_recipe(Recipe, self.path / "recipe.toml", settings))

    def keep_change(self, settings: Sequence[str], after: int) -> None:
        """Write the changed recipe, and into run.json what was changed after which epoch."""
        origin = json.loads((self.path / MARKER).read_text())
        origin["changes"] = [*origin.get("changes", []), {"after epoch": after, "set": list(settings)}]
        self.write(MARKER, json.dumps(origin, indent=2) + "\n")
        self.write("recipe.toml", to_toml(self.recipe))

    def refuse_small_disk(self, needed: int) -> None:
        """Raise OutputError at the start, rather than after an hour, if the disk is too small for the run."""
        used = sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())
        free = shutil.disk_usage(self.path).free
        if free + used < needed:
            raise OutputError(
                f"{self.path} needs about {needed / 1e6:.1f} MB for checkpoints and embedder, and the disk has "
                f"{free / 1e6:.1f} MB free; free the disk, then `lookdown train --resume {self.path}`"
            )

    def write(self, name: str, text: str) -> None:
        """Write a file of the run, whole or not at all."""
        with atomic.explained(self.path / name, self._advice):
            atomic.write_file(self.path / name, text)

    def log(self, record: dict[str, Any]) -> None:
        """Add a line to metrics.jsonl."""
        file = self.path / "metrics.jsonl"
        with atomic.explained(file, self._advice), file.open("a") as lines:
            lines.write(json.dumps(record) + "\n")

    def history(self) -> list[dict[str, Any]]:
        """Return the lines of metrics.jsonl; one that was cut short is left out."""
        file = self.path / "metrics.jsonl"
        records = []
        for line in file.read_text().splitlines() if file.is_file() else []:
            try:
                records.append(json.loads(line))
            except ValueError:
                break
        return records

    def forget_after(self, epoch: int) -> None:
        """Drop what was logged after an epoch, before the run goes on from there."""
        kept = [record for record in self.history() if record["epoch"] <= epoch]
        self.write("metrics.jsonl", "".join(json.dumps(record) + "\n" for record in kept))

    @property
    def _advice(self) -> str:
        return f"free the disk, then `lookdown train --resume {self.path}`"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All that a run needs to go on after some epochs."""

    epoch: int  # finished ones, over both stages
    tensors: dict[str, Tensor]
    state: dict[str, Any]


def write_checkpoint(folder: Path, epoch: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Write the state after `epoch` epochs, and remove all checkpoints but the last two.

    The JSON file is written last and holds a digest of the tensors, so a checkpoint that was cut short does not count.
    """
    advice = "free the disk, then `lookdown train --resume`; the checkpoint before it is still good"
    with atomic.explained(folder / f"epoch-{epoch:05d}", advice):
        folder.mkdir(parents=True, exist_ok=True)
        payload = save_tensors(dict(tensors))
        description = {"epoch": epoch, "state": dict(state), "sha256": hashlib.sha256(payload).hexdigest()}
        atomic.write_file(folder / f"epoch-{epoch:05d}.safetensors", payload)
        atomic.write_file(folder / f"epoch-{epoch:05d}.json", json.dumps(description) + "\n")
        for number in sorted(_epochs(folder))[:-_KEPT]:
            (folder / f"epoch-{number:05d}.json").unlink(missing_ok=True)
            (folder / f"epoch-{number:05d}.safetensors").unlink(missing_ok=True)


def last_checkpoint(folder: Path) -> Checkpoint | None:
    """Return the latest whole checkpoint, None where there is none; damaged ones are passed over."""
    for number in sorted(_epochs(folder), reverse=True):
        try:
            description = json.loads((folder / f"epoch-{number:05d}.json").read_text())
            payload = (folder / f"epoch-{number:05d}.safetensors").read_bytes()
            if description["sha256"] == hashlib.sha256(payload).hexdigest():
                return Checkpoint(int(description["epoch"]), load_tensors(payload), description["state"])
        except (OSError, ValueError, KeyError, TypeError, SafetensorError):
            continue
    return None


class TensorBoard:
    """Writes the records of metrics.jsonl to RUN/tensorboard as well; without the package it does nothing."""

    def __init__(self, folder: Path, *, after: int) -> None:
        """Begin, or go on after an epoch: points of later epochs are dropped."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            self._writer = None
            return
        self._writer = SummaryWriter(str(folder), purge_step=after + 1)

    def log(self, record: Mapping[str, float]) -> None:
        """Add the points of an epoch."""
        if self._writer is None:
            return
        with atomic.explained(self._writer.log_dir, "free the disk"):
            for name, value in record.items():
                if name != "epoch":
                    self._writer.add_scalar(name, value, int(record["epoch"]))
            self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()


def data_fingerprint(manifest: Manifest) -> str:
    """Return a digest of the chips: names, classes and roles, sizes and times of their files."""
    digest = hashlib.sha256()
    columns = ("id", "label", "role", "scene_group", "background")
    for row in zip(*(manifest.table[name].to_pylist() for name in columns), manifest.paths, strict=True):
        state = row[-1].stat()
        digest.update(repr((*row[:-1], state.st_size, state.st_mtime_ns)).encode())
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def _is_free(path: Path) -> bool:
    """Whether a run can begin in a folder: it is empty, or a run was killed in it before its marker was in place.

    A recipe without a temporary marker belongs to the user, and is not to be overwritten.
    """
    if not path.is_dir():
        return False
    names = {file.name for file in path.iterdir()}
    markers = {name for name in names if atomic.is_temporary(name) and name.startswith(f".{MARKER}.")}
    recipes = {name for name in names if atomic.is_temporary(name) and name.startswith(".recipe.toml.")}
    return names <= markers | recipes | ({"recipe.toml"} if markers else set())


def _epochs(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return [int(match[1]) for path in folder.iterdir() if (match := _CHECKPOINT.fullmatch(path.name))]
