"""Where the table of a gallery is: in its folder, or in a bucket of an object store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lookdown.errors import GalleryError

__all__ = ["NAME", "READS", "TablePlace", "first_line"]

NAME = "records"
_NOISE = re.compile(r"(lance error|External error|LanceError\(\w+\)|Generic \w+ error): |, /\S+\.rs:\d+:\d+")
_AGAIN = "free the disk or check the folder, and run the same again: what was added before is kept"
_RESTORE = "check the folder; restore it from a copy, or index anew"
READS = ("cannot be opened", "cannot be read")


@dataclass(frozen=True)
class TablePlace:
    """A table beside the rest of its gallery, on a disk: the lock of the folder keeps writers apart."""

    folder: Path  # of the gallery

    @property
    def root(self) -> str:
        """What LanceDB connects to; whole, since other machines may write to it."""
        return str(self.folder.resolve())

    @property
    def uri(self) -> str:
        """The address of the Lance table."""
        return f"{self.root}/{NAME}.lance"

    @property
    def address(self) -> str | None:
        """What `gallery.json` keeps: the address of a table that lies elsewhere."""
        return None

    @property
    def identity(self) -> str | None:
        """What the table says whose it is, where others could have put theirs into its place."""
        return None

    @property
    def storage_options(self) -> dict[str, str]:
        """What Lance must be told to get there; it may hold credentials, and is never written down."""
        return {}

    @property
    def is_alone(self) -> bool:
        """Whether a file of the table that no version names was left by a killed writer, for sure."""
        return True

    def begun(self) -> bool:
        """Whether there is a table; one whose making was killed at once has no version."""
        return any((self.folder / f"{NAME}.lance" / "_versions").glob("*.manifest"))

    @contextmanager
    def writing(self, lock: Path) -> Iterator[None]:
        """Keep writers in other folders away, for a while; `lock` is the file that keeps those in this one away."""
        yield

    def check(self) -> None:
        """Refuse to write more if another has become the writer meanwhile."""

    def reach(self) -> None:
        """Refuse a store that does not answer, before the work."""

    def trouble(self, what: str, error: BaseException) -> GalleryError:
        """Turn what Lance raises, with lines of its source, into a sentence."""
        after = _RESTORE if what in READS else _AGAIN
        return GalleryError(f"the table of {self.folder} {what}: {first_line(error)}; {after}")

    def occupied(self, rows: int) -> GalleryError:
        """Return the refusal to make a table where one with rows is."""
        return GalleryError(
            f"{self.folder} holds a table of {rows:,} chips without its gallery.json; restore that file from a copy, "
            "or name another folder"
        )


def first_line(error: BaseException) -> str:
    """Return what an error says, without the lines of source that Lance adds."""
    return _NOISE.sub("", (str(error).strip() or type(error).__name__).splitlines()[0])
