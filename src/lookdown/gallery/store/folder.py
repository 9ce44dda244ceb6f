"""The folder of a gallery: what it holds, which lookdown can read it, and who may write to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from lookdown.errors import GalleryBusyError, GalleryError, InputError
from lookdown.gallery.scale.bucket import Bucket, table_address
from lookdown.gallery.store.table_place import TablePlace
from lookdown.gallery.whole_file import write_whole
from lookdown.networks.exports import FOLDER as EXPORTED

__all__ = ["GalleryFolder"]

FORMAT = "lookdown-gallery"
VERSION = 1
MARKER = "gallery.json"
_REST = re.compile(
    r"\.(embedder|index|(onnx|openvino)(-int8)?|\d+-[a-z]+)\.(?!old$)\w+|\..*\.part"
)  # as those who write beside and rename call it
PARTS = {"embedder", EXPORTED, "metrics", "records.lance", "index", "skipped.csv", "writer.lock", "writer.txt", MARKER}


@dataclass(frozen=True, slots=True)
class GalleryFolder:
    """A gallery on disk: `gallery.json` is written last, so that what has none was never finished."""

    path: Path
    dimension: int
    fingerprint: str | None  # of the embedder; None where the vectors come from elsewhere
    place: TablePlace  # of the table

    @classmethod
    def open(cls, path: Path) -> GalleryFolder:
        """Read what the folder says of itself."""
        file = path / MARKER
        try:
            told: Any = json.loads(file.read_text())
        except FileNotFoundError as error:
            if not path.is_dir():
                raise GalleryError(f"{path} does not exist; make a gallery with `lookdown index`") from error
            raise GalleryError(
                f"{path} is no gallery ({MARKER} is missing); give a folder that `lookdown index` has written, or run "
                "that again if it was stopped in its first moments"
            ) from error
        except (OSError, ValueError) as error:
            raise GalleryError(f"{file} cannot be read: {error}; restore it from a copy, or index anew") from error
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise GalleryError(f"{file} does not describe a gallery; give a folder that `lookdown index` has written")
        if told.get("version") != VERSION:
            raise GalleryError(
                f"{path} has format version {told.get('version')}, made by lookdown {told.get('lookdown')}; this one "
                f"reads version {VERSION}: use that lookdown, or index the images anew"
            )
        try:
            table = told.get("table")
            place = TablePlace(path) if table is None else Bucket(path, table["address"], table["identity"])
            return cls(path, int(told["dimension"]), told["embedder"], place)
        except (InputError, KeyError, TypeError, ValueError) as error:
            raise GalleryError(f"{file} is damaged ({error!s}); restore it from a copy, or index anew") from error

    def write(self) -> None:
        """Finish the gallery: from now on it can be opened."""
        told = {
            "format": FORMAT,
            "version": VERSION,
            "lookdown": version("lookdown"),
            "dimension": self.dimension,
            "embedder": self.fingerprint,
        }
        if self.place.address is not None:
            told["table"] = {"address": self.place.address, "identity": self.place.identity}
        write_whole(self.path / MARKER, json.dumps(told, indent=2) + "\n")

    @classmethod
    def begin(cls, path: Path, dimension: int, fingerprint: str | None, table: str | None = None) -> GalleryFolder:
        """Make a folder for a gallery, with its table at an address if one is given; it becomes one by `write`."""
        place = TablePlace(path) if table is None else Bucket(path, table_address(table), uuid.uuid4().hex)
        folder = cls(path, dimension, fingerprint, place)
        try:
            folder.refuse_finished()
            cls.refuse_foreign(path)
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GalleryError(f"{path} cannot be made: {error.strerror}; name another place") from error
        return folder

    def refuse_finished(self) -> None:
        """Refuse to make a gallery where one is."""
        if (self.path / MARKER).exists():
            raise GalleryError(f"{self.path} is a gallery already; open it to add to it, or name another folder")

    def refuse_other_table(self, table: str) -> None:
        """Refuse to open a gallery as if its table were elsewhere."""
        if table_address(table) != self.place.address:
            raise GalleryError(
                f"{self.path} has its table at {self.place.uri}, and it stays there; leave the address out, or name "
                "another folder for a new gallery"
            )

    @staticmethod
    def refuse_foreign(path: Path) -> None:
        """Refuse to make a gallery where something else lies; what an unfinished one left is in nobody's way."""
        if path.exists() and not path.is_dir():
            raise GalleryError(f"{path} is a file; name a folder for the gallery")
        here = sorted(path.iterdir()) if path.is_dir() else []
        if strange := [part.name for part in here if part.name not in PARTS and not _is_rest(part.name)]:
            raise GalleryError(f"{path} holds other things ({', '.join(strange[:3])}); name another folder")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the one writer for a while; the system lets go of the lock of a process that dies."""
        file = self.path / "writer.lock"
        lock = FileLock(file)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise GalleryBusyError(
                f"{self.path} is being written to by {self._writer()}; wait until it is done, then do it again"
            ) from error
        except OSError as error:
            raise GalleryError(f"{self.path} cannot be written: {error.strerror}; check that you may write") from error
        try:
            with suppress(OSError):
                (self.path / "writer.txt").write_text(f"process {os.getpid()}\n")
            self._clear()
            with self.place.writing(file):
                yield
        finally:
            lock.release()

    def _clear(self) -> None:
        """Remove what a writer that was killed left half written; nobody else writes now."""
        metrics, table = self.path / "metrics", self.path / "records.lance"
        places = self.path, metrics, self.path / EXPORTED
        rests = [path for folder in places for path in folder.glob(".*") if _is_rest(path.name)]
        rests += [path for path in table.glob("*/*") if path.name.startswith(".tmp") or "#" in path.name]
        rests += [
            path for path in metrics.glob("*-*") if path.is_dir() and not path.with_name(f"{path.name}.json").exists()
        ]
        for path in rests:
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _writer(self) -> str:
        try:
            return (self.path / "writer.txt").read_text().strip() or "another process"
        except OSError:
            return "another process"


def _is_rest(name: str) -> bool:
    return _REST.fullmatch(name) is not None
