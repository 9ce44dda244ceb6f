"""The metrics of a gallery, in one folder. One of them is in use; `current` names it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lookdown.atomic import explained, write_file
from lookdown.errors import GalleryError
from lookdown.metrics import Metric, load_metric
from lookdown.suggestions import did_you_mean

__all__ = ["MetricInfo", "MetricRegistry"]

CURRENT = "current"
FORGOTTEN = ".forgotten"  # the suffix that replaces .json when a metric is dropped
_NAME = re.compile(r"(\d+)-[a-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInfo:
    """What is known of a metric without loading it."""

    name: str  # its number, and how it came about: 2-adapted
    about: str  # in words
    created: str  # ISO 8601
    calibrated: bool
    base: str | None = None  # the metric that it was estimated from
    taught_by: Sequence[str] = ()  # chips whose labels it was estimated from; they cannot calibrate it


class MetricRegistry:
    """The folder of metrics. A metric `2-adapted` is a folder of that name and a file `2-adapted.json`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def create(cls, folder: Path) -> MetricRegistry:
        """Return a registry without metrics; those that an unfinished gallery left are removed."""
        for path in folder.glob("*"):
            if _NAME.match(path.name):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        return cls(folder)

    def add(
        self, metric: Metric, kind: str, about: str, *, base: str | None = None, taught_by: Sequence[str] = ()
    ) -> MetricInfo:
        """Store a metric under a new name, its number and its `kind`; it is not in use yet."""
        info = MetricInfo(
            name=f"{self._next_number()}-{kind}",
            about=about,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            calibrated=metric.calibration_ is not None,
            base=base,
            taught_by=tuple(taught_by),
        )
        metric.save(self.folder / info.name)
        self._write(self._info_file(info.name), json.dumps(asdict(info), indent=2))
        return info

    def use(self, name: str) -> None:
        """Put a metric into use."""
        self.info(name)
        self._write(self.folder / CURRENT, name)

    def forget(self, name: str) -> None:
        """Drop a metric; not the first, which the others are estimated from, and not the one in use.

        The JSON file is renamed first: the next writer removes a folder without one. It stays under its other name, so
        that the number is never used again.
        """
        self.info(name)
        if name == self.names()[0]:
            raise GalleryError(f"{name} is the metric that all others are estimated from; forget another")
        if name == self.current:
            raise GalleryError(f"{name} is in use; put another metric into use first, then forget this one")
        file = self._info_file(name)
        try:
            file.replace(file.with_suffix(FORGOTTEN))
        except OSError as error:
            raise GalleryError(f"{file} cannot be removed: {error.strerror}; check that you may write") from error
        shutil.rmtree(self.folder / name, ignore_errors=True)

    @property
    def current(self) -> str:
        """The name of the metric in use."""
        file = self.folder / CURRENT
        next_step = f"choose a metric again with `lookdown gallery metrics {self.folder.parent} --use NAME`"
        try:
            name = file.read_text().strip()
        except (OSError, ValueError) as error:
            raise GalleryError(f"{file} cannot be read: {error!s}; {next_step}") from error
        if name not in self.names():
            raise GalleryError(f"{file} names the metric {name!r}, which is not there; {next_step}")
        return name

    def names(self) -> list[str]:
        """Return the names of the metrics, oldest first."""
        names = [path.stem for path in self.folder.glob("*.json") if _NAME.fullmatch(path.stem)]
        return sorted(names, key=lambda name: int(name.split("-")[0]))

    def info(self, name: str) -> MetricInfo:
        """Return what is known of a metric."""
        if name not in self.names():
            near = did_you_mean(name, self.names(), otherwise=f"it has {', '.join(self.names())}")
            raise GalleryError(f"{self.folder.parent} has no metric {name!r}; {near}")
        file = self._info_file(name)
        try:
            values: dict[str, Any] = json.loads(file.read_text())
            return MetricInfo(**values | {"taught_by": tuple(values["taught_by"])})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise GalleryError(f"{file} is damaged ({error}); use another metric: {', '.join(self.names())}") from error

    def load(self, name: str) -> Metric:
        """Read a metric."""
        self.info(name)
        return load_metric(self.folder / name)

    def _info_file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _next_number(self) -> int:
        """Count folders too: a killed writer may have left one without its JSON file."""
        numbers = [int(match[1]) for path in self.folder.glob("*") if (match := _NAME.match(path.name))]
        return max(numbers, default=0) + 1

    @staticmethod
    def _write(file: Path, text: str) -> None:
        with explained(file):
            write_file(file, text + "\n")
