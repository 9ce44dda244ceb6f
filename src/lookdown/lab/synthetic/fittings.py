"""What stands on the deck of a merchant ship. A fitting looks at the hull and its paint, and returns parts.

Places along the ship are shares of its length, from -0.5, the stern, to 0.5, the bow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from lookdown.lab.synthetic.hull import Hull, Paint
from lookdown.lab.synthetic.parts import SolidPart, box, disc, dome, mirrored, plate, shade

__all__ = [
    "DARK", "STEEL", "WHITE", "YELLOW", "Fitting", "car_deck", "cargo", "containers", "cranes", "funnel", "hatches",
    "house", "liner", "pipes", "roof", "spheres", "trawl",
]  # fmt: skip

WHITE, GREY, DARK, STEEL = (0.80, 0.80, 0.78), (0.42, 0.44, 0.46), (0.10, 0.10, 0.11), (0.55, 0.56, 0.56)
YELLOW, ORANGE, POOL, WOOD = (0.75, 0.60, 0.12), (0.80, 0.30, 0.08), (0.18, 0.55, 0.65), (0.50, 0.38, 0.24)

Fitting = Callable[[Hull, Paint, np.random.Generator], Iterable[SolidPart]]


def house(at: float, length: float, *, width: float = 0.86, height: float = 22.0, wings: bool = True) -> Fitting:
    """Accommodation in tiers, with a dark row of windows and the wings of the bridge."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        x, long, wide, deck = hull.at(at), length * hull.length, width * hull.beam, hull.freeboard
        yield box(x, 0, long, wide, deck + 0.5 * height, paint.house)
        yield box(x + 0.06 * long, 0, 0.72 * long, 0.86 * wide, deck + 0.75 * height, paint.house)
        front = x + 0.28 * long
        if wings:
            yield box(front, 0, 0.2 * long, 1.0 * hull.beam, deck + 0.9 * height, paint.house)
        yield box(front - 0.1 * long, 0, 0.45 * long, 0.7 * wide, deck + height, shade(paint.house, 0.93))
        yield box(front + 0.13 * long, 0, 0.07 * long, 0.7 * wide, deck + 0.95 * height, DARK)
        yield box(front - 0.1 * long, 0, 0.1 * long, 0.1 * wide, deck + 1.35 * height, STEEL)

    return fit


