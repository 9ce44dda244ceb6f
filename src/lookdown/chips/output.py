"""An output folder that knows what made it: resumed when it is the same work, refused when it is not."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lookdown.chips.annotations import Skipped
from lookdown.chips.cutting import Chip
from lookdown.chips.manifest import Manifest
from lookdown.errors import OutputError

__all__ = ["MARKER", "OutputFolder", "write_chip"]

MARKER = "prepare.json"


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """A folder under work; `folder` is where to write, which on an overwrite is beside the final `path`."""

    path: Path
    folder: Path
    fingerprint: str
    complete: bool  # the same work was finished before: there is nothing to do

    @classmethod
    def open(cls, path: Path, fingerprint: str, *, overwrite: bool = False) -> OutputFolder:
        """Start, resume or refuse, by what is there."""
        path = path.absolute()
        folder, complete = path, False
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            made_by = _record(path)
            if made_by is None:
                raise OutputError(f"{path} is not empty and was not made by lookdown prepare; name another folder")
            if made_by.get("fingerprint") == fingerprint:
                complete = bool(made_by.get("complete"))
            elif overwrite:
                folder = path.with_name(f".{path.name}.new")
                if folder.exists() and _record(folder) is None and any(folder.iterdir()):
                    raise OutputError(f"{folder} is in the way and was not made by lookdown prepare; move it away")
            else:
                raise OutputError(
                    f"{path} holds chips of other data or other options; name another folder, or pass --overwrite"
                )
        output = cls(path, folder, fingerprint, complete)
        if not complete:
            output._begin()
        return output

    def write_tables(self, rows: list[dict[str, Any]], skipped: list[Skipped], *, root: Path | None = None) -> None:
        """Write split.csv and skipped.csv, then the manifest of chips below `root`, else below this folder."""
        _write_csv(self.folder / "split.csv", ("id", "role"), ((row["id"], row["role"]) for row in rows))
        _write_csv(self.folder / "skipped.csv", ("item", "reason"), ((item.item, item.reason) for item in skipped))
        Manifest.of_rows(rows, root or self.folder).write(self.folder / "manifest.parquet")

    def finish(self, record: dict[str, Any]) -> None:
        """Mark the work as done; on an overwrite, put it in the place of the old folder."""
        self._mark({"complete": True, **record})
        if self.folder != self.path:
            old = self.path.with_name(f".{self.path.name}.old")
            _remove(old)
            self.path.rename(old)
            self.folder.rename(self.path)
            _remove(old)

    def _begin(self) -> None:
        try:
            made_by = _record(self.folder)
            if made_by is not None and made_by.get("fingerprint") != self.fingerprint:
                _remove(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            self._mark({"complete": False})
        except OSError as error:
            raise OutputError(f"{self.folder} cannot be written: {error}; name another folder") from error

    def _mark(self, record: dict[str, Any]) -> None:
        beside = self.folder / f".{MARKER}.part"
        beside.write_text(json.dumps({"fingerprint": self.fingerprint, **record}, indent=2) + "\n")
        beside.rename(self.folder / MARKER)


def _record(folder: Path) -> dict[str, Any] | None:
    try:
        record = json.loads((folder / MARKER).read_text())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def _remove(folder: Path) -> None:
    """Remove a folder that carries our marker, or that is empty, and no other."""
    if folder.is_dir() and (_record(folder) is not None or not any(folder.iterdir())):
        shutil.rmtree(folder)


def write_chip(pixels: Chip, folder: Path, name: str) -> str:
    """Write a chip: JPEG for three bands or one, else the array itself; beside first, then renamed."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:80]
    if safe != name:  # two names may become one
        safe += "-" + hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    picture = pixels.shape[2] in (1, 3)
    path = folder / "chips" / f"{safe}{'.jpg' if picture else '.npy'}"
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.stem}.part")
    with beside.open("wb") as file:
        if picture:
            Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(
                file, "JPEG", quality=95, subsampling=0
            )
        else:
            np.save(file, pixels)
    beside.rename(path)
    return path.relative_to(folder).as_posix()


def _write_csv(file: Path, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    with file.open("w", newline="", encoding="utf-8", errors="surrogateescape") as lines:
        writer = csv.writer(lines)
        writer.writerow(header)
        writer.writerows(rows)
