"""Files and folders that are written whole: a reader, or a process that is killed, sees the old content or the new.

Everything is written under a temporary name beside its target, flushed to the disk and renamed. Errors of the disk are
raised as OSError; `explained` turns them into a sentence for the user.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from lookdown.errors import OutputError

__all__ = [
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
