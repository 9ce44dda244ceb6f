"""From a polygon in a scene to the pixels of a chip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import shapely
from PIL import Image

from lookdown.chips.imagery import Box, SceneReader
from lookdown.chips.pixels import Chip
from lookdown.chips.sources import Polygon

__all__ = ["CutOptions", "background_windows", "cut"]

_LEAST_INSIDE = 0.1  # share of an object that must lie inside the image
_TRIES_PER_WINDOW = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOptions:
    """How chips are cut; `lookdown.prepare` describes each option."""

    margin: float = 0.1
    upright: bool = False
    smallest: int = 4
    background: float = 0.05


def cut(scene: SceneReader, polygon: Polygon, options: CutOptions) -> Chip:
    """Return the chip of a polygon; raise ValueError with the reason if there is none."""
    shape = _outline(polygon, scene.width, scene.height, options.smallest)
    if options.upright:
        return _cut_upright(scene, shape, options)
    left, top, right, bottom = shape.bounds
    margin = options.margin * max(right - left, bottom - top)
    return scene.read(_inside(scene, left - margin, top - margin, right + margin, bottom + margin))


def _outline(polygon: Polygon, width: int, height: int, smallest: int) -> shapely.Polygon:
    """Return the polygon as a shape; raise ValueError with the reason if no chip can be cut from it."""
    if not all(math.isfinite(value) for corner in polygon for value in corner):
        raise ValueError("the polygon has a corner that is not a number")
    shape = shapely.Polygon(polygon)
    if shape.area <= 0:
        raise ValueError("the polygon has no area")
    if not shape.is_valid:
        raise ValueError("the polygon crosses itself")
    inside = shape.intersection(shapely.box(0, 0, width, height))
    if inside.is_empty or inside.area <= 0:
        raise ValueError(f"the polygon lies outside the image of {width} x {height} pixels")
    if inside.area < _LEAST_INSIDE * shape.area:
        raise ValueError(f"less than {_LEAST_INSIDE:.0%} of the polygon lies inside the image of {width} x {height}")
    left, top, right, bottom = inside.bounds
    if max(right - left, bottom - top) < smallest:
        raise ValueError(f"the object has fewer than {smallest} pixels on its longer side")
    return shape


def background_windows(
    width: int, height: int, polygons: Sequence[Polygon], count: int, rng: np.random.Generator
) -> list[Box]:
    """Return up to `count` windows clear of every polygon, as large as the objects (64 pixels if there are none).

    Positions are tried at random, thirty for each window: a scene full of objects gives fewer windows.
    """
    corners = [np.array(polygon) for polygon in polygons]
    boxes = np.array([[*ring.min(axis=0), *ring.max(axis=0)] for ring in corners]).reshape(-1, 4)
    boxes = boxes[np.isfinite(boxes).all(axis=1)]
    sides = np.maximum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1])
    side = int(np.clip(np.median(sides) if len(sides) else 64, 8, min(width, height)))
    windows: list[Box] = []
    for _ in range(_TRIES_PER_WINDOW * count):
        if len(windows) == count:
            break
        left, top = int(rng.integers(width - side + 1)), int(rng.integers(height - side + 1))
        right, bottom = left + side, top + side
        others = np.concatenate([boxes, np.array(windows, dtype=np.float64).reshape(-1, 4)])
        apart = (others[:, 2] <= left) | (others[:, 0] >= right) | (others[:, 3] <= top) | (others[:, 1] >= bottom)
        if apart.all():
            windows.append((left, top, right, bottom))
    return windows


def _cut_upright(scene: SceneReader, shape: shapely.Polygon, options: CutOptions) -> Chip:
    corners = np.array(shapely.oriented_envelope(shape).exterior.coords)[:4]
    if np.linalg.norm(corners[1] - corners[0]) < np.linalg.norm(corners[2] - corners[1]):
        corners = np.roll(corners, -1, axis=0)  # the first side is the longer one
    along, across = corners[1] - corners[0], corners[3] - corners[0]
    if along[0] * across[1] - along[1] * across[0] < 0:  # y points down: do not mirror the picture
        corners = corners[[1, 0, 3, 2]]
    centre = corners.mean(axis=0)
    length, breadth = np.linalg.norm(corners[1] - corners[0]), np.linalg.norm(corners[3] - corners[0])
    margin = options.margin * length
    stretch = np.array([(length + 2 * margin) / length, (breadth + 2 * margin) / breadth])
    axes = np.stack([(corners[1] - corners[0]) / 2, (corners[3] - corners[0]) / 2]) * stretch[:, None]
    ring = centre + np.array([[-1, -1], [-1, 1], [1, 1], [1, -1]]) @ axes  # in the order of Pillow's QUAD
    window = _inside(scene, *ring.min(axis=0), *ring.max(axis=0))
    pixels = scene.read(window)
    size = (max(1, round(length + 2 * margin)), max(1, round(breadth + 2 * margin)))
    quad = tuple((ring - window[:2]).ravel())
    quad_of, bilinear = Image.Transform.QUAD, Image.Resampling.BILINEAR
    turned = [
        Image.fromarray(band).transform(size, quad_of, quad, resample=bilinear, fillcolor=int(band.mean()))
        for band in np.ascontiguousarray(np.moveaxis(pixels, 2, 0))
    ]
    return np.stack([np.asarray(band) for band in turned], axis=2)


def _inside(scene: SceneReader, left: float, top: float, right: float, bottom: float) -> Box:
    """Return whole pixels, clipped at the edges of the image."""
    window = math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)
    return max(window[0], 0), max(window[1], 0), min(window[2], scene.width), min(window[3], scene.height)
