"""One picture of the world: an object (or none) on its ground, in its light, through a sensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from lookdown.lab.synthetic.grounds import GROUNDS, GroundImage, Location, Site, Surroundings, lay
from lookdown.lab.synthetic.kinds import KINDS, Kind
from lookdown.lab.synthetic.parts import Points, SolidPart, bounds, placed
from lookdown.lab.synthetic.rendering import Field, GroundView, Sun, average_down, light, paint
from lookdown.lab.synthetic.sensors import Sensor, observe

__all__ = ["Picture", "Wake", "expose", "outline_of", "take"]

_FOAM = np.array([0.55, 0.60, 0.60], np.float32)
_COMPANY = {"sea": 0.15, "harbour": 0.35, "apron": 0.35}  # how often there is another object


@dataclass(frozen=True, slots=True)
class Picture:
    """Pixels, and where in them the object is."""

    pixels: NDArray[np.uint8]  # (rows, columns, 3)
    view: GroundView
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
    location: Location,
    sensor: Sensor,
    size: int,
    rng: np.random.Generator,
    *,
    at: tuple[float, float] = (0.0, 0.0),
) -> Picture:
    """Take a square picture of an object, or of the ground alone, `at` metres from the middle of a location."""
    heading = rng.uniform(0, 2 * np.pi)
    # Without an object, the window is one that an object of this ground would have: nothing tells the two apart.
    object_kind = kind or _any_kind(location.ground, rng)
    parts = placed(object_kind.draw(rng), 0, 0, 0, scale=rng.uniform(0.97, 1.03))
    outline = outline_of(parts, heading)
    across = float(np.ptp(outline, axis=0).max()) * rng.uniform(1.15, 1.4)
    shift = rng.uniform(-0.04, 0.04, 2) * across
    view = GroundView(-across / 2 + shift[0], across / 2 + shift[1], size, size, across / size)
    site = Site(*_measures(parts), heading, across * 0.75)
    surroundings = GROUNDS[location.ground](site, rng)
    if kind and rng.random() < _COMPANY.get(location.ground, 0.0):
        surroundings.clutter += _neighbour(site, surroundings, view, outline, location.ground, rng)
    wake = Wake(0, 0, heading, site.length, site.width, rng.uniform(0.3, 1)) if _moves(kind, location, rng) else None
    wear = rng.uniform(0.02, 0.10)
    sun = Sun(location.sun_azimuth + rng.uniform(-12, 12), sensor.sun_elevation + rng.uniform(-4, 4))
    objects = placed(parts, 0, 0, heading) if kind else []
    radiance = expose(view, surroundings, objects, [wake] if wake else [], location, sun, at=at, wear=wear)
    return Picture(observe(sensor, radiance, view.step, rng), view, outline if kind else None)


def expose(
    view: GroundView,
    surroundings: Surroundings,
    objects: list[SolidPart],
    wakes: list[Wake],
    location: Location,
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
    ground = lay(surroundings, view, location, factor, at)
    colour = _with_foam(ground, view, wakes, factor) if wakes else ground.colour
    pattern = _enlarged(ground.grain + 0.5 * ground.cloud, factor)
    height = np.zeros((finer.rows, finer.columns), np.float32)
    seen = paint(finer, [*surroundings.clutter, *objects], colour, height, pattern)
    worn = np.flatnonzero(seen > len(surroundings.clutter))
    colour.reshape(-1, 3)[worn] *= 1 + np.float32(wear) * np.clip(pattern.ravel()[worn, None], -2.5, 2.5)
    light(finer, colour, height, sun)
    return average_down(colour, factor)


def outline_of(parts: list[SolidPart], heading: float, x: float = 0.0, y: float = 0.0) -> Points:
    """Return the corners of the box around parts, turned with them."""
    left, right, low, high = bounds(parts)
    corners = np.array([[left, low], [right, low], [right, high], [left, high]])
    return placed([SolidPart(corners, 0, (0, 0, 0))], x, y, heading)[0].outline


def _measures(parts: list[SolidPart]) -> tuple[float, float]:
    """Return length and width."""
    left, right, low, high = bounds(parts)
    return right - left, high - low


def _any_kind(ground: str, rng: np.random.Generator) -> Kind:
    able = [kind for kind in KINDS.values() if ground in kind.grounds]
    return able[int(rng.integers(len(able)))]


def _moves(kind: Kind | None, location: Location, rng: np.random.Generator) -> bool:
    return kind is not None and location.ground == "sea" and rng.random() < 0.6


def _neighbour(
    site: Site, surroundings: Surroundings, view: GroundView, outline: Points, ground: str, rng: np.random.Generator
) -> list[SolidPart]:
    """Return another object, cut by the edge of the picture: ahead or astern at a quay, beside or anywhere elsewhere.

    It is left out where it would show more than half of itself, or come too near.
    """
    parts = _any_kind(ground, rng).draw(rng)
    length, width = _measures(parts)
    away = int(rng.choice([-1, 1]))
    if ground == "harbour":
        x = away * ((site.length + length) / 2 + rng.uniform(0.03, 0.2) * site.length)
        y, turn = surroundings.side * (site.width - width) / 2, np.pi * int(rng.integers(2))
    elif ground == "apron":
        y = -(surroundings.side or away) * ((site.width + width) / 2 + rng.uniform(0.05, 0.3) * width)
        x, turn = rng.uniform(-0.3, 0.3) * site.length, rng.choice([0, np.pi]) + rng.uniform(-0.05, 0.05)
    else:
        angle, turn = rng.uniform(0, 2 * np.pi), rng.uniform(0, 2 * np.pi)
        far = 0.67 * site.reach + rng.uniform(-0.05, 0.3) * length  # the window reaches two thirds of its corners
        x, y = far * np.cos(angle), far * np.sin(angle)
    stands = placed(placed(parts, x, y, turn), 0, 0, site.heading)
    taken = shapely.Polygon(
        placed([SolidPart(outline_of(parts, turn, x, y), 0, (0, 0, 0))], 0, 0, site.heading)[0].outline
    )
    visible = taken.intersection(shapely.Polygon(view.corners)).area
    near = taken.distance(shapely.Polygon(outline)) < 0.01 * site.length
    return [] if near or visible > 0.5 * taken.area else stands


def _with_foam(ground: GroundImage, view: GroundView, wakes: list[Wake], factor: int) -> Field:
    """Return the colours with water whitened behind and beside moving ships."""
    white = np.zeros((view.rows, view.columns), np.float32)
    for wake in wakes:
        long, half = wake.length, wake.width / 2
        bright = int(60 + 150 * wake.speed)
        trail = np.array([[-0.45, 0.8], [-1.6, 1.5], [-1.6, -1.5], [-0.45, -0.8]]) * (long, half)
        bow = np.array([[0.5, 0], [0.1, 1.5], [-0.55, 2.5], [-0.5, 2.0], [0.1, 1.05]]) * (long, half)
        canvas = Image.new("L", (view.columns, view.rows), 0)
        draw = ImageDraw.Draw(canvas)
        for shape, value in ((bow, bright // 2), (bow * (1, -1), bright // 2), (trail, bright)):
            corners = placed([SolidPart(shape, 0, (0, 0, 0))], wake.x, wake.y, wake.heading)[0].outline
            draw.polygon((view.pixels(corners) - 0.5).ravel().tolist(), fill=value)
        soft = canvas.filter(ImageFilter.GaussianBlur(max(0.012 * long / view.step, 0.6)))
        np.maximum(white, np.asarray(soft, np.float32) / 255, out=white)
    white *= np.clip(0.75 + 0.35 * ground.grain + 0.2 * ground.cloud, 0, 1.2)
    share = (_enlarged(np.clip(white, 0, 0.95), factor) * ground.water)[:, :, None]
    colour: Field = ground.colour + share * (_FOAM - ground.colour)
    return colour


def _enlarged(field: Field, factor: int) -> Field:
    return field.repeat(factor, axis=0).repeat(factor, axis=1)
