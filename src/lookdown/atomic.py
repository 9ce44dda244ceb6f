"""Files and folders that are written whole: a reader, or a process that is killed, sees the old content or the new.

Everything is written under a temporary name beside its target, flushed to the disk and renamed. Errors of the disk are
raised as OSError; `explained` turns them into a sentence for the user. Metrics, embedders and exports lie on disk as
folders of a `StoredKind`: data with a JSON description and a digest, of which nothing is ever executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lookdown.errors import LookdownError, OutputError

__all__ = [
    "StoredKind",
    "copy_folder",
    "explained",
    "finish_replacement",
    "is_temporary",
    "readable_folder",
    "replace_folder",
    "replacing",
    "write_file",
    "write_folder",
]

_TEMPORARY = re.compile(r"\..+\.(part|new)")
_LONGEST_NAME = 100  # characters of the target's name that its temporary name repeats


def write_file(file: Path, content: str | bytes, *, flush: bool = True) -> None:
    """Write a file, or replace the one that is there."""
    with replacing(file, flush=flush) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(file: Path, *, flush: bool = True) -> Iterator[Path]:
    """Yield a temporary path to write to; at the end it becomes `file`, and after an error it is removed.

    flush: wait until the content is on the disk. Without it a power failure may leave an empty file: enough for files
        that are made by the thousand and listed in one that is flushed.
    """
    writer = f"{os.getpid()}-{threading.get_ident()}"  # a process may write one file from two threads
    temporary = file.with_name(f".{file.name[:_LONGEST_NAME]}.{writer}.part")
    try:
        yield temporary
        if flush:
            _flush(temporary)
        temporary.replace(file)
        if flush:
            _flush_names(file.parent)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of a few files, or replace one with the same files.

    A killed write never loses the old folder: it may stand as `.<name>.old`, where `readable_folder` finds it, and the
    next write puts it back.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.", suffix=".new") as parent:
        fresh = Path(parent, "fresh")
        fresh.mkdir()
        for name, content in files.items():
            (fresh / name).write_bytes(content)
            _flush(fresh / name)
        replace_folder(folder, fresh, known=files)


def replace_folder(folder: Path, fresh: Path, *, known: Collection[str] | None = None) -> None:
    """Put the folder `fresh` in the place of `folder`.

    known: names that the old folder may hold; if it holds others it is kept as `.<name>.old`. Without it, the old
        folder is removed whatever it holds.
    """
    finish_replacement(folder, known=known)
    _flush_names(fresh)
    if folder.exists():
        folder.rename(_old(folder))
    try:
        fresh.rename(folder)
    except OSError:
        finish_replacement(folder, known=known)
        raise
    _flush_names(folder.parent)
    finish_replacement(folder, known=known)


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder to a place where there is none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.", suffix=".new") as parent:
        fresh = Path(parent, "fresh")
        shutil.copytree(readable_folder(source), fresh)
        for file in fresh.rglob("*"):
            if file.is_file():
                _flush(file)
        _flush_names(fresh)
        fresh.rename(target)
        _flush_names(target.parent)


def readable_folder(folder: Path) -> Path:
    """Return where to read a folder: under its name, or as `.<name>.old` if a write was killed between two renames."""
    return _old(folder) if not folder.exists() and _old(folder).exists() else folder


def finish_replacement(folder: Path, *, known: Collection[str] | None = None) -> None:
    """Finish what a killed write began: the old folder gets its name back, or goes if a new one has taken it."""
    old = _old(folder)
    if not old.exists():
        return
    if not folder.exists():
        old.rename(folder)
    elif known is None or {path.name for path in old.iterdir()} <= set(known):
        shutil.rmtree(old)


def is_temporary(name: str) -> bool:
    """Whether a name is one that an unfinished write leaves behind; nobody needs what it holds."""
    return _TEMPORARY.fullmatch(name) is not None


@contextmanager
def explained(path: str | Path, next_step: str = "free the disk, or name another path") -> Iterator[None]:
    """Turn an OSError into an OutputError that names the path, the reason and what to do."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}; {next_step}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKind:
    """One kind of folder: what it is called in errors, what it may hold, and which version this lookdown reads.

    name: the noun with its article, `a metric`.
    marker: the JSON file with the description.
    files: every file that such a folder may hold, the marker included.
    required: keys of the description with their types, besides those that every kind has.
    written_by: what writes such a folder, for errors.
    again: the next step if a folder is damaged.
    error: the class of every error that is raised.
    """

    name: str
    marker: str
    files: Collection[str]
    format: str
    version: int
    written_by: str
    again: str
    error: type[LookdownError]
    required: Mapping[str, type] = field(default_factory=dict)

    def is_at(self, path: str | Path) -> bool:
        """Whether a folder is of this kind, by its marker."""
        return (readable_folder(Path(path)) / self.marker).is_file()

    def write(
        self, path: str | Path, description: Mapping[str, Any], files: Mapping[str, bytes], *, overwrite: bool = False
    ) -> None:
        """Write a folder; an older one is replaced only with `overwrite`, and only if it holds nothing else."""
        folder = Path(path)
        whole: dict[str, Any] = {"format": self.format, "version": self.version, **description}
        whole["sha256"] = digest(whole, files)
        self.replace(folder, {**files, self.marker: (json.dumps(whole, indent=2) + "\n").encode()}, overwrite=overwrite)

    def replace(self, folder: Path, files: Mapping[str, bytes], *, overwrite: bool = False) -> None:
        """Write files whose marker is among them, as `write` does."""
        try:
            finish_replacement(folder, known=self.files)
            self._refuse_to_replace(folder, overwrite=overwrite)
            write_folder(folder, files)
        except OSError as error:
            raise self.error(f"{folder} could not be written: {error}; free the disk or name another path") from error

    def describe(self, path: str | Path) -> dict[str, Any]:
        """Return the description of a folder; its digest is not compared yet."""
        file = readable_folder(Path(path)) / self.marker
        wrong = f"give a folder that {self.written_by} wrote"
        noun = self.name.partition(" ")[2]
        try:
            description = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise self.error(f"{file.parent} holds no {noun} ({file.name} is missing); {wrong}") from error
        except RecursionError as error:
            raise self.error(f"{file} is nested too deeply to describe {self.name}; {self.again}") from error
        except (OSError, ValueError) as error:
            raise self.error(f"{file} cannot be read: {error}; {self.again}") from error
        if not isinstance(description, dict) or description.get("format") != self.format:
            raise self.error(f"{file} does not describe {self.name}; {wrong}")
        if description.get("version") != self.version:
            raise self.error(
                f"{file} has format version {description.get('version')}, this lookdown reads version {self.version}; "
                f"write the {noun} anew with this version"
            )
        for key, kind in {**self.required, "sha256": str}.items():
            if not isinstance(description.get(key), kind):
                raise self.error(f"{file} lacks {key!r}, or has another type of it; {self.again}")
        return description

    def read(self, path: str | Path, description: Mapping[str, Any], names: Iterable[str]) -> dict[str, bytes]:
        """Return the content of the named files, if the folder is as it was written.

        description: what `describe` returned.
        """
        folder = readable_folder(Path(path))
        try:
            files = {name: (folder / name).read_bytes() for name in names}
        except OSError as error:
            raise self.error(f"{error.filename} cannot be read: {error.strerror}; {self.again}") from error
        if description["sha256"] != digest(description, files):
            raise self.changed(folder)
        return files

    def changed(self, folder: Path) -> LookdownError:
        """Return the error for a folder whose content does not match its digest."""
        return self.error(f"{folder} is not as it was saved: a file in it was changed or damaged; {self.again}")

    def _refuse_to_replace(self, folder: Path, *, overwrite: bool) -> None:
        if not folder.exists():
            return
        if not overwrite:
            raise self.error(f"{folder} exists; pass `overwrite=True` to replace it; nothing was written")
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        if self.marker not in names or not names <= set(self.files):
            raise self.error(
                f"{folder} is not {self.name}, or holds other files as well; nothing was written, name another folder"
            )


def digest(description: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    """Return a SHA-256 of a description without its own digest, and of files in the order of their names."""
    rest = {key: value for key, value in description.items() if key != "sha256"}
    content = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for name in sorted(files):
        content.update(files[name])
    return content.hexdigest()


def _old(folder: Path) -> Path:
    whole = folder.absolute()
    return whole.with_name(f".{whole.name}.old")


def _flush(file: Path) -> None:
    with file.open("r+b") as stream:
        os.fsync(stream.fileno())


def _flush_names(folder: Path) -> None:
    with suppress(OSError):  # folders cannot be opened on Windows
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
