"""How an aircraft is drawn: a body, wings, a tail and engines from a row of measures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lookdown.lab.synthetic.parts import Colour, Points, SolidPart, box, disc, dome, mirrored, plate, tube

__all__ = ["Aircraft", "Livery", "draw_aircraft", "sample_livery"]

WHITE, SILVER, DARK = (0.78, 0.78, 0.77), (0.56, 0.57, 0.58), (0.09, 0.09, 0.10)
TAILS: tuple[Colour, ...] = (
    (0.10, 0.16, 0.40), (0.55, 0.10, 0.10), (0.12, 0.36, 0.22), (0.70, 0.45, 0.08), (0.40, 0.12, 0.36), WHITE,
)  # fmt: skip
MILITARY: tuple[Colour, ...] = (
    (0.46, 0.48, 0.50), (0.32, 0.35, 0.38), (0.60, 0.61, 0.61), (0.22, 0.26, 0.17), (0.52, 0.45, 0.33), SILVER,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Aircraft:
    """A kind of aircraft, in metres and degrees; positions along the body count from 0, the nose, to 1, the tail."""

    name: str
    length: float
    span: float
    width: float  # of the body
    wing_at: float  # where the leading edge meets the body
    chord: float  # at the root, as a share of the length
    taper: float = 0.3  # tip chord over root chord
    sweep: float = 0.0  # of the leading edge
    tail: Literal["low", "high", "none"] = "low"  # where the tailplane sits; high: a T
    tail_span: float = 0.36  # as a share of the span
    tail_sweep: float | None = None  # as the wing, unless it is said
    fins: int = 1
    wing_engines: int = 0  # under the wing, both sides together
    pods: int = 1  # engines that hang side by side in one position
    propellers: bool = False
    rear_engines: bool = False  # at the back of the body
    canards: bool = False
    radar_disc: bool = False
    body: Literal["round", "pointed", "none"] = "round"  # pointed: a fighter's
    military: bool = True


@dataclass(frozen=True, slots=True)
class Livery:
    """The colours of one aircraft."""

    body: Colour
    wing: Colour
    tail: Colour
    second: Colour | None = None  # patches of camouflage


def sample_livery(kind: Aircraft, rng: np.random.Generator) -> Livery:
    """Choose the colours of one aircraft: dull ones for the military, white and a bright tail for the others."""
    if not kind.military:
        tail = TAILS[rng.integers(len(TAILS))]
        body = tail if rng.random() < 0.1 else WHITE
        return Livery(body, SILVER if rng.random() < 0.7 else WHITE, tail)
    body = MILITARY[rng.integers(len(MILITARY))]
    if rng.random() < 0.15:
        return Livery(body, body, body, (0.6 * body[0], 0.66 * body[1], 0.6 * body[2]))
    return Livery(body, body, body)


def draw_aircraft(kind: Aircraft, livery: Livery) -> list[SolidPart]:
    """Return the parts of one aircraft of a kind."""
    parts = [*(_flying_wing(kind, livery) if kind.body == "none" else _parts(kind, livery))]
    if livery.second:
        parts = [part._replace(second=livery.second) if part.colour == livery.body else part for part in parts]
    return parts


def _parts(kind: Aircraft, livery: Livery) -> Iterator[SolidPart]:
    height = kind.width + 1.5
    low = 0.55 * height
    if kind.tail == "low":
        yield from _tailplane(kind, livery, 0.6 * height)
    if kind.wing_engines:
        yield from _wing_engines(kind, 0.45 * height)
    yield from _wing(kind, livery, low)
    if kind.canards:
        yield from _surface(_x(kind, 0.20), 0.46 * kind.span, 0.13 * kind.length, 0.3, 45, height * 0.7, livery.wing)
    yield from tube(_body(kind), 0.3 * height, height, livery.body)
    if kind.rear_engines:
        yield from mirrored(
            box(_x(kind, 0.76), 0.72 * kind.width, 0.13 * kind.length, 0.46 * kind.width, height, SILVER)
        )
        yield from mirrored(
            box(_x(kind, 0.70), 0.72 * kind.width, 0.015 * kind.length, 0.42 * kind.width, height, DARK)
        )
    yield from _windscreen(kind, height)
    yield from _fins(kind, livery, height)
    if kind.tail == "high":
        yield from _tailplane(kind, livery, 2.0 * height)
    if kind.radar_disc:
        x = _x(kind, 0.60)
        yield from dome(disc(x, 0, 0.12 * kind.length, 1.75 * height, (0.66, 0.66, 0.64)), 0.5)
        yield box(x, 0, 0.23 * kind.length, 0.02 * kind.length, 1.75 * height, DARK)


def _x(kind: Aircraft, share: float) -> float:
    """Return the position on the body, as metres before the middle."""
    return (0.5 - share) * kind.length


def _body(kind: Aircraft) -> Points:
    pointed = kind.body == "pointed"
    nose = (
        ((0.0, 0.02), (0.06, 0.28), (0.14, 0.62), (0.24, 0.9))
        if pointed
        else ((0.0, 0.2), (0.02, 0.5), (0.06, 0.84), (0.11, 1.0))
    )
    rear = ((0.55, 1.0), (0.82, 0.95), (1.0, 0.62)) if pointed else ((0.62, 1.0), (0.82, 0.66), (1.0, 0.14))
    xs = np.array([_x(kind, share) for share, _ in (*nose, *rear)])
    ys = np.array([wide * kind.width / 2 for _, wide in (*nose, *rear)])
    return np.concatenate([np.stack([xs, ys], axis=1), np.stack([xs, -ys], axis=1)[::-1]])


def _surface(
    x: float, span: float, chord: float, taper: float, sweep: float, top: float, colour: Colour
) -> Iterator[SolidPart]:
    """Yield the two halves of a wing whose leading edge starts at `x`."""
    tip = x - span / 2 * np.tan(np.radians(sweep))
    yield from mirrored(plate([(x, 0), (tip, span / 2), (tip - taper * chord, span / 2), (x - chord, 0)], top, colour))


def _wing(kind: Aircraft, livery: Livery, top: float) -> Iterator[SolidPart]:
    x, chord = _x(kind, kind.wing_at), kind.chord * kind.length
    yield from _surface(x, kind.span, chord, kind.taper, kind.sweep, top, livery.wing)
    back = x - chord  # the flaps show as a darker line along the trailing edge
    tip = x - kind.span / 2 * np.tan(np.radians(kind.sweep)) - kind.taper * chord
    seam = np.array(
        [
            [back + 0.2 * chord, 0],
            [tip + 0.2 * kind.taper * chord, 0.47 * kind.span],
            [tip + 0.1 * kind.taper * chord, 0.47 * kind.span],
            [back + 0.15 * chord, 0],
        ]
    )
    yield from mirrored(SolidPart(seam, top, (0.7 * livery.wing[0], 0.7 * livery.wing[1], 0.7 * livery.wing[2])))


def _tailplane(kind: Aircraft, livery: Livery, top: float) -> Iterator[SolidPart]:
    span = kind.tail_span * kind.span
    sweep = kind.sweep if kind.tail_sweep is None else kind.tail_sweep
    chord = min(0.55 * kind.chord * kind.length, 0.17 * kind.length)
    at = 0.9 if kind.tail == "high" else 0.86
    yield from _surface(_x(kind, at), span, chord, 0.4, sweep, top, livery.wing)


def _wing_engines(kind: Aircraft, top: float) -> Iterator[SolidPart]:
    """Yield engines ahead of the leading edge, the same distance apart, on both sides."""
    a_side = kind.wing_engines // 2
    spots = (0.32,) if a_side == 1 else (0.27, 0.50) if a_side == 2 else (0.25, 0.42, 0.60, 0.78)
    for share in spots[:a_side]:
        y = share * kind.span / 2
        edge = _x(kind, kind.wing_at) - y * np.tan(np.radians(kind.sweep))
        jet = float(np.clip(0.62 * kind.width, 2.4, 4.0)) / kind.pods**0.5
        wide = 0.036 * kind.span if kind.propellers else jet
        long = 0.11 * kind.length if kind.propellers else 1.75 * wide
        for pod in range(kind.pods):
            across = y + (pod - (kind.pods - 1) / 2) * 1.05 * wide
            yield from mirrored(box(edge + 0.25 * long, across, 1.5 * long, wide, top + 1.4, SILVER))
            yield from mirrored(box(edge + 0.95 * long, across, 0.12 * long, 0.9 * wide, top + 1.4, DARK))
        if kind.propellers:
            yield from mirrored(
                box(edge + 1.02 * long, y, 0.012 * kind.span, 0.12 * kind.span, top + 2, (0.16, 0.16, 0.17))
            )


def _windscreen(kind: Aircraft, height: float) -> Iterator[SolidPart]:
    if kind.body == "pointed":
        yield disc(_x(kind, 0.2), 0, 0.3 * kind.width, height + 0.5, (0.12, 0.15, 0.17))
        yield disc(_x(kind, 0.25), 0, 0.3 * kind.width, height + 0.5, (0.12, 0.15, 0.17))
    else:
        yield box(_x(kind, 0.045), 0, 0.016 * kind.length, 0.55 * kind.width, height, DARK)


def _fins(kind: Aircraft, livery: Livery, height: float) -> Iterator[SolidPart]:
    """Yield the upright fins: thin from above, but high, so that their shadow is long."""
    rise, long = 0.11 * kind.length + height, 0.15 * kind.length
    if kind.fins == 2:
        start = _x(kind, 0.80)
        fin = plate(
            [
                (start, 0.62 * kind.width),
                (start - long, 0.9 * kind.width),
                (start - long, 1.1 * kind.width),
                (start - 0.3 * long, 0.86 * kind.width),
            ],
            rise,
            livery.tail,
        )
        yield from mirrored(fin)
    elif kind.fins == 1:
        yield box(_x(kind, 0.92), 0, long, max(0.10 * kind.width, 0.25), rise, livery.tail)


def _flying_wing(kind: Aircraft, livery: Livery) -> Iterator[SolidPart]:
    """Yield a wing with a saw-tooth back and nothing else."""
    half, length = kind.span / 2, kind.length
    front = length / 2
    back = half * np.tan(np.radians(kind.sweep))
    tip = front - back
    edge = [
        (front, 0), (tip, half), (tip - 0.16 * length, 0.94 * half), (tip + 0.18 * length, 0.56 * half),
        (front - 0.98 * length, 0.30 * half), (front - 0.78 * length, 0.15 * half), (front - length, 0),
    ]  # fmt: skip
    outline = np.array([*edge, *((x, -y) for x, y in edge[-2:0:-1])])
    yield plate(outline, 2.2, livery.wing)
    middle = np.array(
        [
            (front, 0),
            (front - 0.4 * length, 0.16 * half),
            (front - 0.75 * length, 0.12 * half),
            (front - 0.95 * length, 0),
        ]
    )
    hump = np.concatenate([middle, middle[-2:0:-1] * (1, -1)])
    yield from tube(hump, 2.0, 4.6, livery.body)
    yield from mirrored(box(front - 0.42 * length, 0.15 * half, 0.2 * length, 0.06 * half, 3.2, DARK))
    yield box(front - 0.17 * length, 0, 0.04 * length, 0.08 * half, 4.6, DARK)
