"""The thirty-six kinds of object behind one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from lookdown.lab.synthetic import aircraft, ships
from lookdown.lab.synthetic.aircraft import AIRCRAFT
from lookdown.lab.synthetic.airframe import Aircraft, draw_aircraft, sample_livery
from lookdown.lab.synthetic.parts import SolidPart
from lookdown.lab.synthetic.ships import SHIPS, Ship, draw_ship, sample_paint

__all__ = ["KINDS", "ONE_FEATURE", "Family", "Kind"]

Family = Literal["ships", "aircraft"]
ONE_FEATURE = (*ships.ONE_FEATURE, *aircraft.ONE_FEATURE)


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of objects that can be drawn as often as one likes, each time another one."""

    name: str
    family: Family
    grounds: tuple[str, ...]
    draw: Callable[[np.random.Generator], list[SolidPart]] = field(repr=False)


def _of_ship(ship: Ship) -> Kind:
    def draw(rng: np.random.Generator) -> list[SolidPart]:
        return draw_ship(ship, sample_paint(ship, rng), rng)

    return Kind(ship.name, "ships", ("sea", "harbour"), draw)


def _of_aircraft(kind: Aircraft) -> Kind:
    def draw(rng: np.random.Generator) -> list[SolidPart]:
        return draw_aircraft(kind, sample_livery(kind, rng))

    return Kind(kind.name, "aircraft", ("apron", "forest", "desert"), draw)


KINDS: dict[str, Kind] = {kind.name: kind for kind in (*map(_of_ship, SHIPS), *map(_of_aircraft, AIRCRAFT))}
