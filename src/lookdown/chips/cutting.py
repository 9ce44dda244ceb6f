"""From a polygon in a scene to the pixels of a chip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import shapely
from numpy.typing import NDArray
from PIL import Image

from lookdown.chips.source_content import Polygon

__all__ = ["CutOptions", "Window", "background_windows", "cut", "outline"]

Chip = NDArray[np.uint8]  # (height, width, bands)
_SEEN = 0.1  # share of an object that must lie inside the image

Window = tuple[int, int, int, int]  # left, top, right, bottom in pixels; right and bottom lie outside


class Pixels(Protocol):
    """What is cut from; `lookdown.chips.imagery.SceneReader` is one."""

    width: int
    height: int

    def read(self, window: Window) -> Chip:
        """Return the pixels of a window inside the image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOptions:
    """How chips are cut."""

    margin: float = 0.1  # added on each side, as a share of the longer side of the box
    upright: bool = False  # turn oriented boxes so that their longer side lies flat
    smallest: int = 4  # objects whose longer side has fewer pixels are left out
    background: float = 0.05  # background chips to cut, as a share of the objects


def cut(scene: Pixels, polygon: Polygon, how: CutOptions) -> Chip:
    """Return the chip of a polygon; ValueError says why there is none."""
    shape = outline(polygon, scene.width, scene.height, how.smallest)
    if how.upright:
        return _cut_upright(scene, shape, how)
    left, top, right, bottom = shape.bounds
    margin = how.margin * max(right - left, bottom - top)
    return scene.read(_inside(scene, left - margin, top - margin, right + margin, bottom + margin))


def outline(polygon: Polygon, width: int, height: int, smallest: int) -> shapely.Polygon:
    """Return the polygon as a shape if a chip can be cut from it; ValueError says why not."""
    if not all(math.isfinite(value) for corner in polygon for value in corner):
        raise ValueError("the polygon has a corner that is not a number")
    shape = shapely.Polygon(polygon)
    if shape.area <= 0:
        raise ValueError("the polygon has no area")
    if not shape.is_valid:
        raise ValueError("the polygon crosses itself")
    seen = shape.intersection(shapely.box(0, 0, width, height))
    if seen.is_empty or seen.area <= 0:
        raise ValueError(f"the polygon lies outside the image of {width} x {height} pixels")
    if seen.area < _SEEN * shape.area:
        raise ValueError(f"less than {_SEEN:.0%} of the polygon lies inside the image of {width} x {height} pixels")
    left, top, right, bottom = seen.bounds
    if max(right - left, bottom - top) < smallest:
        raise ValueError(f"the object has fewer than {smallest} pixels on its longer side")
    return shape


def background_windows(
    width: int, height: int, polygons: Sequence[Polygon], count: int, rng: np.random.Generator
) -> list[Window]:
    """Return up to `count` windows clear of every polygon, as large as the objects (64 pixels if there are none).

    Places are tried at random, thirty for each that is wanted: a scene full of objects gives fewer.
    """
    corners = [np.array(polygon) for polygon in polygons]
    boxes = np.array([[*ring.min(axis=0), *ring.max(axis=0)] for ring in corners]).reshape(-1, 4)
    boxes = boxes[np.isfinite(boxes).all(axis=1)]
    sides = np.maximum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1])
    side = int(np.clip(np.median(sides) if len(sides) else 64, 8, min(width, height)))
    found: list[Window] = []
    for _ in range(30 * count):
        if len(found) == count:
            break
        left, top = int(rng.integers(width - side + 1)), int(rng.integers(height - side + 1))
        right, bottom = left + side, top + side
        others = np.concatenate([boxes, np.array(found, dtype=np.float64).reshape(-1, 4)])
        apart = (others[:, 2] <= left) | (others[:, 0] >= right) | (others[:, 3] <= top) | (others[:, 1] >= bottom)
        if apart.all():
            found.append((left, top, right, bottom))
    return found


def _cut_upright(scene: Pixels, shape: shapely.Polygon, how: CutOptions) -> Chip:
    corners = np.array(shapely.oriented_envelope(shape).exterior.coords)[:4]
    if np.linalg.norm(corners[1] - corners[0]) < np.linalg.norm(corners[2] - corners[1]):
        corners = np.roll(corners, -1, axis=0)  # the first side is the longer one
    along, across = corners[1] - corners[0], corners[3] - corners[0]
    if along[0] * across[1] - along[1] * across[0] < 0:  # y points down: keep the picture from being mirrored
        corners = corners[[1, 0, 3, 2]]
    centre = corners.mean(axis=0)
    length, breadth = np.linalg.norm(corners[1] - corners[0]), np.linalg.norm(corners[3] - corners[0])
    margin = how.margin * length
    stretch = np.array([(length + 2 * margin) / length, (breadth + 2 * margin) / breadth])
    axes = np.stack([(corners[1] - corners[0]) / 2, (corners[3] - corners[0]) / 2]) * stretch[:, None]
    ring = centre + np.array([[-1, -1], [-1, 1], [1, 1], [1, -1]]) @ axes  # the order that Pillow's QUAD takes
    window = _inside(scene, *ring.min(axis=0), *ring.max(axis=0))
    pixels = scene.read(window)
    size = (max(1, round(length + 2 * margin)), max(1, round(breadth + 2 * margin)))
    quad = tuple((ring - window[:2]).ravel())
    bands = [
        np.asarray(Image.fromarray(np.ascontiguousarray(band)).transform(
            size, Image.Transform.QUAD, quad, resample=Image.Resampling.BILINEAR, fillcolor=int(band.mean())
        ))
        for band in np.moveaxis(pixels, 2, 0)
    ]  # fmt: skip
    return np.stack(bands, axis=2)


def _inside(scene: Pixels, left: float, top: float, right: float, bottom: float) -> Window:
    """Return whole pixels, clipped at the edges of the image."""
    window = math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)
    return max(window[0], 0), max(window[1], 0), min(window[2], scene.width), min(window[3], scene.height)
