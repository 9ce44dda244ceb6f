"""A folder of chips from the synthetic world, with its manifest, ready for training and search."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rasterio.errors import RasterioError

from lookdown.chips.manifest import Manifest
from lookdown.chips.output import OutputFolder, write_chip
from lookdown.chips.prepare import PrepareReport
from lookdown.chips.roles import SplitOptions, give_roles
from lookdown.chips.sources import SkippedItem, polygon_wkt
from lookdown.errors import InputError, OutputError
from lookdown.lab.synthetic.grounds import GROUNDS, Location
from lookdown.lab.synthetic.kinds import KINDS, Kind
from lookdown.lab.synthetic.locations import MOST, footprints, sample_locations
from lookdown.lab.synthetic.picture import Picture, take
from lookdown.lab.synthetic.scenes import tiles_of, write_scene
from lookdown.lab.synthetic.sensors import FAR, NEAR, Sensor, between
from lookdown.progress import Progress, no_progress

__all__ = ["ChipPlan", "World", "draw_world", "plan_world"]

# Streams of random numbers, so that a chip is the same whatever else is made.
_DEALT, _OBJECT, _EMPTY = 2, 3, 4
_DRAWING = 1  # to be raised with every change to what is drawn: a folder drawn otherwise is another one
_SCENES = ("harbour", "apron", "forest", "desert")  # in turn


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is made."""

    kinds: Literal["all", "ships", "aircraft"] | tuple[str, ...] = "all"  # or some of them, by their names
    chips: int = 120  # of each kind; a class needs ten to be in every role
    background: float = 0.15  # chips without an object, as a share of the others
    locations: int = 100  # the five grounds in turn
    size: int = 96  # pixels
    shift: float = 0.0  # of the sensor that queries and gallery come from: 0 is the one trained on, 1 the other
    protocol: Literal["conventional", "uda"] = "conventional"  # uda: the classes searched for are not trained on
    train_classes: tuple[str, ...] | None = None
    scenes: int = 0  # whole scenes with their boxes, seen as queries and gallery are
    scene_size: int = 4096  # pixels
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (
            ("chips", 10),
            ("locations", 25),
            ("size", 8),
            ("scenes", 0),
            ("scene_size", 512),
            ("seed", 0),
        ):
            if getattr(self, name) < least:
                raise InputError(f"{name} of a world must be at least {least}, got {getattr(self, name)}")
        if self.locations > MOST or self.scenes > MOST // 3:
            raise InputError(f"a world has at most {MOST} locations and {MOST // 3} scenes")
        if not 0 <= self.background < 100:
            raise InputError(f"background is a share of the objects, 0.15 for one in seven; got {self.background}")
        if isinstance(self.kinds, str) and self.kinds not in ("all", "ships", "aircraft"):
            raise InputError(f"kinds are all, ships, aircraft, or a tuple of names; got {self.kinds!r}")
        if not self.kinds or (not isinstance(self.kinds, str) and (strange := sorted(set(self.kinds) - set(KINDS)))):
            named = f"there is no kind {strange[0]!r}" if self.kinds else "a world without kinds is empty"
            raise InputError(f"{named}; kinds are {', '.join(KINDS)}")
        between(NEAR, FAR, self.shift)

    @property
    def searched_with(self) -> Sensor:
        """The sensor of queries, gallery and scenes."""
        return between(NEAR, FAR, self.shift)


@dataclass(frozen=True, slots=True)
class ChipPlan:
    """A chip before it is drawn."""

    id: str
    kind: str | None  # None: background
    stream: tuple[int, ...]  # of random numbers
    location: Location
    at: tuple[float, float]  # metres from the middle of the location
    role: str

    def take(self, world: World) -> Picture:
        """Draw it; the same chip whatever else was drawn before."""
        rng = np.random.default_rng([world.seed, *self.stream])
        kind = KINDS[self.kind] if self.kind else None
        return take(kind, self.location, self.sensor(world), world.size, rng, at=self.at)

    def sensor(self, world: World) -> Sensor:
        """Return the sensor that sees it."""
        return NEAR if self.role == "train" else world.searched_with


def draw_world(
    world: World,
    out: Path,
    *,
    overwrite: bool = False,
    progress: Progress = no_progress,
) -> PrepareReport:
    """Draw a world into `out`; a finished one is not drawn again, and an unfinished one comes out the same."""
    planned, skipped, notes = plan_world(world)
    content = json.dumps([version("lookdown"), _DRAWING, {**asdict(world), "shift": float(world.shift)}])
    output = OutputFolder.open(out, hashlib.sha256(content.encode()).hexdigest(), overwrite=overwrite)
    if output.complete:
        return PrepareReport(Manifest.read(out), skipped, notes, resumed=True)
    tiles = world.scenes * tiles_of(world.scene_size)
    try:
        rows = _draw(world, planned, output.folder, lambda done: progress(done, len(planned) + tiles, "images"))
        _draw_scenes(
            world, output.folder / "scenes", lambda done: progress(len(planned) + done, len(planned) + tiles, "images")
        )
        output.write_tables(rows, skipped)
        output.finish({"world": asdict(world), "notes": notes, "chips": len(rows)})
    except (OSError, RasterioError) as error:
        raise OutputError(
            f"{output.folder} cannot be written: {error}; free the disk or name another folder"
        ) from error
    return PrepareReport(Manifest.read(output.path, check_files=False), skipped, notes, resumed=False)


