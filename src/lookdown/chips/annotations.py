"""What a source hands over: scenes, the objects marked in them, and what could not be used."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Annotated", "Marked", "Polygon", "Scene", "Skipped"]

Polygon = tuple[tuple[float, float], ...]  # corners (x, y) in pixels of the scene, x to the right and y down


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An image that objects are cut from, or that is a chip itself."""

    name: str  # unique within the source
    path: Path  # below the root of the source; it may be missing, which the cutter reports
    group: str | None = None  # scenes that show one place share it; None where the source does not know
    time: str | None = None  # ISO 8601
    sensor: str | None = None
    gsd: float | None = None  # metres a pixel


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """One object (or window, or ready-made chip) in a scene."""

    id: str  # unique within the source, the same at every run
    scene: str
    polygon: Polygon | None = None  # None: the whole scene is the chip
    label: str | None = None  # None: not known
    background: bool = False  # known to show none of the objects
    exact: bool = False  # cut to the pixel: a window rather than the outline of an object, so no margin is added


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something left out, and why."""

    item: str  # a file, or a file and the object in it
    reason: str


@dataclass(frozen=True, slots=True)
class Annotated:
    """Everything a source knows, in a fixed order."""

    scenes: dict[str, Scene] = field(default_factory=dict)
    marked: list[Marked] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
