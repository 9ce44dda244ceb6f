"""The chips that a gallery has, so that none is added twice."""

from __future__ import annotations

import filecmp
import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from lookdown.gallery.index.sources import ChipGroup, Row
from lookdown.gallery.store.table import ChipTable

__all__ = ["ChipRegistry", "Selection", "as_text", "select_new"]


class ChipRegistry:
    """The ids and files that are already in the gallery."""

    def __init__(self, records: ChipTable) -> None:
        snapshot = records.snapshot()
        sources = snapshot.texts("source")
        self._sources = dict(zip(snapshot.ids.to_pylist(), sources, strict=True))
        self._windows = set(zip(sources, snapshot.texts("polygon"), strict=True))
        self.moved: dict[str, str] = {}  # the new file of each chip whose file was moved, by its id
        # Versions only rise, whatever is removed, so no key is ever used twice.
        self.next_key = max(int(snapshot.keys.max(initial=-1)) + 1, snapshot.version << 32)

    def add_id(self, row: Row) -> bool:
        """Register a chip by its id alone; return whether it is new."""
        return self._sources.setdefault(row["id"], row) is row

    def add(self, row: Row, *, named_by_path: bool) -> bool:
        """Register a chip; return whether it is new, under this id or another.

        Two files in different folders may have the same name. The second then gets an id of its own, unless the first
        is gone: then the archive was moved, and it is the same chip. A copy of a manifest's chip is also the same chip.
        """
        window = row["source"], row["polygon"]
        if window in self._windows:
            return False
        source = self._sources.get(row["id"])
        if source is not None:
            if not Path(source).exists():
                self.moved[row["id"]] = row["source"]
                return False
            if not named_by_path and _is_copy(source, row["source"]):
                return False
            row["id"] += "#" + hashlib.sha256(row["source"].encode()).hexdigest()[:8]
            if row["id"] in self._sources:
                return False
        self._sources[row["id"]] = row["source"]
        self._windows.add(window)
        return True

    def forget(self, row: Row) -> None:
        """Remove a chip that could not be read."""
        del self._sources[row["id"]]
        self._windows.discard((row["source"], row["polygon"]))


@dataclass(slots=True)
class Selection:
    """The chips of a group that are to be added, and what became of the others."""

    positions: list[int] = field(default_factory=list)
    present: int = 0  # chips that are in the gallery already
    failed: int = 0  # chips that cannot be added
    skipped: dict[str, str] = field(default_factory=dict)  # the reason for each file that cannot be used

    def count(self, other: Selection) -> None:
        """Add the counts of another selection, apart from its positions."""
        self.present += other.present
        self.failed += other.failed
        self.skipped |= other.skipped


def select_new(group: ChipGroup, registry: ChipRegistry | None) -> Selection:
    """Register the chips of a group, and select those that are new; without a registry, all are."""
    selection = Selection(skipped={as_text(item): as_text(reason) for item, reason in group.skipped.items()})
    for position, row in enumerate(group.rows):
        if any(as_text(name) != name for name in (row["id"], row["source"])):
            selection.skipped[as_text(row["source"])] = "its file name is not UTF-8; rename the file"
            selection.failed += 1
        elif registry is None or registry.add(row, named_by_path=group.named_by_path):
            selection.positions.append(position)
        else:
            selection.present += 1
    return selection


def as_text(name: str) -> str:
    """Return a name as valid Unicode, whatever bytes it came from."""
    return name.encode("utf-8", "backslashreplace").decode()


def _is_copy(file: str, other: str) -> bool:
    try:
        return filecmp.cmp(file, other, shallow=False)
    except OSError:
        return False  # reading the file reports what is wrong
