"""The ground that objects are seen on: sea, harbour, apron, forest and desert.

`Surroundings` say what lies where around an object: a surface everywhere, slabs of others on it, and clutter. It knows
no pixels; `lay` turns surfaces into colours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from lookdown.lab.synthetic.clutter import boat, building, trees, vehicles, yard
from lookdown.lab.synthetic.parts import Colour, Points, SolidPart, box, disc, dome, placed
from lookdown.lab.synthetic.rendering import Field, GroundView
from lookdown.lab.synthetic.textures import texture

__all__ = ["GROUNDS", "SURFACES", "GroundImage", "Location", "Site", "Surroundings", "lay"]


@dataclass(frozen=True, slots=True)
class Surface:
    """A colour, and how much each texture changes it."""

    colour: Colour
    cloud: float
    grain: float
    waves: float = 0.0


SURFACES: dict[str, Surface] = {
    "water": Surface((0.030, 0.060, 0.075), 0.10, 0.04, 0.22),
    "concrete": Surface((0.34, 0.335, 0.31), 0.10, 0.06),
    "asphalt": Surface((0.15, 0.15, 0.15), 0.14, 0.08),
    "grass": Surface((0.105, 0.145, 0.060), 0.22, 0.18),
    "soil": Surface((0.25, 0.19, 0.13), 0.16, 0.14),
    "sand": Surface((0.46, 0.37, 0.25), 0.13, 0.06),
    "wood": Surface((0.040, 0.062, 0.030), 0.20, 0.30),
}
_STRENGTHS = np.array([(it.cloud, it.grain, it.waves) for it in SURFACES.values()], np.float32).T
_NUMBER = {name: number for number, name in enumerate(SURFACES)}
YELLOW, WHITE = (0.62, 0.48, 0.10), (0.70, 0.70, 0.68)
_JOINT, _STAIN = (0.27, 0.265, 0.25), (0.24, 0.235, 0.22)


@dataclass(frozen=True, slots=True)
class Location:
    """A location on Earth on one day: what all pictures of it share."""

    name: str
    ground: str
    easting: float  # of its middle, in metres of `CRS`
    northing: float
    sun_azimuth: float  # degrees clockwise from north
    time: str  # ISO 8601
    tints: dict[str, Colour] = field(repr=False)  # how the surfaces here differ from the usual


@dataclass(frozen=True, slots=True)
class Site:
    """Room for an object at the origin; without one, its measures say how large the clutter around may be."""

    length: float
    width: float
    heading: float  # radians, against the clock from east
    reach: float  # metres from the origin to the corner of the window

    def outside(self, x: float, y: float, margin: float) -> bool:
        """Say whether a point, along and across the heading, is clear of the object."""
        return abs(x) > self.length / 2 + margin or abs(y) > self.width / 2 + margin


@dataclass(slots=True)
class Surroundings:
    """What lies around an object."""

    base: str
    slabs: list[tuple[Points, str]] = field(default_factory=list)
    clutter: list[SolidPart] = field(default_factory=list)
    side: int = 0  # where there is no room beside the object: 1 its left, -1 its right


@dataclass(frozen=True, slots=True)
class GroundImage:
    """The ground of a view: colours and where they are water, finer than the view, and textures at its own pixels."""

    colour: Field
    water: NDArray[np.bool_]
    cloud: Field
    grain: Field


def lay(
    surroundings: Surroundings, view: GroundView, location: Location, factor: int, at: tuple[float, float]
) -> GroundImage:
    """Return the colours of the ground, `factor` times finer than the view, and its textures at the view's own pixels.

    The origin of the view lies `at` metres from the middle of the location.

    Textures are taken at the view's own pixels, since they have no edges; slabs have, and are painted finer.
    """
    east, north = location.easting + at[0], location.northing + at[1]
    cloud, grain = (texture(kind, view, east=east, north=north) for kind in ("cloud", "grain"))
    slow = texture("cloud", view, east=north, north=east, scale=4.1)
    cloud = 0.7 * cloud + 0.7 * slow
    fields = [cloud, grain]
    if surroundings.base == "water":
        fields.append(texture("waves", view, east=east, north=north))
    finer = view.finer(factor)
    canvas = Image.new("L", (finer.columns, finer.rows), _NUMBER[surroundings.base])
    draw = ImageDraw.Draw(canvas)
    for outline, name in surroundings.slabs:
        draw.polygon((finer.pixels(outline) - 0.5).ravel().tolist(), fill=_NUMBER[name])
    which = np.asarray(canvas)
    shade = np.ones(which.shape, np.float32)
    for field_, strengths in zip(fields, _STRENGTHS, strict=False):
        shade += strengths[which] * field_.repeat(factor, axis=0).repeat(factor, axis=1)
    colours = np.array(
        [np.multiply(SURFACES[name].colour, location.tints.get(name, 1.0)) for name in SURFACES], np.float32
    )
    return GroundImage(colours[which] * np.maximum(shade, 0.15)[:, :, None], which == _NUMBER["water"], cloud, grain)


def sea(site: Site, rng: np.random.Generator) -> Surroundings:
    """Open water, now and then with a small boat."""
    surroundings = Surroundings("water")
    if rng.random() < 0.25:
        x, y = _beside(site, rng)
        surroundings.clutter += placed(list(boat(rng)), x, y, rng.uniform(0, 2 * np.pi))
    return surroundings


def harbour(site: Site, rng: np.random.Generator) -> Surroundings:
    """Water and a quay along the object, with sheds, stacks of containers, cranes and cars on it."""
    side = 1 if rng.random() < 0.5 else -1
    surroundings = Surroundings("water", side=side)
    edge = site.width / 2 + rng.uniform(1.5, 5)
    depth = 2.5 * site.reach if rng.random() < 0.7 else rng.uniform(0.25, 0.6) * site.length
    quay = np.array([[-1.6, 0], [1.6, 0], [1.6, 1], [-1.6, 1]]) * (site.reach, depth) + (0, edge)
    surroundings.slabs.append(
        (_turned(quay * (1, side), site.heading), "asphalt" if rng.random() < 0.3 else "concrete")
    )
    parts = [box(0, edge + 0.8, 3.2 * site.reach, 1.0, 2.2, (0.30, 0.27, 0.16))]
    room = min(depth, 1.6 * site.reach)
    size = float(np.clip(site.length / 7, 5, 30))
    goods = yard(-1.2 * site.reach, edge + 0.9 * size, 1.2 * site.reach, edge + room, size, rng)
    parts += [part for part in goods if np.hypot(*part.outline[0]) < 1.1 * site.reach]
    if rng.random() < 0.4:
        x = rng.uniform(-0.4, 0.4) * site.length
        parts.append(box(x, edge + 0.2 * size, 0.25 * size, 2.4 * size, 24, YELLOW))
        parts += [box(x + 0.45 * size * s, edge + 0.8 * size, 0.1 * size, 1.2 * size, 20, YELLOW) for s in (-1, 1)]
    surroundings.clutter += placed([_flipped(part, side) for part in parts], 0, 0, site.heading)
    return surroundings


def apron(site: Site, rng: np.random.Generator) -> Surroundings:
    """Concrete with joints and a painted line, service cars, grass or a terminal at the side."""
    surroundings = Surroundings("concrete")
    reach, parts = site.reach, list[SolidPart]()
    choice = rng.random()
    edge = site.width / 2 + rng.uniform(0.15, 0.6) * site.width if choice < 0.35 else 1.5 * reach
    for s in np.arange(-1.5 * reach, 1.5 * reach, 7.5):
        parts.append(box(float(s), (edge - 1.5 * reach) / 2, 0.16, edge + 1.5 * reach, 0, _JOINT))
        if s < edge:
            parts.append(box(0, float(s), 3 * reach, 0.16, 0, _JOINT))
    for _ in range(int(rng.integers(1, 5))):
        x, y = rng.uniform(-1, 1) * reach, rng.uniform(-1, 0.4) * reach
        parts.append(disc(x, min(y, edge - 0.1 * reach), rng.uniform(0.02, 0.07) * reach, 0, _STAIN))
    parts.append(box(0, 0, 3 * reach, max(0.012 * site.length, 0.25), 0, YELLOW))
    if choice < 0.35:
        surroundings.side = 1
        strip = np.array([[-3, 0], [3, 0], [3, 3], [-3, 3]]) * reach + (0, edge)
        surroundings.slabs.append((_turned(strip, site.heading), "grass"))
        parts.append(box(0, edge - 0.4, 6 * reach, 0.3, 0, WHITE))
    elif choice < 0.5:
        parts += building(site.length / 2 + 0.35 * reach, 0, 0.5 * reach, 3 * reach, 11, rng)
    parts += _service_cars(site, rng)
    surroundings.clutter += placed(parts, 0, 0, site.heading)
    return surroundings


def forest(site: Site, rng: np.random.Generator) -> Surroundings:
    """A paved clearing among trees."""
    surroundings = Surroundings("wood")
    half = np.array([site.length * rng.uniform(0.56, 0.75), site.width * rng.uniform(0.56, 0.75)])
    clearing = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * (half + rng.uniform(3, 8))
    paved = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half
    road = np.array([[0, -1], [3 * site.reach, -1], [3 * site.reach, 1], [0, 1]]) * (1, max(0.1 * site.width, 3))
    surface = "asphalt" if rng.random() < 0.6 else "concrete"
    for outline, name in ((clearing, "grass"), (road * (1, 1.3), "grass"), (road, surface), (paved, surface)):
        surroundings.slabs.append((_turned(outline, site.heading), name))
    spacing = max(4.5, site.reach / 10)
    rows = np.arange(-1.05 * site.reach, 1.05 * site.reach, spacing)
    centres = np.stack(np.meshgrid(rows, rows), axis=-1).reshape(-1, 2)
    centres += rng.uniform(-0.45, 0.45, centres.shape) * spacing
    sizes = rng.uniform(0.40, 0.68, len(centres)) * spacing
    on_road = (centres[:, 0] > 0) & (np.abs(centres[:, 1]) < max(0.13 * site.width, 4) + sizes)
    free = (np.abs(centres) > half + 3 + sizes[:, None]).any(axis=1) & ~on_road & (np.hypot(*centres.T) < site.reach)
    crowns = trees(centres[free], rng, sizes[free])
    surroundings.clutter += placed(crowns + _service_cars(site, rng), 0, 0, site.heading)
    return surroundings


def desert(site: Site, rng: np.random.Generator) -> Surroundings:
    """Sand, with a hardstand or bare ground under the object, scrub, and walls of earth around."""
    surroundings = Surroundings("sand")
    half = np.array([site.length * rng.uniform(0.55, 0.8), site.width * rng.uniform(0.55, 0.8)])
    pad = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half
    track = np.array([[0, -1], [3 * site.reach, -1], [3 * site.reach, 1], [0, 1]]) * (1, max(0.09 * site.width, 2.5))
    if rng.random() < 0.75:
        surface = ("asphalt", "concrete", "soil")[int(rng.integers(3))]
        surroundings.slabs += [(_turned(track, site.heading), surface), (_turned(pad, site.heading), surface)]
    parts: list[SolidPart] = []
    if rng.random() < 0.4:  # a revetment, open to the front
        wall = max(0.05 * site.length, 1.5)
        for outline in (
            box(-half[0] - wall, 0, wall, 2 * half[1] + 2 * wall, 0, (0, 0, 0)),
            box(-0.1 * half[0], half[1] + wall, 1.9 * half[0], wall, 0, (0, 0, 0)),
            box(-0.1 * half[0], -half[1] - wall, 1.9 * half[0], wall, 0, (0, 0, 0)),
        ):
            parts += dome(SolidPart(outline.outline, 1.0, (0.42, 0.34, 0.23)), 2.5)
    for _ in range(int(rng.integers(4, 26))):
        x, y = rng.uniform(-1, 1, 2) * site.reach
        if site.outside(x, y, 2):
            size = rng.uniform(0.6, 1.8)
            parts.append(disc(x, y, size, size, (0.16, 0.17, 0.09)))
    surroundings.clutter += placed(parts + _service_cars(site, rng), 0, 0, site.heading)
    return surroundings


GROUNDS: dict[str, Callable[[Site, np.random.Generator], Surroundings]] = {
    "sea": sea,
    "harbour": harbour,
    "apron": apron,
    "forest": forest,
    "desert": desert,
}


def _turned(outline: Points, heading: float) -> Points:
    return placed([SolidPart(outline, 0, (0, 0, 0))], 0, 0, heading)[0].outline


def _flipped(part: SolidPart, side: int) -> SolidPart:
    return SolidPart(part.outline * (1, side), part.top, part.colour)


def _beside(site: Site, rng: np.random.Generator) -> tuple[float, float]:
    """Return a point near the edge of the window, clear of the object."""
    angle = site.heading + np.pi / 2 * rng.choice([-1, 1]) + rng.uniform(-0.5, 0.5)
    far = rng.uniform(0.45, 0.65) * site.reach + site.width / 2
    return float(far * np.cos(angle)), float(far * np.sin(angle))


def _service_cars(site: Site, rng: np.random.Generator) -> list[SolidPart]:
    """Return cars around an object; those under it are hidden by it."""
    x, y = 0.55 * site.length, 0.55 * site.width
    return vehicles(-x, -y, x, y, rng, scale=float(np.clip(site.length / 25, 0.55, 1.0)))
