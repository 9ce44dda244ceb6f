"""The folder that chips are prepared into: it records what made it, so that the same work is continued or skipped."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lookdown.atomic import explained, finish_replacement, replace_folder, replacing, write_file
from lookdown.chips.manifest import Manifest
from lookdown.chips.sources import SkippedItem
from lookdown.errors import OutputError

__all__ = ["MARKER", "OutputFolder", "write_chip"]

MARKER = "prepare.json"


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """A folder that chips are being prepared into."""

    path: Path  # where the result goes
    folder: Path  # where to write: `path`, or a folder beside it that replaces it at the end
    fingerprint: str
    complete: bool  # the same work was finished before: there is nothing to do

    @classmethod
    def open(cls, path: Path, fingerprint: str, *, overwrite: bool = False) -> OutputFolder:
        """Start new work, continue the same work, or refuse a folder that holds something else.

        fingerprint: a digest of all that decides the result.
        overwrite: replace a folder of other work. A folder without our marker is never touched.
        """
        path = path.absolute()
        fresh, old = (path.with_name(f".{path.name}.{suffix}") for suffix in ("new", "old"))
        if _is_ours(old):  # a replacement was killed between its renames
            finish_replacement(path)
        if not _is_ours(path):
            raise OutputError(f"{path} is not empty and was not made by lookdown prepare; name another folder")
        record = _record(path)
        is_other = bool(record) and record.get("fingerprint") != fingerprint
        if is_other and not overwrite:
            raise OutputError(
                f"{path} holds chips of other data or other options; name another folder, or pass `overwrite=True`"
            )
        for beside in (fresh, old) if is_other else ():
            if not _is_ours(beside):
                raise OutputError(f"{beside} is in the way and was not made by lookdown prepare; move it away")
        folder = fresh if is_other else path
        output = cls(path, folder, fingerprint, complete=not is_other and bool(record.get("complete")))
        if not output.complete:
            with explained(folder, "name another folder"):
                if _record(folder).get("fingerprint", fingerprint) != fingerprint:
                    shutil.rmtree(folder)
                folder.mkdir(parents=True, exist_ok=True)
                output._mark({"complete": False})
        return output

    def write_tables(self, rows: list[dict[str, Any]], skipped: list[SkippedItem], *, root: Path | None = None) -> None:
        """Write split.csv, skipped.csv and, last, the manifest of chips below `root`, or below this folder."""
        _write_csv(self.folder / "split.csv", ("id", "role"), ((row["id"], row["role"]) for row in rows))
        _write_csv(self.folder / "skipped.csv", ("item", "reason"), ((item.item, item.reason) for item in skipped))
        Manifest.of_rows(rows, root or self.folder).write(self.folder / "manifest.parquet")

    def finish(self, record: dict[str, Any]) -> None:
        """Mark the work as complete; a folder that is to be overwritten is replaced now."""
        self._mark({"complete": True, **record})
        if self.folder != self.path:
            replace_folder(self.path, self.folder)

    def _mark(self, record: dict[str, Any]) -> None:
        content = json.dumps({"fingerprint": self.fingerprint, **record}, indent=2) + "\n"
        write_file(self.folder / MARKER, content)


def write_chip(pixels: NDArray[np.uint8], folder: Path, name: str) -> str:
    """Write a chip, as JPEG if it has one or three bands, else as an array; return its path below `folder`."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:80]
    if safe != name:  # two names may become one
        safe += "-" + hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    is_picture = pixels.shape[2] in (1, 3)
    path = folder / "chips" / f"{safe}{'.jpg' if is_picture else '.npy'}"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, flush=False) as temporary, temporary.open("wb") as file:
        if is_picture:
            picture = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
            picture.save(file, "JPEG", quality=95, subsampling=0)
        else:
            np.save(file, pixels)
    return path.relative_to(folder).as_posix()


def _record(folder: Path) -> dict[str, Any]:
    """Return what the marker of a folder says, nothing if it has none."""
    try:
        record = json.loads((folder / MARKER).read_text())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _is_ours(folder: Path) -> bool:
    """Whether a folder is absent, empty, or carries our marker, so that it may be written or removed."""
    return not folder.exists() or (folder.is_dir() and (bool(_record(folder)) or not any(folder.iterdir())))


def _write_csv(file: Path, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows(rows)
    write_file(file, text.getvalue().encode("utf-8", "surrogateescape"))
