"""The metrics of a gallery, each kept beside the others; one of them is in use, and changing it is one rename."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lookdown.errors import GalleryError
from lookdown.gallery.whole_file import write_whole
from lookdown.metrics import Metric, load_metric

__all__ = ["MetricShelf", "ShelvedMetric"]

CURRENT = "current"
FORGOTTEN = ".forgotten"  # what the note of a metric that was dropped ends in
_NAME = re.compile(r"(\d+)-[a-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelvedMetric:
    """What is known of a metric without loading it."""

    name: str  # its number, and how it came about: 2-adapted
    about: str  # in words
    created: str  # ISO 8601
    calibrated: bool
    base: str | None = None  # the metric that it was estimated from
    taught_by: Sequence[str] = ()  # chips whose labels went into it, which therefore say nothing of its rates


class MetricShelf:
    """The folder of metrics."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def empty(cls, folder: Path) -> MetricShelf:
        """Return a shelf without metrics; those of a gallery that was never finished go."""
        for path in folder.glob("*"):
            if _NAME.match(path.name):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        return cls(folder)

    def add(
        self, metric: Metric, kind: str, about: str, *, base: str | None = None, taught_by: Sequence[str] = ()
    ) -> ShelvedMetric:
        """Keep a metric under a new name; it is not in use yet."""
        shelved = ShelvedMetric(
            name=f"{self._next_number()}-{kind}",
            about=about,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            calibrated=metric.calibration_ is not None,
            base=base,
            taught_by=tuple(taught_by),
        )
        metric.save(self.folder / shelved.name)
        write_whole(self._note(shelved.name), json.dumps(asdict(shelved), indent=2) + "\n")
        return shelved

    def use(self, name: str) -> None:
        """Put a metric of the shelf into use."""
        self.about(name)
        write_whole(self.folder / CURRENT, name + "\n")

    def forget(self, name: str) -> None:
        """Take a metric off the shelf; the first, which the others are estimated from, and the one in use stay.

        Its note is renamed first, which is what a kill can fall before or after: a folder without a note is cleared by
        the next writer. The note stays under the other name, so that its number is never given again.
        """
        self.about(name)
        if name == self.names()[0]:
            raise GalleryError(f"{name} is the metric that all others are estimated from; forget another")
        if name == self.current:
            raise GalleryError(f"{name} is in use; put another metric into use first, then forget this one")
        note = self._note(name)
        try:
            note.replace(note.with_suffix(FORGOTTEN))
        except OSError as error:
            raise GalleryError(f"{note} cannot be removed: {error.strerror}; check that you may write") from error
        shutil.rmtree(self.folder / name, ignore_errors=True)

    @property
    def current(self) -> str:
        """The name of the metric in use."""
        file = self.folder / CURRENT
        again = f"choose a metric again with `lookdown gallery metrics {self.folder.parent} --use NAME`"
        try:
            name = file.read_text().strip()
        except (OSError, ValueError) as error:
            raise GalleryError(f"{file} cannot be read: {error!s}; {again}") from error
        if name not in self.names():
            raise GalleryError(f"{file} names the metric {name!r}, which is not there; {again}")
        return name

    def names(self) -> list[str]:
        """Return the metrics, oldest first."""
        found = [path.stem for path in self.folder.glob("*.json") if _NAME.fullmatch(path.stem)]
        return sorted(found, key=lambda name: int(name.split("-")[0]))

    def about(self, name: str) -> ShelvedMetric:
        """Return what is known of a metric."""
        if name not in self.names():
            raise GalleryError(f"{self.folder.parent} has no metric {name!r}; it has {', '.join(self.names())}")
        try:
            values: dict[str, Any] = json.loads(self._note(name).read_text())
            return ShelvedMetric(**values | {"taught_by": tuple(values["taught_by"])})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise GalleryError(
                f"{self._note(name)} is damaged ({error}); use another metric: {', '.join(self.names())}"
            ) from error

    def load(self, name: str) -> Metric:
        """Read a metric of the shelf."""
        self.about(name)
        return load_metric(self.folder / name)

    def _note(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _next_number(self) -> int:
        """Count on from every folder, so that one whose note was never written is not in the way."""
        numbers = [int(match[1]) for path in self.folder.glob("*") if (match := _NAME.match(path.name))]
        return max(numbers, default=0) + 1
