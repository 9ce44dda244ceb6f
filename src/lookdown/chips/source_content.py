"""What a source holds: scenes, what to cut from them as chips, and what had to be left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Crop", "Polygon", "Scene", "SkippedItem", "SourceContent", "box_polygon"]

Polygon = tuple[tuple[float, float], ...]  # corners (x, y) in pixels of the scene, x to the right and y down


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An image that chips are cut from, or that is a chip itself."""

    name: str  # unique within the source
    path: Path  # below the root of the source; a missing file is reported when its chips are cut
    group: str | None = None  # scenes of the same place share it; None if the source does not say
    time: str | None = None  # ISO 8601
    sensor: str | None = None
    gsd: float | None = None  # metres a pixel


@dataclass(frozen=True, slots=True, kw_only=True)
class Crop:
    """One chip to be: an object in a scene, a window of it, or the whole scene."""

    id: str  # unique within the source, the same at every run
    scene: str
    polygon: Polygon | None = None  # None: the whole scene is the chip
    label: str | None = None  # None: unknown
    background: bool = False  # shows none of the objects
    exact: bool = False  # a window, cut to the pixel; the outline of an object gets a margin

    @property
    def is_object(self) -> bool:
        """Whether this is an object in a scene, rather than a window or a whole image."""
        return self.polygon is not None and not self.exact


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """Something that was left out, and why."""

    item: str  # a file, or a file and the object in it
    reason: str


@dataclass(frozen=True, slots=True)
class SourceContent:
    """Everything that a source holds, in a fixed order."""

    scenes: dict[str, Scene] = field(default_factory=dict)
    crops: list[Crop] = field(default_factory=list)
    skipped: list[SkippedItem] = field(default_factory=list)

    def skip(self, item: str, reason: str) -> None:
        """Record something that is left out."""
        self.skipped.append(SkippedItem(item, reason))


def box_polygon(left: float, top: float, right: float, bottom: float) -> Polygon:
    """Return the corners of an upright box."""
    return ((left, top), (right, top), (right, bottom), (left, bottom))
