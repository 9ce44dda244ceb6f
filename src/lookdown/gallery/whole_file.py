"""A file that is written as a whole: it is there in full, or as it was before."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from lookdown.errors import OutputError

__all__ = ["check_place", "write_whole"]


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write beside the file, wait until it is on the disk, and rename; what stood there is replaced."""
    file = Path(path)
    beside = file.with_name(f".{file.name[:100]}.{os.getpid()}.part")
    try:
        with beside.open("wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(file)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise _refusal(path, error) from error


def check_place(path: str | Path, *, overwrite: bool = False) -> None:
    """Refuse a file that stands already, or that has no folder to stand in: before the work, not after it."""
    folder = Path(path).absolute().parent
    try:
        missing, stands = not folder.is_dir(), Path(path).exists()
    except OSError as error:
        raise _refusal(path, error) from error
    if missing:
        raise OutputError(f"{path} cannot be written: {folder} is not a folder; make it, or name another file")
    if stands and not overwrite:
        raise OutputError(f"{path} exists; name another file, or pass --overwrite")


def _refusal(path: str | Path, error: OSError) -> OutputError:
    return OutputError(f"{path} cannot be written: {error.strerror or error}; free the disk, or name another place")
