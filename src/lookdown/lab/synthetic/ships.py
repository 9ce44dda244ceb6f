"""Sixteen kinds of ship: a hull, and what stands on its deck.

A kind is a hull and a row of fittings. Kinds that differ in one fitting only are listed in `ONE_FEATURE`. Colours are
chosen for each ship, not for each kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from lookdown.lab.synthetic.fittings import (
    Fitting,
    car_deck,
    cargo,
    containers,
    cranes,
    funnel,
    hatches,
    house,
    liner,
    pipes,
    roof,
    spheres,
    trawl,
)  # fmt: skip
from lookdown.lab.synthetic.hull import Hull, Paint
from lookdown.lab.synthetic.naval_fittings import cells, flight_deck, gun, helideck, launchers, mast
from lookdown.lab.synthetic.parts import Colour, SolidPart, plate, shade

__all__ = ["ONE_FEATURE", "SHIPS", "Ship", "draw_ship", "sample_paint"]

WHITE, BUFF, DARK = (0.80, 0.80, 0.78), (0.62, 0.50, 0.30), (0.10, 0.10, 0.11)
DECKS: tuple[Colour, ...] = (
    (0.36, 0.12, 0.09), (0.13, 0.27, 0.17), (0.38, 0.38, 0.36), (0.45, 0.20, 0.12), (0.20, 0.26, 0.34),
)  # fmt: skip
HULLS: tuple[Colour, ...] = (
    (0.08, 0.10, 0.16),
    (0.30, 0.07, 0.06),
    (0.09, 0.09, 0.10),
    (0.10, 0.24, 0.20),
    (0.5, 0.5, 0.5),
)
BOXES: tuple[Colour, ...] = (
    (0.45, 0.12, 0.10), (0.12, 0.22, 0.42), (0.60, 0.30, 0.10), (0.15, 0.35, 0.25), (0.65, 0.65, 0.62),
    (0.33, 0.30, 0.28),
)  # fmt: skip
NAVY: tuple[Colour, ...] = ((0.40, 0.42, 0.44), (0.33, 0.36, 0.39), (0.47, 0.48, 0.47))


@dataclass(frozen=True, slots=True)
class Ship:
    """A kind of ship."""

    name: str
    hull: Hull
    fittings: tuple[Fitting, ...] = field(repr=False)
    navy: bool = False


def sample_paint(ship: Ship, rng: np.random.Generator) -> Paint:
    """Choose the colours of one ship: greys for a navy, anything for the others."""
    boxes = tuple(BOXES[index] for index in rng.integers(len(BOXES), size=64))
    if ship.navy:
        grey = NAVY[rng.integers(len(NAVY))]
        return Paint(grey, shade(grey, 0.82), grey, DARK, boxes)
    house = WHITE if rng.random() < 0.8 else BUFF
    accent = (*BOXES, WHITE)[rng.integers(len(BOXES) + 1)]
    return Paint(HULLS[rng.integers(len(HULLS))], DECKS[rng.integers(len(DECKS))], house, accent, boxes)


def draw_ship(ship: Ship, paint: Paint, rng: np.random.Generator) -> list[SolidPart]:
    """Return the parts of one ship of a kind."""
    hull = ship.hull
    parts = [
        plate(hull.outline(), hull.freeboard + 1.0, paint.hull),
        plate(hull.outline(0.02 * hull.beam + 0.4), hull.freeboard, paint.deck),
    ]
    for fitting in ship.fittings:
        parts += fitting(hull, paint, rng)
    return parts


_BULK = Ship(
    "bulk carrier",
    Hull(length=190, beam=32, bow=0.13, bluntness=2.6, stern=0.8),
    (hatches(-0.33, 0.40, 5), house(-0.42, 0.08), funnel(-0.465)),
)
_TANKER = Ship(
    "crude tanker",
    Hull(length=250, beam=44, bow=0.12, bluntness=2.8, stern=0.82),
    (pipes(-0.32, 0.42), house(-0.41, 0.08), funnel(-0.465, size=0.2)),
)
_WARSHIP = Hull(length=140, beam=18, freeboard=6, bow=0.42, bluntness=1.9, stern=0.86)
_WARSHIP_FITTINGS: tuple[Fitting, ...] = (
    gun(0.33),
    cells(0.24),
    house(0.08, 0.20, width=0.8, height=12, wings=False),
    mast(0.09, 24),
    house(-0.13, 0.13, width=0.7, height=9, wings=False),
    funnel(-0.04, size=0.3, height=14),
)
_CARRIER = Ship(
    "carrier",
    Hull(length=290, beam=38, freeboard=16, bow=0.2, bluntness=1.8, stern=0.9),
    (flight_deck(angled=True),),
    navy=True,
)

SHIPS: tuple[Ship, ...] = (
    Ship(
        "container ship",
        Hull(length=330, beam=46, freeboard=12, bow=0.17, bluntness=2.0),
        (
            containers(-0.47, 0.40, 22, gap=(0.10, 0.155)),
            house(0.128, 0.04, width=0.95, height=34),
            funnel(-0.27, height=36),
        ),
    ),
    Ship(
        "feeder",
        Hull(length=160, beam=25, bow=0.18, bluntness=2.0),
        (containers(-0.30, 0.40, 10), house(-0.38, 0.08), funnel(-0.44)),
    ),
    _BULK,
    replace(_BULK, name="geared bulk carrier", fittings=(*_BULK.fittings, cranes(-0.33, 0.254, 4))),
    _TANKER,
    replace(_TANKER, name="shuttle tanker", fittings=(*_TANKER.fittings, helideck(0.41, high=9))),
    Ship(
        "gas carrier",
        Hull(length=280, beam=46, bow=0.14, bluntness=2.5),
        (spheres(-0.30, 0.38, 4), house(-0.40, 0.07, height=30), funnel(-0.46, height=34)),
    ),
    Ship(
        "car carrier",
        Hull(length=200, beam=34, freeboard=10, bow=0.10, bluntness=3.2, stern=0.95),
        (
            roof(-0.49, 0.47, 20, vents=12),
            house(0.36, 0.05, width=0.6, height=25),
            funnel(-0.38, size=0.16, height=28, y=0.2),
        ),
    ),
    Ship(
        "cruise ship",
        Hull(length=300, beam=36, freeboard=12, bow=0.22, bluntness=1.8, stern=0.85),
        (liner(), house(0.33, 0.05, height=24), funnel(-0.27, size=0.4, height=40)),
    ),
    Ship(
        "ferry",
        Hull(length=130, beam=24, freeboard=8, bow=0.2, bluntness=2.2, stern=0.95),
        (
            roof(-0.12, 0.36, 9),
            car_deck(-0.48, -0.13),
            house(0.26, 0.12, height=14),
            funnel(0.0, size=0.12, height=18, y=0.3, pair=True),
        ),
    ),
    _CARRIER,
    replace(_CARRIER, name="assault ship", fittings=(flight_deck(angled=False),)),
    Ship("destroyer", _WARSHIP, (*_WARSHIP_FITTINGS, helideck(-0.37, radius=0.36)), navy=True),
    Ship("missile frigate", _WARSHIP, (*_WARSHIP_FITTINGS, launchers(-0.34)), navy=True),
    Ship(
        "supply vessel",
        Hull(length=85, beam=19, freeboard=7, bow=0.2, bluntness=2.2, stern=1.0),
        (cargo(-0.48, 0.12), house(0.25, 0.2, height=14), funnel(0.14, size=0.12, height=16, y=0.36, pair=True)),
    ),
    Ship(
        "trawler",
        Hull(length=42, beam=10.5, freeboard=4, bow=0.34, bluntness=2.2, stern=0.8),
        (trawl(), house(0.14, 0.22, width=0.8, height=7), mast(0.1, 14)),
    ),
)  # fmt: skip

# Pairs of kinds, and the one thing in which they differ.
ONE_FEATURE: tuple[tuple[str, str, str], ...] = (
    ("bulk carrier", "geared bulk carrier", "cranes"),
    ("crude tanker", "shuttle tanker", "landing deck on the bow"),
    ("carrier", "assault ship", "angled deck"),
    ("destroyer", "missile frigate", "landing deck or launchers aft"),
)