def funnel(at: float, *, size: float = 0.22, height: float = 30.0, y: float = 0.0, pair: bool = False) -> Fitting:
    """A funnel in the colour of its company, black on top; or one on each side."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        x, wide = hull.at(at), size * hull.beam
        for side in (1, -1) if pair else (1,):
            yield box(x, side * y * hull.beam, 1.5 * wide, wide, hull.freeboard + height, paint.accent)
            yield box(x, side * y * hull.beam, 0.9 * wide, 0.6 * wide, hull.freeboard + height, DARK)

    return fit


def containers(first: float, last: float, bays: int, *, gap: tuple[float, float] | None = None) -> Fitting:
    """Rows of boxes in many colours, stacked to different heights; bays inside `gap` are left free."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        step = (last - first) * hull.length / bays
        for bay in range(bays):
            x = hull.at(first) + (bay + 0.5) * step
            if gap and gap[0] * hull.length < x < gap[1] * hull.length:
                continue
            half = min(float(hull.half_width(x + step / 2)), float(hull.half_width(x - step / 2))) - 1
            rows = max(int(2 * half // (hull.beam / 8)), 1)
            wide = 2 * half / rows
            tier = int(rng.integers(3, 6))
            for row in range(rows):
                high = hull.freeboard + 2.6 * max(tier - int(rng.random() < 0.3), 1)
                colour = paint.boxes[int(rng.integers(len(paint.boxes)))]
                yield box(x, -half + (row + 0.5) * wide, 0.86 * step, 0.94 * wide, high, colour)

    return fit


def hatches(first: float, last: float, count: int) -> Fitting:
    """The covers of the holds of a bulk carrier, each with a seam along the middle."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        step = (last - first) * hull.length / count
        cover = shade(paint.deck, 1.35, 0.05)
        for hold in range(count):
            x = hull.at(first) + (hold + 0.5) * step
            yield box(x, 0, 0.74 * step, 0.56 * hull.beam, hull.freeboard + 3.5, cover)
            yield box(x, 0, 0.74 * step, 0.025 * hull.beam, hull.freeboard + 3.5, DARK)

    return fit


def cranes(first: float, last: float, count: int) -> Fitting:
    """Deck cranes between the holds: a high pedestal, and a jib laid along the ship."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        step = (last - first) * hull.length / count
        for index in range(count):
            x = hull.at(first) + (index + 1.0) * step
            yield disc(x, 0, 0.10 * hull.beam, hull.freeboard + 16, YELLOW)
            yield box(x - 0.42 * step, 0.03 * hull.beam, 0.85 * step, 0.08 * hull.beam, hull.freeboard + 19, YELLOW)
            yield disc(x, 0, 0.06 * hull.beam, hull.freeboard + 20, WHITE)

    return fit


def pipes(first: float, last: float) -> Fitting:
    """The deck of a tanker: a bundle of pipes along the middle, the manifold across, and tank hatches."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        start, end, deck = hull.at(first), hull.at(last), hull.freeboard
        middle, long = (start + end) / 2, end - start
        for y in (-0.09, -0.03, 0.03, 0.09):
            yield box(middle, y * hull.beam, long, 0.022 * hull.beam, deck + 2.0, STEEL)
        yield box(middle, 0, 0.035 * hull.length, 0.9 * hull.beam, deck + 2.5, STEEL)
        for x in np.linspace(start + 0.06 * long, end - 0.06 * long, 6):
            yield box(float(x), 0, 0.006 * hull.length, 0.9 * hull.beam, deck + 1.0, shade(paint.deck, 0.75))
            yield from mirrored(disc(float(x) + 0.03 * long, 0.28 * hull.beam, 0.045 * hull.beam, deck + 2.5, STEEL))
        yield box(middle + 0.04 * hull.length, 0.2 * hull.beam, 0.02 * hull.length, 0.06 * hull.beam, deck + 14, YELLOW)

    return fit


def spheres(first: float, last: float, count: int) -> Fitting:
    """The round tanks of a gas carrier, half of each above the deck."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        step = (last - first) * hull.length / count
        for tank in range(count):
            ball = disc(
                hull.at(first) + (tank + 0.5) * step, 0, min(0.46 * step, 0.44 * hull.beam), hull.freeboard + 6, WHITE
            )
            yield from dome(ball, 14)
        yield box(
            hull.at((first + last) / 2), 0, (last - first) * hull.length, 0.04 * hull.beam, hull.freeboard + 21, STEEL
        )

    return fit


def roof(first: float, last: float, height: float, *, vents: int = 0) -> Fitting:
    """A closed deck from rail to rail: a car carrier; with a row of vents on both sides."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        xs = np.linspace(hull.at(first), hull.at(last), 14)
        ys = np.maximum(hull.half_width(xs) - 0.4, 0)
        edge = np.concatenate([np.stack([xs, -ys], axis=1), np.stack([xs, ys], axis=1)[::-1]])
        yield plate(edge, hull.freeboard + height, paint.house)
        for x in np.linspace(hull.at(first) * 0.94, hull.at(last) * 0.8, vents):
            yield from mirrored(
                box(
                    float(x), 0.36 * hull.beam, 0.014 * hull.length, 0.1 * hull.beam, hull.freeboard + height + 2, STEEL
                )
            )
        if vents:
            for y in (-0.12, 0.12):
                yield box(0, y * hull.beam, 0.8 * hull.length, 0.02 * hull.beam, hull.freeboard + height, GREY)

    return fit


def liner() -> Fitting:
    """The decks of a cruise ship: tiers, boats along both sides, pools in the open."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        deck = hull.freeboard
        yield box(-0.02 * hull.length, 0, 0.84 * hull.length, 0.9 * hull.beam, deck + 18, WHITE)
        for x in np.linspace(hull.at(-0.32), hull.at(0.26), 11):
            yield from mirrored(
                box(float(x), 0.47 * hull.beam, 0.035 * hull.length, 0.07 * hull.beam, deck + 8, ORANGE)
            )
        yield box(0.02 * hull.length, 0, 0.70 * hull.length, 0.62 * hull.beam, deck + 26, WHITE)
        for x, long in ((0.10, 0.12), (-0.12, 0.10)):
            yield box(hull.at(x), 0, long * hull.length, 0.46 * hull.beam, deck + 24, WOOD)
            yield disc(hull.at(x) - 0.02 * hull.length, 0, 0.14 * hull.beam, deck + 24, POOL)
        yield box(hull.at(-0.01), 0, 0.05 * hull.length, 0.5 * hull.beam, deck + 30, STEEL)
        yield disc(hull.at(-0.39), 0, 0.2 * hull.beam, deck + 18, POOL)
        yield from dome(disc(hull.at(0.28), 0, 0.12 * hull.beam, deck + 27, WHITE), 4)

    return fit


def car_deck(first: float, last: float) -> Fitting:
    """The open deck of a ferry with lanes of cars."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        start, long = hull.at(first), (last - first) * hull.length
        yield box(start + long / 2, 0, long, 0.78 * hull.beam, hull.freeboard + 1, GREY)
        for lane in np.linspace(-0.28, 0.28, 5):
            for x in np.arange(start + 0.08 * long, start + 0.94 * long, 6.0):
                if rng.random() < 0.6:
                    yield box(
                        float(x),
                        lane * hull.beam,
                        4.6,
                        2.0,
                        hull.freeboard + 2.6,
                        paint.boxes[int(rng.integers(len(paint.boxes)))],
                    )

    return fit


def cargo(first: float, last: float) -> Fitting:
    """The long low deck of a supply vessel, planked, with what it carries lying about."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        start, long = hull.at(first), (last - first) * hull.length
        yield box(start + long / 2, 0, long, 0.8 * hull.beam, hull.freeboard - 3, (0.44, 0.33, 0.22))
        for _ in range(int(rng.integers(3, 9))):
            x, y = start + rng.uniform(0.1, 0.9) * long, rng.uniform(-0.28, 0.28) * hull.beam
            colour = paint.boxes[int(rng.integers(len(paint.boxes)))]
            yield box(x, y, rng.uniform(3, 7), rng.uniform(2, 4), hull.freeboard - 3 + 2.6, colour)

    return fit


def trawl() -> Fitting:
    """The working deck of a trawler: a gantry over the stern, nets, and derricks to both sides."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        deck = hull.freeboard
        yield box(hull.at(-0.42), 0, 0.04 * hull.length, 0.86 * hull.beam, deck + 7, YELLOW)
        yield disc(hull.at(-0.28), 0.12 * hull.beam, 0.18 * hull.beam, deck + 1.6, (0.10, 0.34, 0.30))
        yield disc(hull.at(-0.22), -0.18 * hull.beam, 0.13 * hull.beam, deck + 1.4, ORANGE)
        yield box(hull.at(-0.1), 0, 0.05 * hull.length, 0.5 * hull.beam, deck + 2, STEEL)
        yield from mirrored(box(hull.at(-0.02), 0.75 * hull.beam, 0.02 * hull.length, 0.7 * hull.beam, deck + 9, STEEL))

    return fit
