"""The chips that a gallery has, so that none is added twice."""

from __future__ import annotations

import filecmp
import hashlib
from pathlib import Path

from lookdown.gallery.index.intake import Row
from lookdown.gallery.store.table import ChipTable

__all__ = ["AllNew", "Known"]


class Known:
    """By name and by place."""

    def __init__(self, records: ChipTable) -> None:
        snapshot = records.snapshot()
        sources = snapshot.texts("source")
        self._sources = dict(zip(snapshot.ids.to_pylist(), sources, strict=True))
        self._places = set(zip(sources, snapshot.texts("polygon"), strict=True))
        self.moved: dict[str, str] = {}  # where chips that are there are now, by their ids
        # Versions only rise, whatever is removed: a number that was given once never comes back.
        self.next_key = max(int(snapshot.keys.max(initial=-1)) + 1, snapshot.version << 32)

    def is_new_id(self, row: Row) -> bool:
        """Take a chip in that is known by its id alone, if it is not there."""
        return self._sources.setdefault(row["id"], row) is row

    def is_new(self, row: Row, *, named_by_path: bool) -> bool:
        """Take a chip in, if it is not there, by this name or another.

        Two files in different folders may go by the same name. The second gets a name of its own, unless the first is
        gone: then the archive was moved, and it is the same chip. A copy of a chip of a manifest is the same chip too.
        """
        place = row["source"], row["polygon"]
        if place in self._places:
            return False
        there = self._sources.get(row["id"])
        if there is not None:
            if not Path(there).exists():
                self.moved[row["id"]] = row["source"]
                return False
            if not named_by_path and _is_copy(there, row["source"]):
                return False
            row["id"] += "#" + hashlib.sha256(row["source"].encode()).hexdigest()[:8]
            if row["id"] in self._sources:
                return False
        self._sources[row["id"]] = row["source"]
        self._places.add(place)
        return True

    def forget(self, row: Row) -> None:
        """Take a chip out again that could not be read."""
        del self._sources[row["id"]]
        self._places.discard((row["source"], row["polygon"]))


class AllNew:
    """Takes every chip for new, where another has found out which are, and keeps those that could not be read."""

    def __init__(self) -> None:
        self.forgotten: list[Row] = []

    def is_new(self, row: Row, *, named_by_path: bool) -> bool:
        """Take a chip in."""
        return True

    def forget(self, row: Row) -> None:
        """Take a chip out again that could not be read."""
        self.forgotten.append({name: row[name] for name in ("id", "source", "polygon")})


def _is_copy(file: str, other: str) -> bool:
    try:
        return filecmp.cmp(file, other, shallow=False)
    except OSError:
        return False  # reading it says what is wrong with it
