"""One picture of the world: an object (or none) on its ground, in its light, through a sensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from lookdown.chips.synthetic.grounds import GROUNDS, Place, Setting, Site, lay
from lookdown.chips.synthetic.kinds import KINDS, Kind
from lookdown.chips.synthetic.parts import Part, Points, bounds, placed
from lookdown.chips.synthetic.rendering import Field, Sun, View, average_down, light, paint
from lookdown.chips.synthetic.sensors import Sensor, observe

__all__ = ["Picture", "Wake", "expose", "outline_of", "take"]

_FOAM = np.array([0.55, 0.60, 0.60], np.float32)
_EMPTY = (12.0, 320.0)  # metres across a picture of the ground alone


@dataclass(frozen=True, slots=True)
class Picture:
    """Pixels, and where in them the object is."""

    pixels: NDArray[np.uint8]  # (rows, columns, 3)
    view: View
    outline: Points | None  # the corners of the object's box in metres, turned with it


@dataclass(frozen=True, slots=True)
class Wake:
    """The foam of a moving ship: where it is, how it heads, and how fast it is, from 0 to 1."""

    x: float
    y: float
    heading: float
    length: float
    width: float
    speed: float


def take(
    kind: Kind | None,
    place: Place,
    sensor: Sensor,
    size: int,
    rng: np.random.Generator,
    *,
    at: tuple[float, float] = (0.0, 0.0),
) -> Picture:
    """Take a square picture of an object of a kind, or of the ground alone, `at` metres from the middle of a place."""
    heading = rng.uniform(0, 2 * np.pi)
    parts = placed(kind.draw(rng), 0, 0, 0, scale=rng.uniform(0.97, 1.03)) if kind else []
    outline = outline_of(parts, heading) if parts else None
    across = float(np.ptp(outline, axis=0).max()) * rng.uniform(1.15, 1.4) if outline is not None else _across(rng)
    shift = rng.uniform(-0.04, 0.04, 2) * across
    view = View(-across / 2 + shift[0], across / 2 + shift[1], size, size, across / size)
    length, width = _measures(parts) if parts else (0.5 * across, 0.25 * across)
    site = Site(length, width, heading, across * 0.75)
    setting = GROUNDS[place.ground](site, rng)
    if kind and rng.random() < (0.1 if place.ground == "sea" else 0.25):
        setting.clutter += _neighbour(site, place.ground, rng)
    wake = Wake(0, 0, heading, length, width, rng.uniform(0.3, 1)) if _moves(kind, place, rng) else None
    turned = placed(parts, 0, 0, heading)
    wear = rng.uniform(0.02, 0.10)
    sun = Sun(place.sun_azimuth + rng.uniform(-12, 12), sensor.sun_elevation + rng.uniform(-4, 4))
    radiance = expose(view, setting, turned, [wake] if wake else [], place, sun, at=at, wear=wear)
    return Picture(observe(sensor, radiance, view.step, rng), view, outline)


def expose(
    view: View,
    setting: Setting,
    objects: list[Part],
    wakes: list[Wake],
    place: Place,
    sun: Sun,
    *,
    at: tuple[float, float] = (0.0, 0.0),
    wear: float = 0.08,
    factor: int = 3,
) -> Field:
    """Return the light that comes from a window of the world, before a sensor has seen it.

    Things are painted `factor` times finer than the view and averaged down, which is what makes their edges smooth.
    """
    finer = view.finer(factor)
    colour, cloud, grain = lay(setting, view, place, factor, at)
    if wakes:
        colour = _foam(colour, view, wakes, cloud, grain, factor)
    pattern = _enlarged(grain + 0.5 * cloud, factor)
    height = np.zeros((finer.rows, finer.columns), np.float32)
    seen = paint(finer, [*setting.clutter, *objects], colour, height, pattern)
    worn = np.flatnonzero(seen > len(setting.clutter))
    colour.reshape(-1, 3)[worn] *= 1 + np.float32(wear) * np.clip(pattern.ravel()[worn, None], -2.5, 2.5)
    light(finer, colour, height, sun)
    return average_down(colour, factor)


def outline_of(parts: list[Part], heading: float, x: float = 0.0, y: float = 0.0) -> Points:
    """Return the corners of the box around parts, turned with them."""
    left, right, low, high = bounds(parts)
    corners = np.array([[left, low], [right, low], [right, high], [left, high]])
    return placed([Part(corners, 0, (0, 0, 0))], x, y, heading)[0].outline


def _measures(parts: list[Part]) -> tuple[float, float]:
    """Return length and width."""
    left, right, low, high = bounds(parts)
    return right - left, high - low


def _across(rng: np.random.Generator) -> float:
    """Return how much ground a picture without an object shows: as much as pictures with one."""
    low, high = np.log(_EMPTY)
    return float(np.exp(rng.uniform(low, high)))


def _moves(kind: Kind | None, place: Place, rng: np.random.Generator) -> bool:
    return kind is not None and place.ground == "sea" and rng.random() < 0.6


def _neighbour(site: Site, ground: str, rng: np.random.Generator) -> list[Part]:
    """Return another object at the edge of the picture: ahead or astern at a quay, beside elsewhere."""
    able = [kind for kind in KINDS.values() if ground in kind.grounds]
    parts = able[int(rng.integers(len(able)))].draw(rng)
    length, width = _measures(parts)
    if length > 2.2 * site.length:
        return []
    side = int(rng.choice([-1, 1]))
    if ground == "harbour":
        x, y = side * ((site.length + length) / 2 + rng.uniform(0.03, 0.2) * site.length), 0.0
    else:
        x, y = rng.uniform(-0.3, 0.3) * site.length, side * ((site.width + width) / 2 + rng.uniform(0.08, 0.4) * width)
    turn = rng.choice([0, np.pi]) + rng.uniform(-0.05, 0.05)
    return placed(placed(parts, x, y, turn), 0, 0, site.heading)


def _foam(colour: Field, view: View, wakes: list[Wake], cloud: Field, grain: Field, factor: int) -> Field:
    """Whiten the water behind and beside moving ships."""
    canvas = Image.new("L", (view.columns, view.rows), 0)
    draw = ImageDraw.Draw(canvas)
    for wake in wakes:
        long, half = wake.length, wake.width / 2
        bright = int(60 + 150 * wake.speed)
        trail = np.array(
            [
                [-0.45 * long, 0.8 * half],
                [-1.6 * long, 1.5 * half],
                [-1.6 * long, -1.5 * half],
                [-0.45 * long, -0.8 * half],
            ]
        )
        bow = np.array(
            [
                [0.5 * long, 0],
                [0.1 * long, 1.5 * half],
                [-0.55 * long, 2.5 * half],
                [-0.5 * long, 2.0 * half],
                [0.1 * long, 1.05 * half],
            ]
        )
        for shape, value in ((bow, bright // 2), (bow * (1, -1), bright // 2), (trail, bright)):
            corners = placed([Part(shape, 0, (0, 0, 0))], wake.x, wake.y, wake.heading)[0].outline
            draw.polygon((view.pixels(corners) - 0.5).ravel().tolist(), fill=value)
    soft = canvas.filter(ImageFilter.GaussianBlur(max(0.012 * wakes[0].length / view.step, 0.6)))
    share = np.asarray(soft, np.float32) / 255 * np.clip(0.75 + 0.35 * grain + 0.2 * cloud, 0, 1.2)
    share = _enlarged(np.clip(share, 0, 0.95), factor)[:, :, None]
    return colour + share * (_FOAM - colour)


def _enlarged(field: Field, factor: int) -> Field:
    return field.repeat(factor, axis=0).repeat(factor, axis=1)
