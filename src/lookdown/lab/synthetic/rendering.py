"""From parts to light: paint them from above, shade their slopes, throw their shadows.

A `GroundView` is a window of the ground, seen straight from above with north up. Everything is painted finer than the
picture that is wanted and averaged down, which is what makes edges smooth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from lookdown.lab.synthetic.parts import SolidPart

__all__ = ["Field", "GroundView", "Sun", "average_down", "light", "paint"]

Field = NDArray[np.float32]  # (rows, columns), or (rows, columns, 3)


@dataclass(frozen=True, slots=True)
class GroundView:
    """A window of the ground: its upper left corner in metres (east, north), its size in pixels, metres a pixel."""

    west: float
    north: float
    columns: int
    rows: int
    step: float

    def pixels(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return points in metres as (column, row); a pixel's middle is at .5."""
        return (points - (self.west, self.north)) * (1 / self.step, -1 / self.step)

    @property
    def corners(self) -> NDArray[np.float64]:
        """The corners of the window in metres, from the upper left one clockwise."""
        east, south = self.west + self.columns * self.step, self.north - self.rows * self.step
        return np.array([[self.west, self.north], [east, self.north], [east, south], [self.west, south]])

    def finer(self, factor: int) -> GroundView:
        """Return the same window with more pixels."""
        return GroundView(self.west, self.north, self.columns * factor, self.rows * factor, self.step / factor)


@dataclass(frozen=True, slots=True)
class Sun:
    """Where the light comes from, in degrees: azimuth clockwise from north, elevation above the horizon."""

    azimuth: float
    elevation: float


def paint(view: GroundView, parts: list[SolidPart], colour: Field, height: Field, pattern: Field) -> NDArray[np.int32]:
    """Paint parts onto the colours and heights of the ground, in their order.

    Camouflage has its second colour where `pattern` is above zero. Returns for each pixel which part is seen there,
    counted from 1; 0 is the ground.
    """
    if not parts:
        return np.zeros(height.shape, np.int32)
    canvas = Image.new("I", (view.columns, view.rows), 0)
    draw = ImageDraw.Draw(canvas)
    corners = view.pixels(np.concatenate([part.outline for part in parts])) - 0.5
    ends = np.cumsum([len(part.outline) for part in parts])
    for number, (end, part) in enumerate(zip(ends.tolist(), parts, strict=True), start=1):
        draw.polygon(corners[end - len(part.outline) : end].ravel().tolist(), fill=number)
    seen = np.asarray(canvas)
    painted = np.flatnonzero(seen)
    which = seen.ravel()[painted] - 1
    colours = np.array([part.colour for part in parts], np.float32)[which]
    if any(part.second for part in parts):
        second = np.array([part.second or part.colour for part in parts], np.float32)[which]
        colours = np.where(pattern.ravel()[painted, None] > 0, second, colours)
    colour.reshape(-1, 3)[painted] = colours
    height.ravel()[painted] = np.array([part.top for part in parts], np.float32)[which]
    return seen


def light(view: GroundView, colour: Field, height: Field, sun: Sun, *, ambient: float = 0.30) -> None:
    """Shade slopes and throw shadows; the colours are changed in the array."""
    towards = np.radians(sun.azimuth)
    east, south = float(np.sin(towards)), float(-np.cos(towards))
    span = float(height.max() - height.min())
    if not span:
        return
    rise = view.step * np.tan(np.radians(sun.elevation))  # of a ray, a pixel
    slope = (_towards(height, 1.5 * east, 1.5 * south) - _towards(height, -1.5 * east, -1.5 * south)) / (3 * view.step)
    bright = 1 - np.clip(slope * np.float32(0.30 / np.tan(np.radians(sun.elevation))), -0.30, 0.40)
    shaded = _in_the_way(height, east, south, rise, span) > height
    bright[shaded] *= ambient
    colour *= bright[:, :, None]
    colour[shaded, 2] *= 1.15  # the sky lights what the sun does not


def _in_the_way(height: Field, east: float, south: float, rise: float, span: float) -> Field:
    """Return how high a thing must be in each pixel to be lit, by all that stands towards the sun.

    Each round looks twice as far as the one before, so that nothing is missed between two looks, however thin.
    """
    highest = _towards(height, east, south) - np.float32(rise)
    distance = 1
    while distance * rise < span:
        farther = _towards(highest, distance * east, distance * south) - np.float32(distance * rise)
        np.maximum(highest, farther, out=highest)
        distance *= 2
    return highest


def _towards(field: Field, columns: float, rows: float) -> Field:
    """Return what lies so many columns to the right and rows below of each pixel; beyond the edge, the pixel itself."""
    right, down = round(columns), round(rows)
    height, width = field.shape
    moved = field.copy()
    if abs(right) < width and abs(down) < height:
        moved[max(0, -down) : height - max(0, down), max(0, -right) : width - max(0, right)] = field[
            max(0, down) : height - max(0, -down), max(0, right) : width - max(0, -right)
        ]
    return moved


def average_down(field: Field, factor: int) -> Field:
    """Return the mean of each block of pixels."""
    total: Field = np.zeros((field.shape[0] // factor, field.shape[1] // factor, *field.shape[2:]), np.float32)
    for row in range(factor):
        for column in range(factor):
            total += field[row::factor, column::factor]
    total /= factor * factor
    return total