def plan_world(world: World) -> tuple[list[ChipPlan], list[SkippedItem], list[str]]:
    """Return the chips of a world with their locations and roles, what the split leaves out, and what it has to say."""
    locations = sample_locations(world.locations, world.seed)
    objects = list(_objects(world, locations))
    rows = [
        {"id": item.id, "label": item.kind, "scene_group": item.location.name, "background": False} for item in objects
    ]
    trained = tuple(sorted(_trained(world))) if world.protocol == "uda" else None
    split = give_roles(rows, SplitOptions(protocol=world.protocol, train_classes=trained, seed=world.seed))
    kept = [replace(item, role=role) for item, role in zip(objects, split.roles, strict=True) if role]
    skipped = split.left_out([item.id for item in objects])
    searched = {item.location.name for item in kept if item.role == "gallery"}
    grounds = [location for location in locations if location.name in searched]
    return [*kept, *_empty(world, grounds, round(world.background * len(kept)))], skipped, split.notes


def _trained(world: World) -> set[str]:
    """Return the classes to train on where they are not those searched for: as given, or three in five of a family."""
    names = [kind.name for kind in _kinds(world)]
    if world.train_classes is not None:
        if strange := sorted(set(world.train_classes) - set(names)):
            raise InputError(f"there is no kind {strange[0]!r} in this world; its kinds are {', '.join(names)}")
        return set(world.train_classes)
    rng = np.random.default_rng([world.seed, _DEALT])
    families = [[kind.name for kind in _kinds(world) if kind.family == family] for family in ("ships", "aircraft")]
    return {str(name) for family in families for name in rng.permutation(family)[: round(0.6 * len(family))]}


def _kinds(world: World) -> list[Kind]:
    if not isinstance(world.kinds, str):
        return [kind for kind in KINDS.values() if kind.name in world.kinds]
    return [kind for kind in KINDS.values() if world.kinds in ("all", kind.family)]


def _objects(world: World, locations: list[Location]) -> Iterator[ChipPlan]:
    """Yield the chips of every kind, dealt evenly over the locations where the kind is found.

    Where classes are held out, their locations are others than those of the classes trained on: three in five of each
    ground are for training, so that no chip has to be left out for the location it is in.
    """
    trained = _trained(world) if world.protocol == "uda" else None
    grounds = list(GROUNDS)
    for kind in _kinds(world):
        index = list(KINDS).index(kind.name)
        rng = np.random.default_rng([world.seed, _DEALT, index])
        able = [location for location in locations if location.ground in kind.grounds]
        if trained is not None:
            of_training = [locations.index(location) // len(grounds) % 5 < 3 for location in able]
            able = [
                location for location, side in zip(able, of_training, strict=True) if side == (kind.name in trained)
            ]
        order = rng.permutation(len(able))
        for copy in range(world.chips):
            location = able[order[copy % len(able)]]
            at = rng.uniform(-4000, 4000, 2)
            name = f"{kind.name.replace(' ', '-')}-{copy:04d}"
            yield ChipPlan(name, kind.name, (_OBJECT, index, copy), location, (float(at[0]), float(at[1])), "")


def _empty(world: World, locations: list[Location], count: int) -> Iterator[ChipPlan]:
    """Yield chips of the ground alone; they are only searched, so they come from locations that are."""
    rng = np.random.default_rng([world.seed, _EMPTY])
    for number in range(count):
        location, at = locations[int(rng.integers(len(locations)))], rng.uniform(-4000, 4000, 2)
        stream = (_EMPTY, number)
        yield ChipPlan(f"background-{number:04d}", None, stream, location, (float(at[0]), float(at[1])), "gallery")


def _draw(world: World, planned: list[ChipPlan], folder: Path, progress: Callable[[int], None]) -> list[dict[str, Any]]:
    """Write the chips, and return their rows of the manifest."""
    corners: list[NDArray[np.float64]] = []
    rows: list[dict[str, Any]] = []
    for number, item in enumerate(planned, start=1):
        picture = item.take(world)
        ring = picture.outline if picture.outline is not None else picture.view.corners
        corners.append(ring + item.at + (item.location.easting, item.location.northing))
        inside = picture.view.pixels(ring)
        rows.append({
            "id": item.id,
            "path": write_chip(picture.pixels, folder, item.id),
            "scene": item.id,
            "polygon": polygon_wkt([(float(x), float(y)) for x, y in inside]) if item.kind else None,
            "label": item.kind,
            "role": item.role,
            "background": item.kind is None,
            "scene_group": item.location.name,
            "time": item.location.time,
            "sensor": item.sensor(world).name,
            "gsd": picture.view.step,
        })  # fmt: skip
        progress(number)
    return [{**row, "footprint": footprint} for row, footprint in zip(rows, footprints(corners), strict=True)]


def _draw_scenes(world: World, folder: Path, progress: Callable[[int], None]) -> None:
    """Write the scenes: ports at a metre a pixel, airfields at half a metre."""
    tiles = tiles_of(world.scene_size)
    families = {kind.family for kind in _kinds(world)}
    grounds = [ground for ground in _SCENES if ("ships" if ground == "harbour" else "aircraft") in families]
    for number in range(world.scenes):
        ground = grounds[number % len(grounds)]
        write_scene(
            folder,
            f"{ground}-{number:02d}",
            world.searched_with,
            ground=ground,
            size=world.scene_size,
            gsd=1.0 if ground == "harbour" else 0.5,
            seed=1000 * world.seed + number,
            progress=lambda done, *_, before=number * tiles: progress(before + done),
        )
