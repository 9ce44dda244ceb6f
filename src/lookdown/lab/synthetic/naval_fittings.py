"""What stands on the deck of a warship: decks to fly from, guns, launchers and masts; see `fittings`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lookdown.lab.synthetic.fittings import DARK, STEEL, WHITE, YELLOW, Fitting
from lookdown.lab.synthetic.hull import Hull, Paint
from lookdown.lab.synthetic.parts import SolidPart, box, disc, dome, mirrored, plate

__all__ = ["cells", "flight_deck", "gun", "helideck", "launchers", "mast"]

DECK, LANDING, TUBE = (0.25, 0.26, 0.27), (0.14, 0.30, 0.22), (0.62, 0.64, 0.62)


def flight_deck(*, angled: bool) -> Fitting:
    """A deck to fly from, wider than the hull, with its markings and the island on the right."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        length, half, top = hull.length, 0.62 * hull.beam, hull.freeboard + 3
        left = [(0.5, 0.55), (0.40, 0.75), (0.24, 0.85), (0.16, 1.45), (-0.26, 1.45), (-0.36, 0.95), (-0.5, 0.85)]
        straight = [(0.5, 0.55), (0.40, 0.95), (0.2, 1.0), (0.1, 1.0), (-0.3, 1.0), (-0.4, 1.0), (-0.5, 0.95)]
        right = [
            (-0.5, -0.85),
            (-0.34, -1.05),
            (-0.2, -1.18),
            (0.16, -1.18),
            (0.28, -0.95),
            (0.40, -0.75),
            (0.5, -0.55),
        ]
        edge = [(x * length, y * half) for x, y in [*(left if angled else straight), *right]]
        yield plate(edge, top, DECK)
        if angled:
            slope = np.array([[-0.49 * length, -0.45 * half], [0.17 * length, 0.95 * half]])
            for shift, wide in ((0.0, 0.05), (0.42, 0.035), (-0.42, 0.035)):
                band = np.array([[0, -wide], [0, wide]]) * half + (0, shift * half)
                yield SolidPart(
                    np.array([slope[0] + band[0], slope[1] + band[0], slope[1] + band[1], slope[0] + band[1]]),
                    top,
                    WHITE,
                )
        else:
            yield box(0, 0.35 * half, 0.9 * length, 0.05 * half, top, WHITE)
            for x in np.linspace(-0.4, 0.36, 7):
                yield disc(float(x) * length, 0.35 * half, 0.2 * half, top, (0.42, 0.42, 0.4))
                yield disc(float(x) * length, 0.35 * half, 0.15 * half, top, DECK)
        yield from mirrored(box(0.30 * length, 0.18 * half, 0.3 * length, 0.03 * half, top, WHITE))
        yield box(0.02 * length, -0.92 * half, 0.13 * length, 0.28 * half, top + 14, paint.house)
        yield box(0.03 * length, -0.92 * half, 0.06 * length, 0.22 * half, top + 22, paint.house)
        yield box(0.01 * length, -0.92 * half, 0.03 * length, 0.1 * half, top + 30, DARK)
        for x in (-0.40, -0.34, -0.12, 0.14, 0.20, 0.34):
            if rng.random() < 0.6:
                yield plate(
                    [(x * length + dx, -0.62 * half + dy) for dx, dy in ((8, 0), (-4, 6), (-7, 0), (-4, -6))],
                    top + 4,
                    STEEL,
                )

    return fit


def helideck(at: float, *, high: float = 1.0, radius: float = 0.34) -> Fitting:
    """A landing deck with its circle and its H."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        x, r, top = hull.at(at), radius * hull.beam, hull.freeboard + high
        yield disc(x, 0, 1.15 * r, top, LANDING)
        yield disc(x, 0, 0.95 * r, top, YELLOW)
        yield disc(x, 0, 0.78 * r, top, LANDING)
        for y in (-0.28, 0.28):
            yield box(x, y * r, 0.9 * r, 0.17 * r, top, WHITE)
        yield box(x, 0, 0.17 * r, 0.56 * r, top, WHITE)

    return fit


def gun(at: float) -> Fitting:
    """A turret and its barrel."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        x, r = hull.at(at), 0.14 * hull.beam
        yield from dome(disc(x, 0, r, hull.freeboard + 3, paint.house), 1)
        yield box(x + 2.2 * r, 0, 3 * r, 0.3 * r, hull.freeboard + 3, STEEL)

    return fit


def cells(at: float, *, length: float = 0.06, width: float = 0.42) -> Fitting:
    """A field of launch cells, dark lids in rows."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        x, long, wide, top = hull.at(at), length * hull.length, width * hull.beam, hull.freeboard + 1.5
        yield box(x, 0, 1.15 * long, 1.15 * wide, top, STEEL)
        for i in (-0.36, -0.12, 0.12, 0.36):
            for j in (-0.36, -0.12, 0.12, 0.36):
                yield box(x + i * long, j * wide, 0.17 * long, 0.17 * wide, top, DARK)

    return fit


def launchers(at: float) -> Fitting:
    """Two banks of missile tubes laid across the deck."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        for shift, side in ((0.022, 1), (-0.022, -1)):
            for number in range(4):
                x = hull.at(at + shift) + (number - 1.5) * 0.011 * hull.length
                yield box(x, 0.05 * side * hull.beam, 0.01 * hull.length, 0.72 * hull.beam, hull.freeboard + 4, TUBE)

    return fit


def mast(at: float, height: float) -> Fitting:
    """A tower with its radars."""

    def fit(hull: Hull, paint: Paint, rng: np.random.Generator) -> Iterable[SolidPart]:
        x = hull.at(at)
        yield box(x, 0, 0.035 * hull.length, 0.36 * hull.beam, hull.freeboard + 0.8 * height, paint.house)
        yield box(x, 0, 0.015 * hull.length, 0.6 * hull.beam, hull.freeboard + 0.9 * height, STEEL)
        yield from dome(disc(x, 0, 0.10 * hull.beam, hull.freeboard + height, WHITE), 2)

    return fit
