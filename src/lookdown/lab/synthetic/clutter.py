"""What lies about: boats, trees, buildings, goods on a quay, cars."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lookdown.lab.synthetic.parts import Colour, Points, SolidPart, box, placed

__all__ = ["boat", "building", "trees", "vehicles", "yard"]

ROOFS: tuple[Colour, ...] = (
    (0.42, 0.40, 0.38), (0.33, 0.15, 0.11), (0.55, 0.56, 0.57), (0.20, 0.28, 0.34), (0.28, 0.26, 0.24),
)  # fmt: skip
CARS: tuple[Colour, ...] = (
    (0.70, 0.70, 0.68), (0.10, 0.10, 0.11), (0.36, 0.12, 0.10), (0.14, 0.19, 0.32), (0.55, 0.45, 0.16),
)  # fmt: skip
WHITE, STEEL = (0.70, 0.70, 0.68), (0.45, 0.46, 0.47)
_QUAY = 2.2  # metres above the water


def boat(rng: np.random.Generator) -> Iterator[SolidPart]:
    """Yield a small boat at the origin."""
    length = rng.uniform(6, 16)
    hull = np.array([[-0.5, -0.14], [0.2, -0.15], [0.5, 0], [0.2, 0.15], [-0.5, 0.14]]) * length
    yield SolidPart(hull, 1.2, WHITE)
    yield box(0, 0, 0.3 * length, 0.18 * length, 2.4, STEEL)


def trees(centres: Points, rng: np.random.Generator, sizes: NDArray[np.float64] | None = None) -> list[SolidPart]:
    """Return crowns, each in three tiers."""
    count = len(centres)
    sizes = rng.uniform(3.5, 7.5, count) if sizes is None else sizes
    angles = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    crowns = np.stack([np.cos(angles), np.sin(angles)], axis=1) * rng.uniform(0.8, 1.15, (count, 8, 1))
    crowns *= sizes[:, None, None]
    highs = sizes * rng.uniform(2.2, 3.4, count)
    greens = rng.uniform(0.7, 1.35, (count, 1)) * (0.055, 0.095, 0.035) * rng.uniform(0.92, 1.08, (count, 3))
    parts = []
    for share, up, bright in ((1.0, 0.6, 1.0), (0.66, 0.9, 1.15), (0.3, 1.0, 1.3)):
        outlines = crowns * share + centres[:, None, :]
        tops, colours = (highs * up).tolist(), (greens * bright).tolist()
        parts.append([SolidPart(*tree) for tree in zip(outlines, tops, colours, strict=True)])
    return [tier for tree in zip(*parts, strict=True) for tier in tree]


def building(
    x: float, y: float, length: float, width: float, height: float, rng: np.random.Generator
) -> Iterator[SolidPart]:
    """Yield a shed with a ridge, or a flat roof with boxes on it."""
    colour = ROOFS[int(rng.integers(len(ROOFS)))]
    yield box(x, y, length, width, height, colour)
    if rng.random() < 0.6:
        for part, rise in ((0.7, 0.8), (0.4, 1.6), (0.1, 2.4)):
            yield box(x, y, part * length, width, height + rise, colour)
    else:
        for _ in range(3):
            dx, dy = rng.uniform(-0.35, 0.35, 2)
            side = 0.15 * min(length, width)
            yield box(x + dx * length, y + dy * width, side, side, height + 2, STEEL)


def _yard_item(x: float, y: float, size: float, rng: np.random.Generator) -> Iterator[SolidPart]:
    choice = rng.random()
    if choice < 0.3:
        yield from building(x, y, 1.3 * size, 1.0 * size, rng.uniform(6, 12), rng)
    elif choice < 0.7:
        colours = rng.integers(len(CARS) + len(ROOFS), size=4)
        for row, number in enumerate(colours):
            yield box(
                x,
                y + (row - 1.5) * 0.22 * size,
                1.2 * size,
                0.2 * size,
                _QUAY + 2.6 * rng.integers(1, 4),
                (*CARS, *ROOFS)[int(number)],
            )
    else:
        for _ in range(4):
            dx, dy = rng.uniform(-0.5, 0.5, 2) * size
            yield box(x + dx, y + dy, 4.5, 1.9, _QUAY + 1.6, CARS[int(rng.integers(len(CARS)))])


def yard(left: float, low: float, right: float, high: float, size: float, rng: np.random.Generator) -> list[SolidPart]:
    """Return sheds, stacks of containers and cars on a rectangle of quay, one every `size` metres or none."""
    return [
        part
        for x in np.arange(left + size / 2, right, 1.7 * size)
        for y in np.arange(low + size / 2, high, 1.3 * size)
        if rng.random() < 0.55
        for part in _yard_item(float(x), float(y), size, rng)
    ]


def vehicles(
    left: float, low: float, right: float, high: float, rng: np.random.Generator, *, scale: float = 1.0
) -> list[SolidPart]:
    """Return a few cars and lorries, anywhere in a rectangle."""
    parts = []
    for _ in range(int(rng.integers(0, 4))):
        car = [box(0, 0, 7 * scale, 2.6 * scale, 2.6, CARS[int(rng.integers(len(CARS)))])]
        parts += placed(car, rng.uniform(left, right), rng.uniform(low, high), rng.uniform(0, 2 * np.pi))
    return parts
