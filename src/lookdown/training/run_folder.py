"""The folder of a run: what made it, how it went, and what came of it."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lookdown.chips.manifest import Manifest
from lookdown.config import read_recipe, to_toml
from lookdown.errors import InputError, OutputError
from lookdown.training.recipe import Recipe

__all__ = ["RunFolder", "data_fingerprint"]

MARKER = "run.json"
CHANGEABLE = ("stage1.learning_rate", "stage2.learning_rate", "optimizer.clip")  # while a run is under way
_PACKAGES = ("lookdown", "torch", "timm", "numpy", "scikit-learn", "lightning-fabric")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """recipe.toml, run.json, metrics.jsonl, checkpoints/, and at the end embedder/ and metric/."""

    path: Path
    recipe: Recipe
    data: str  # fingerprint of the manifest and its files
    trunk: str  # fingerprint of the trunk that training began with

    @classmethod
    def create(cls, path: Path, recipe: Recipe, data: str, trunk: str) -> RunFolder:
        """Begin a run in an empty or new folder; one that was killed while it began counts as empty."""
        made_by = {"versions": _versions(), "python": platform.python_version(), "data": data, "trunk": trunk}
        try:
            if path.exists() and not _is_free(path):
                going_on = f", or go on with `lookdown train --resume {path}`" if (path / MARKER).exists() else ""
                raise OutputError(f"{path} is there already; name another folder{going_on}")
            path.mkdir(parents=True, exist_ok=True)
            _part(path / MARKER).write_text(json.dumps(made_by, indent=2) + "\n")
            _write(path / "recipe.toml", to_toml(recipe))
            _part(path / MARKER).rename(path / MARKER)
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error}; free the disk or name another folder") from error
        return cls(path, recipe, data, trunk)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open a run that was begun before."""
        try:
            made_by = json.loads((path / MARKER).read_text())
            return cls(path, read_recipe(Recipe, path / "recipe.toml"), made_by["data"], made_by["trunk"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OutputError(f"{path} is no run of `lookdown train`: {error}; name the folder of a run") from error

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints are."""
        return self.path / "checkpoints"

    @property
    def finished(self) -> bool:
        """Whether the run has come to its end; the metric is written last."""
        return (self.path / "metric" / "metric.json").is_file()

    def changed(self, settings: Sequence[str]) -> RunFolder:
        """Return the run with other learning rates or another clip, `key=value` each: with these it can go on."""
        for setting in settings:
            key = setting.partition("=")[0].strip()
            if key not in CHANGEABLE:
                raise InputError(
                    f"--set {setting}: of a run that was begun, only {', '.join(CHANGEABLE)} can be changed; begin a "
                    f"new run with another {key}"
                )
        return replace(self, recipe=read_recipe(Recipe, self.path / "recipe.toml", settings))

    def keep_change(self, settings: Sequence[str], after: int) -> None:
        """Write the recipe as it is from here on, and into run.json what was changed after which epoch."""
        made_by = json.loads((self.path / MARKER).read_text())
        made_by["changes"] = [*made_by.get("changes", []), {"after epoch": after, "set": list(settings)}]
        self.write(MARKER, json.dumps(made_by, indent=2) + "\n")
        self.write("recipe.toml", to_toml(self.recipe))

    def refuse_small_disk(self, needed: int) -> None:
        """Say at once, and not after an hour, that the disk cannot hold what the run will write."""
        there = sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())
        free = shutil.disk_usage(self.path).free
        if free + there < needed:
            raise OutputError(
                f"{self.path} needs about {needed / 1e6:.1f} MB for checkpoints and embedder, and the disk has "
                f"{free / 1e6:.1f} MB free; free the disk, then `lookdown train --resume {self.path}`"
            )

    def write(self, name: str, text: str) -> None:
        """Write a file of the run, whole or not at all."""
        try:
            _write(self.path / name, text)
        except OSError as error:
            raise OutputError(self._full(name, error)) from error

    def log(self, record: dict[str, Any]) -> None:
        """Add a line to metrics.jsonl."""
        try:
            with (self.path / "metrics.jsonl").open("a") as lines:
                lines.write(json.dumps(record) + "\n")
        except OSError as error:
            raise OutputError(self._full("metrics.jsonl", error)) from error

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
        """Drop what was logged after an epoch: the run goes on from there."""
        kept = [record for record in self.history() if record["epoch"] <= epoch]
        self.write("metrics.jsonl", "".join(json.dumps(record) + "\n" for record in kept))

    def _full(self, name: str, error: OSError) -> str:
        return (
            f"{self.path / name} cannot be written: {error}; free the disk, then `lookdown train --resume {self.path}`"
        )


def data_fingerprint(manifest: Manifest) -> str:
    """Return a digest of the chips and what is said of them: names, sizes and times of the files, classes, roles."""
    digest = hashlib.sha256()
    columns = ("id", "label", "role", "scene_group", "background")
    for row in zip(*(manifest.table[name].to_pylist() for name in columns), manifest.paths, strict=True):
        state = row[-1].stat()
        digest.update(repr((*row[:-1], state.st_size, state.st_mtime_ns)).encode())
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _is_free(path: Path) -> bool:
    """Whether a run can begin in what is there: an empty folder, or one in which another was killed as it began.

    That one has not yet renamed its marker. A recipe without one is somebody's own, and not to be written over.
    """
    if not path.is_dir():
        return False
    left = {file.name for file in path.iterdir()} - {".recipe.toml.part"}
    return left <= {"recipe.toml", f".{MARKER}.part"} and left != {"recipe.toml"}


def _write(file: Path, text: str) -> None:
    _part(file).write_text(text)
    _part(file).rename(file)


def _part(file: Path) -> Path:
    return file.with_name(f".{file.name}.part")
