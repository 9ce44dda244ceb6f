"""Where the table of a gallery is stored: in its folder here, or in a bucket (`scale/bucket.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from lookdown.errors import GalleryError, LookdownError

__all__ = ["NAME", "READING", "TableLocation", "first_line", "is_not_found"]

NAME = "records"
READING = ("cannot be opened", "cannot be read")
_LANCE_ERRORS = (OSError, RuntimeError, ValueError, pa.ArrowException)
_PANICS = ("PanicException", "RustPanic")  # of Lance on damaged files; they cannot be imported
_NOT_FOUND = re.compile(r"was not found|not found:|NoSuchKey", re.IGNORECASE)
_NOISE = re.compile(r"(lance error|External error|LanceError\(\w+\)|Generic \w+ error): |, /\S+\.rs:\d+:\d+")
_AFTER_WRITING = "free the disk or check the folder, and run the same again: what was added before is kept"
_AFTER_READING = "check the folder; restore it from a copy, or index anew"


@dataclass(frozen=True)
class TableLocation:
    """A table in the folder of its gallery. The lock file of that folder keeps writers apart."""

    folder: Path  # of the gallery
    address: str | None = None  # s3://bucket/name of a table outside the folder
    identity: str | None = field(default=None, repr=False)  # random; the table has it too, so a gallery knows its own

    unlisted_files_are_leftovers: ClassVar[bool] = True  # while we hold the lock, no other process can be writing them

    @property
    def root(self) -> str:
        """What LanceDB connects to: an absolute path, since other machines may write to it, or an address."""
        return self.address or str(self.folder.resolve())

    @property
    def uri(self) -> str:
        """The Lance dataset."""
        return f"{self.root}/{NAME}.lance"

    @property
    def storage_options(self) -> dict[str, str]:
        """Options for Lance. They may hold credentials: pass them on, and never write them down."""
        return {}

    def open(self, version: int | None = None) -> Any:
        """Open the Lance dataset, at its latest version or at the one given."""
        import lance

        return lance.dataset(self.uri, version=version, storage_options=self.storage_options or None)

    def exists(self) -> bool:
        """Whether there is a table; one whose creation was killed early has no version."""
        try:
            self.open()
        except ValueError as error:
            if is_not_found(error):
                return False
            raise
        return True

    @contextmanager
    def writing(self, lock_file: Path) -> Iterator[None]:
        """Keep out writers that use another copy of the folder; `lock_file` keeps out those that use this one."""
        yield

    def check_lock(self) -> None:
        """Raise if another process may have taken over the lock."""

    def check_reachable(self) -> None:
        """Raise if the store does not answer: before long work, not after it."""

    @contextmanager
    def explaining(self, failure: str) -> Iterator[None]:
        """Turn any error of Lance into a GalleryError; `failure` says what failed: "cannot be written"."""
        try:
            yield
        except BaseException as error:  # a panic is not an Exception
            of_lance = isinstance(error, _LANCE_ERRORS) or type(error).__name__ in _PANICS
            if isinstance(error, LookdownError) or not of_lance:
                raise
            raise self.explain(failure, error) from error

    def explain(self, failure: str, error: BaseException) -> GalleryError:
        """Return the GalleryError for an error of Lance."""
        next_step = _AFTER_READING if failure in READING else _AFTER_WRITING
        return GalleryError(f"the table of {self.folder} {failure}: {first_line(error)}; {next_step}")

    def occupied(self, rows: int) -> GalleryError:
        """Return the error for a new table where there is one with rows."""
        return GalleryError(
            f"{self.folder} holds a table of {rows:,} chips without its gallery.json; restore that file from a copy, "
            "or name another folder"
        )


def is_not_found(error: BaseException) -> bool:
    """Whether the table is not there, or parts of it."""
    return _NOT_FOUND.search(str(error)) is not None and "NoSuchBucket" not in str(error)


def first_line(error: BaseException) -> str:
    """Return the first line of an error, without the source lines that Lance adds."""
    return _NOISE.sub("", (str(error).strip() or type(error).__name__).splitlines()[0])
