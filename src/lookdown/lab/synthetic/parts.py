"""What objects are made of: flat outlines in metres, each with the height of its top and a colour.

An object lies with its front towards +x and its left side towards +y, its middle at the origin. Later parts lie on
earlier ones. Heights count from the ground; the renderer takes light, shade and shadows from them alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Colour",
    "Points",
    "SolidPart",
    "bounds",
    "box",
    "disc",
    "dome",
    "mirrored",
    "placed",
    "plate",
    "shade",
    "tube",
]

Points = NDArray[np.float64]  # (corners, 2)
Colour = tuple[float, float, float]  # reflectance, 0 to 1
_ROUND = np.stack([np.cos(a := np.linspace(0, 2 * np.pi, 20, endpoint=False)), np.sin(a)], axis=1)


class SolidPart(NamedTuple):  # a tuple, since a picture is made of hundreds
    """A piece that is flat on top."""

    outline: Points
    top: float  # metres above the ground
    colour: Colour
    second: Colour | None = None  # camouflage: the colour of its patches


def plate(outline: list[tuple[float, float]] | Points, top: float, colour: Colour) -> SolidPart:
    """Return a piece with the given corners."""
    return SolidPart(np.asarray(outline, np.float64), top, colour)


def box(x: float, y: float, length: float, width: float, top: float, colour: Colour) -> SolidPart:
    """Return a rectangle around (x, y), `length` along x."""
    a, b = length / 2, width / 2
    return SolidPart(np.array([[x - a, y - b], [x + a, y - b], [x + a, y + b], [x - a, y + b]]), top, colour)


def disc(x: float, y: float, radius: float, top: float, colour: Colour) -> SolidPart:
    """Return a circle around (x, y)."""
    return SolidPart(_ROUND * radius + (x, y), top, colour)


def shade(colour: Colour, factor: float, add: float = 0.0) -> Colour:
    """Return a colour made darker (below 1) or lighter."""
    red, green, blue = (min(1.0, factor * value + add) for value in colour)
    return red, green, blue


def dome(part: SolidPart, rise: float) -> list[SolidPart]:
    """Return a piece whose top is rounded: smaller copies of it, each higher than the last."""
    middle = part.outline.mean(axis=0)
    return [
        part._replace(outline=middle + (part.outline - middle) * size, top=part.top + rise * up)
        for size, up in ((1, 0), (0.82, 0.5), (0.6, 0.8), (0.35, 0.96))
    ]


def tube(outline: Points, low: float, high: float, colour: Colour) -> list[SolidPart]:
    """Return a body that lies along x, round across: narrower copies of the outline, rising to the middle."""
    squeeze = ((1.0, 0.35), (0.92, 0.58), (0.8, 0.74), (0.62, 0.88), (0.42, 0.96), (0.2, 1.0))
    return [SolidPart(outline * (1, width), low + (high - low) * up, colour) for width, up in squeeze]


def mirrored(part: SolidPart) -> tuple[SolidPart, SolidPart]:
    """Return a part and its like on the other side."""
    return part, part._replace(outline=part.outline * (1, -1))


def placed(parts: Sequence[SolidPart], x: float, y: float, heading: float, *, scale: float = 1.0) -> list[SolidPart]:
    """Enlarge parts, turn them by `heading` (radians, against the clock from +x), and move them to (x, y)."""
    if not parts:
        return []
    turn = scale * np.array([[np.cos(heading), np.sin(heading)], [-np.sin(heading), np.cos(heading)]])
    corners = np.concatenate([part.outline for part in parts]) @ turn + (x, y)
    ends = np.cumsum([len(part.outline) for part in parts])
    outlines = np.split(corners, ends[:-1])
    return [
        SolidPart(outline, part.top * scale, part.colour, part.second)
        for outline, part in zip(outlines, parts, strict=True)
    ]


def bounds(parts: Sequence[SolidPart]) -> tuple[float, float, float, float]:
    """Return the smallest and largest x, then the smallest and largest y, of all parts."""
    corners = np.concatenate([part.outline for part in parts])
    (left, low), (right, high) = corners.min(axis=0), corners.max(axis=0)
    return float(left), float(right), float(low), float(high)
