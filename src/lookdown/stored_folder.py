"""A folder of a few files that is written as a whole: what was there before is lost at no moment, not even to a kill.

The older folder is out of the way only between two renames, as `.<name>.old`, where `standing` finds it and the next
write puts it back.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

__all__ = ["recover", "standing", "write_folder"]


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into `folder`, in the place of one with the same files; OSError where that cannot be done."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    old = _aside(folder)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as beside:
        fresh = Path(beside, "fresh")
        fresh.mkdir()
        for name, content in files.items():
            _write(fresh / name, content)
        _settle(fresh)
        if folder.exists():
            folder.rename(old)
        try:
            fresh.rename(folder)
        except OSError:
            recover(folder, files)
            raise
        _settle(folder.parent)
        recover(folder, files)


def standing(folder: Path) -> Path:
    """Return where a folder is: in its place, or aside if a write was killed between its two renames."""
    return _aside(folder) if not folder.exists() and _aside(folder).exists() else folder


def recover(folder: Path, names: Mapping[str, object] | set[str]) -> None:
    """End what an earlier write began: the older folder goes back to its place, or away if that is taken.

    It is removed only if it holds no files but those of the given names.
    """
    old = _aside(folder)
    if not old.exists():
        return
    if not folder.exists():
        old.rename(folder)
    elif {path.name for path in old.iterdir()} <= set(names):
        shutil.rmtree(old)


def _aside(folder: Path) -> Path:
    place = folder.absolute()
    return place.with_name(f".{place.name}.old")


def _write(file: Path, content: bytes) -> None:
    """Write, and wait until it is on the disk."""
    with file.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _settle(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    with suppress(OSError):  # where folders cannot be opened, as on Windows, this is left to the system
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
