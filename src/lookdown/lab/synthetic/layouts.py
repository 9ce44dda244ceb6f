"""What stands where in a whole scene: a port with its quays and roads, or an airfield with its stands."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lookdown.lab.synthetic.clutter import building, trees, vehicles, yard
from lookdown.lab.synthetic.grounds import Surroundings
from lookdown.lab.synthetic.kinds import KINDS, Family
from lookdown.lab.synthetic.parts import Points, SolidPart, bounds, box, placed
from lookdown.lab.synthetic.picture import Wake, outline_of

__all__ = ["Layout", "SceneObject", "lay_out"]

_AIRFIELD = {"apron": "grass", "forest": "wood", "desert": "sand"}
WHITE, YELLOW = (0.70, 0.70, 0.68), (0.62, 0.48, 0.10)


@dataclass(frozen=True, slots=True)
class SceneObject:
    """An object of a scene."""

    kind: str
    parts: list[SolidPart] = field(repr=False)
    outline: Points  # the corners of its box, turned with it, in metres from the middle of the scene


@dataclass(slots=True)
class Layout:
    """A scene before it is drawn; metres from its middle."""

    surroundings: Surroundings
    objects: list[SceneObject] = field(default_factory=list)
    wakes: list[Wake] = field(default_factory=list)

    def add(self, kind: str, parts: list[SolidPart], x: float, y: float, heading: float) -> None:
        """Stand an object somewhere."""
        self.objects.append(SceneObject(kind, placed(parts, x, y, heading), outline_of(parts, heading, x, y)))


def lay_out(ground: str, half: float, rng: np.random.Generator) -> Layout:
    """Fill a square of `half` metres to each side."""
    return _port(half, rng) if ground == "harbour" else _airfield(_AIRFIELD[ground], half, rng)


def _port(half: float, rng: np.random.Generator) -> Layout:
    """Lay out water in the south, land in the north, and piers between with ships on both sides."""
    layout = Layout(Surroundings("water"))
    shore = 0.35 * half
    layout.surroundings.slabs += [
        (_rectangle(-1.1 * half, shore, 1.1 * half, 1.1 * half), "concrete"),
        (_rectangle(-1.1 * half, shore + 0.30 * half, 1.1 * half, 1.1 * half), "grass"),
    ]
    x, deepest = -0.92 * half, 0.0
    while x < 0.85 * half:
        width = float(rng.uniform(45, 110))
        reach = min(float(rng.uniform(260, 620)), 0.7 * half)
        deepest = max(deepest, reach)
        layout.surroundings.slabs.append((_rectangle(x, shore - reach, x + width, shore + 5), "concrete"))
        layout.surroundings.clutter += yard(x + 12, shore - reach + 10, x + width - 12, shore, 26, rng)
        for side, edge in ((-1, x), (1, x + width)):
            _moor(layout, edge, side, (shore - reach, shore), half, rng)
        x += width + float(rng.uniform(190, 330))
    layout.surroundings.clutter += yard(-half, shore + 20, half, shore + 0.28 * half, 34, rng)
    layout.surroundings.clutter += trees(_scattered(-half, shore + 0.31 * half, half, half, 13, rng), rng)
    _sail(layout, half, shore - deepest, rng)
    return layout


def _moor(
    layout: Layout, edge: float, side: int, pier: tuple[float, float], half: float, rng: np.random.Generator
) -> None:
    """Moor ships along one side of a pier, one behind the other, inside the scene."""
    south, north = pier
    y = south + float(rng.uniform(0, 40))
    while True:
        kind, parts, length, width = _draw("ships", rng)
        if y + length > north - 5:
            return
        if rng.random() < 0.85 and abs(edge + side * (width + 3)) < half:
            heading = np.pi / 2 + np.pi * int(rng.integers(2))
            layout.add(kind, parts, edge + side * (width / 2 + 3), y + length / 2, float(heading))
        y += length + float(rng.uniform(15, 45))


def _sail(layout: Layout, half: float, north: float, rng: np.random.Generator) -> None:
    """Put ships on the roads, under way or at anchor, clear of one another and of the edge."""
    taken: list[tuple[float, float, float]] = []
    for _ in range(200):
        kind, parts, length, width = _draw("ships", rng)
        room = 0.6 * length
        if half < room or north + half < 2 * room:
            continue
        x, y = rng.uniform(-half + room, half - room), rng.uniform(-half + room, north - room)
        if any(np.hypot(x - a, y - b) < 0.75 * (length + c) + 40 for a, b, c in taken):
            continue
        heading = float(rng.uniform(0, 2 * np.pi))
        layout.add(kind, parts, float(x), float(y), heading)
        if rng.random() < 0.6 and y - 1.7 * length * np.sin(heading) < north:  # no wake ends on a pier
            speed = float(rng.uniform(0.3, 1))
            layout.wakes.append(Wake(float(x), float(y), heading, length, width, speed))
        taken.append((float(x), float(y), length))
        if len(taken) >= half / 80:
            return


def _airfield(base: str, half: float, rng: np.random.Generator) -> Layout:
    """Lay out a runway, a taxiway and an apron with rows of stands."""
    layout = Layout(Surroundings(base))
    wide = 46.0
    field_ = _rectangle(-half, -0.62 * half, half, 0.62 * half)
    layout.surroundings.slabs += [
        (field_, "grass" if base != "sand" else "soil"),
        (_rectangle(-0.95 * half, -0.45 * half - wide / 2, 0.95 * half, -0.45 * half + wide / 2), "asphalt"),
        (_rectangle(-0.95 * half, -0.27 * half - 12, 0.95 * half, -0.27 * half + 12), "asphalt"),
        (_rectangle(-0.8 * half, -0.27 * half, 0.8 * half, 0.42 * half), "concrete"),
    ]
    for x in (-0.9 * half, 0.0, 0.9 * half):
        layout.surroundings.slabs.append((_rectangle(x - 12, -0.46 * half, x + 12, -0.27 * half), "asphalt"))
    marks = layout.surroundings.clutter
    for x in np.arange(-0.9 * half, 0.9 * half, 60):
        marks.append(box(float(x), -0.45 * half, 30, 1.2, 0, WHITE))
    for end in (-1, 1):
        marks += [box(end * (0.95 * half - 20), -0.45 * half + y, 30, 1.8, 0, WHITE) for y in (-18, -12, -6, 6, 12, 18)]
    marks.append(box(0, -0.27 * half, 1.9 * half, 0.6, 0, YELLOW))
    for edge in (-1, 1):
        marks += list(building(edge * 0.9 * half, 0.1 * half, 0.1 * half, 0.3 * half, 14, rng))
    marks += list(building(0, 0.5 * half, 1.1 * half, 0.07 * half, 16, rng))
    _park(layout, half, rng)
    if base == "wood":
        around = [(-half, 0.62 * half, half, half), (-half, -half, half, -0.62 * half)]
        for window in around:
            layout.surroundings.clutter += trees(_scattered(*window, 9, rng), rng)
    return layout


def _park(layout: Layout, half: float, rng: np.random.Generator) -> None:
    """Stand aircraft in rows, noses to the taxiway or away from it."""
    y = -0.27 * half + 50  # clear of the taxiway, half the longest aircraft away
    while y < 0.34 * half:
        x, deep = -0.74 * half, 0.0
        while True:
            kind, parts, length, width = _draw("aircraft", rng)
            if x + width > 0.74 * half:
                break
            if rng.random() < 0.8:
                heading = -np.pi / 2 + rng.normal(0, 0.08) + np.pi * (rng.random() < 0.2)
                layout.surroundings.clutter += vehicles(x, y - 0.5 * length, x + width, y + 0.5 * length, rng)
                layout.add(kind, parts, x + width / 2, y, float(heading))
                deep = max(deep, length)
            x += width + float(rng.uniform(8, 30))
        y += max(deep, 40) + 25


def _draw(family: Family, rng: np.random.Generator) -> tuple[str, list[SolidPart], float, float]:
    """Return a new object of any kind of a family, with its length and width."""
    able = [kind for kind in KINDS.values() if kind.family == family]
    kind = able[int(rng.integers(len(able)))]
    parts = kind.draw(rng)
    left, right, low, high = bounds(parts)
    return kind.name, parts, right - left, high - low


def _rectangle(left: float, low: float, right: float, high: float) -> Points:
    return np.array([[left, low], [right, low], [right, high], [left, high]])


def _scattered(left: float, low: float, right: float, high: float, apart: float, rng: np.random.Generator) -> Points:
    """Return points about `apart` metres from one another, and gaps between them."""
    grid = np.stack(np.meshgrid(np.arange(left, right, apart), np.arange(low, high, apart)), axis=-1).reshape(-1, 2)
    return (grid + rng.uniform(-0.5, 0.5, grid.shape) * apart)[rng.random(len(grid)) < 0.8]
