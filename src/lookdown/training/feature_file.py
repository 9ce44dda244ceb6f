"""Features on disk, block by block: interrupted work is resumed, damaged blocks are computed anew."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown import atomic
from lookdown.errors import DamagedCacheWarning, OutputError

__all__ = ["Block", "FeatureFile"]


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive chips of the list; those with a problem have no row."""

    chips: int
    problems: dict[int, str]  # by the position in the whole list
    sha256: str  # of the rows

    @property
    def rows(self) -> int:
        """Chips that have features."""
        return self.chips - len(self.problems)


class _DamageError(Exception):
    """The files differ from what was written."""


class FeatureFile:
    """A folder with `features.bin`, which holds a row per chip, and `journal.jsonl`, which describes these rows.

    A row is (views, width) in float32.

    The first line of the journal names the work, and each other line a block with its digest; lines carry a digest of
    their own. The line of a block is written after its rows are flushed, and the block counts from then on. So a kill
    at any moment leaves whole blocks, and perhaps some bytes after them that are never read.
    """

    def __init__(self, folder: Path, key: str, *, views: int, width: int, chips: int) -> None:
        self.folder, self.views, self.width, self.chips = folder, views, width, chips
        self.row_bytes = 4 * views * width
        self.blocks: list[Block] = []
        self._data, self._journal = folder / "features.bin", folder / "journal.jsonl"
        self._title = {
            "format": "lookdown-features",
            "version": 1,
            "key": key,
            "chips": chips,
            "views": views,
            "width": width,
        }
        self._journal_bytes = 0  # as far as its lines are whole

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder, and read its whole blocks into `blocks`.

        Other processes wait; the system releases the lock of a process that is killed.
        """
        with self._explained():
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / "lock").open("ab")
        with lock:
            with self._explained():
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._resume()
            yield

    @property
    def done(self) -> int:
        """Chips of the list that are in whole blocks."""
        return sum(block.chips for block in self.blocks)

    @property
    def _rows(self) -> int:
        return sum(block.rows for block in self.blocks)

    def append(self, rows: NDArray[np.float32], problems: dict[int, str]) -> None:
        """Write the next block: `rows` is (chips without a problem, views, width)."""
        payload = np.ascontiguousarray(rows, "<f4").tobytes()
        block = Block(len(rows) + len(problems), problems, hashlib.sha256(payload).hexdigest())
        lines = ([] if self._journal_bytes else [_line(self._title)]) + [_line(asdict(block))]
        with self._explained():
            _write(self._data, self._rows * self.row_bytes, payload)
            self._journal_bytes = _write(self._journal, self._journal_bytes, b"".join(lines))
        self.blocks.append(block)

    def features(self) -> NDArray[np.float32]:
        """Return the features, (views, rows, width), mapped from the disk, read-only."""
        return np.memmap(self._data, "<f4", "r", shape=(self._rows, self.views, self.width)).transpose(1, 0, 2)

    def _resume(self) -> None:
        try:
            self._read()
        except _DamageError as damage:
            message = f"the features in {self.folder} are damaged ({damage}) and are computed anew"
            warnings.warn(message, DamagedCacheWarning, stacklevel=5)
            self._journal.unlink(missing_ok=True)  # others may have mapped the old file
            self._data.unlink(missing_ok=True)
            self.blocks, self._journal_bytes = [], 0
        size = self._data.stat().st_size if self._data.exists() else 0
        missing = self._rows * self.row_bytes + (self.chips - self.done) * self.row_bytes - size
        if missing > (free := shutil.disk_usage(self.folder).free):
            raise OutputError(
                f"{self.folder} has {free / 1e6:.1f} MB free and the features need {missing / 1e6:.1f} MB more; free "
                "the disk, or move the data to a larger one: features are kept beside them"
            )

    def _read(self) -> None:
        """Read the blocks, and compare their rows with their digests."""
        text = self._journal.read_bytes() if self._journal.exists() else b""
        *lines, cut_off = text.split(b"\n")  # a kill may cut off the last line
        entries = [_entry(line, number) for number, line in enumerate(lines, 1)]
        if entries and entries[0] != self._title:
            raise _DamageError("journal.jsonl names other work")
        self._journal_bytes = len(text) - len(cut_off)
        self.blocks = [
            Block(entry["chips"], {int(chip): reason for chip, reason in entry["problems"].items()}, entry["sha256"])
            for entry in entries[1:]
        ]
        if not self.blocks:
            return
        if not self._data.exists():
            raise _DamageError("features.bin is missing")
        with self._data.open("rb") as file:
            for number, block in enumerate(self.blocks, 1):
                if hashlib.sha256(file.read(block.rows * self.row_bytes)).hexdigest() != block.sha256:
                    raise _DamageError(f"block {number} of features.bin is not as it was written")
            if self.done == self.chips and file.read(1):
                raise _DamageError("features.bin is longer than it was written")

    def _explained(self) -> AbstractContextManager[None]:
        advice = "free the disk, or move the data, since features are kept beside them; whole blocks are kept"
        return atomic.explained(self.folder, advice)


def _write(file: Path, start: int, payload: bytes) -> int:
    """Write and flush from byte `start` on in place of what follows, and return the end."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as stream:
        stream.seek(start)
        stream.write(payload)
        stream.truncate()
        stream.flush()
        os.fsync(stream.fileno())
    return start + len(payload)


def _line(entry: dict[str, Any]) -> bytes:
    text = json.dumps(entry).encode()
    return hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n"


def _entry(line: bytes, number: int) -> dict[str, Any]:
    digest, _, text = line.partition(b" ")
    if hashlib.sha256(text).hexdigest().encode() != digest:
        raise _DamageError(f"line {number} of journal.jsonl is not as it was written")
    entry: dict[str, Any] = json.loads(text)
    return entry
