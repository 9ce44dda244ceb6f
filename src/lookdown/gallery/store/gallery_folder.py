"""The folder of a gallery: the files it holds, the versions of its format, and the lock of its one writer."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from lookdown.atomic import explained, is_temporary, write_file
from lookdown.errors import GalleryBusyError, GalleryError, InputError
from lookdown.gallery.scale.bucket import BucketLocation, table_address
from lookdown.gallery.store.table import TableLocation
from lookdown.networks.network_folder import FOLDER as EXPORTED

__all__ = ["GalleryFolder"]

FORMAT = "lookdown-gallery"
VERSION = 1
MARKER = "gallery.json"
NAMES = {MARKER, EXPORTED, "embedder", "metrics", "records.lance", "index", "skipped.csv", "writer.lock", "writer.txt"}


@dataclass(frozen=True, slots=True)
class GalleryFolder:
    """A gallery on disk. `gallery.json` is written last: a folder without it was never finished."""

    path: Path
    dimension: int
    fingerprint: str | None  # of the embedder; None where the vectors come from elsewhere
    location: TableLocation  # of the table

    @classmethod
    def open(cls, path: Path) -> GalleryFolder:
        """Read `gallery.json`."""
        file = path / MARKER
        try:
            description: Any = json.loads(file.read_text())
        except FileNotFoundError as error:
            if not path.is_dir():
                raise GalleryError(f"{path} does not exist; make a gallery with `lookdown index`") from error
            raise GalleryError(
                f"{path} is no gallery ({MARKER} is missing); give a folder that `lookdown index` has written, or run "
                "that again if it was stopped early"
            ) from error
        except (OSError, ValueError) as error:
            raise GalleryError(f"{file} cannot be read: {error}; restore it from a copy, or index anew") from error
        if not isinstance(description, dict) or description.get("format") != FORMAT:
            raise GalleryError(f"{file} does not describe a gallery; give a folder that `lookdown index` has written")
        if description.get("version") != VERSION:
            raise GalleryError(
                f"{path} has format version {description.get('version')}, made by lookdown "
                f"{description.get('lookdown')}; this one reads version {VERSION}: use that lookdown, or index the "
                "images anew"
            )
        try:
            table = description.get("table")
            location = TableLocation(path)
            if table is not None:
                location = BucketLocation(path, table["address"], table["identity"])
            return cls(path, int(description["dimension"]), description["embedder"], location)
        except (InputError, KeyError, TypeError, ValueError) as error:
            raise GalleryError(f"{file} is damaged ({error!s}); restore it from a copy, or index anew") from error

    @classmethod
    def begin(cls, path: Path, dimension: int, fingerprint: str | None, table: str | None = None) -> GalleryFolder:
        """Create the folder of a new gallery; it becomes a gallery by `write`.

        table: the address of the table, s3://bucket/name, if it is not to be in the folder.
        """
        location = TableLocation(path)
        if table is not None:
            location = BucketLocation(path, table_address(table), uuid.uuid4().hex)
        folder = cls(path, dimension, fingerprint, location)
        try:
            folder.refuse_finished()
            cls.refuse_foreign(path)
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GalleryError(f"{path} cannot be made: {error.strerror}; name another folder") from error
        return folder

    def write(self) -> None:
        """Write `gallery.json`: from now on the gallery can be opened."""
        description: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "lookdown": version("lookdown"),
            "dimension": self.dimension,
            "embedder": self.fingerprint,
        }
        if self.location.address is not None:
            description["table"] = {"address": self.location.address, "identity": self.location.identity}
        with explained(self.path / MARKER):
            write_file(self.path / MARKER, json.dumps(description, indent=2) + "\n")

    def refuse_finished(self) -> None:
        """Raise if there is a gallery already."""
        if (self.path / MARKER).exists():
            raise GalleryError(f"{self.path} is a gallery already; open it to add to it, or name another folder")

    def refuse_other_table(self, table: str) -> None:
        """Raise if the table is not at this address."""
        if table_address(table) != self.location.address:
            raise GalleryError(
                f"{self.path} has its table at {self.location.uri}, and it stays there; omit the address, or name "
                "another folder for a new gallery"
            )

    @staticmethod
    def refuse_foreign(path: Path) -> None:
        """Raise if the folder holds anything but what an unfinished gallery leaves."""
        if path.exists() and not path.is_dir():
            raise GalleryError(f"{path} is a file; name a folder for the gallery")
        names = sorted(child.name for child in path.iterdir()) if path.is_dir() else []
        if foreign := [name for name in names if name not in NAMES and not is_temporary(name)]:
            raise GalleryError(f"{path} holds other things ({', '.join(foreign[:3])}); name another folder")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock of the gallery. The system releases the lock of a process that dies."""
        file = self.path / "writer.lock"
        lock = FileLock(file)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise GalleryBusyError(
                f"{self.path} is being written to by {self._lock_holder()}; wait until it is done, then do it again"
            ) from error
        except OSError as error:
            raise GalleryError(f"{self.path} cannot be written: {error.strerror}; check that you may write") from error
        try:
            with suppress(OSError):
                (self.path / "writer.txt").write_text(f"process {os.getpid()}\n")
            self._remove_leftovers()
            with self.location.writing(file):
                yield
        finally:
            lock.release()

    def _remove_leftovers(self) -> None:
        """Remove what a killed writer left unfinished. We hold the lock, so nobody is writing it."""
        metrics = self.path / "metrics"
        folders = self.path, metrics, self.path / EXPORTED, self.path / "index"
        leftovers = [path for folder in folders for path in folder.glob(".*") if is_temporary(path.name)]
        leftovers += [
            path for path in self.path.glob("records.lance/*/*") if path.name.startswith(".tmp") or "#" in path.name
        ]
        leftovers += [
            path for path in metrics.glob("*-*") if path.is_dir() and not path.with_name(f"{path.name}.json").exists()
        ]
        for path in leftovers:
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _lock_holder(self) -> str:
        with suppress(OSError):
            return (self.path / "writer.txt").read_text().strip() or "another process"
        return "another process"
