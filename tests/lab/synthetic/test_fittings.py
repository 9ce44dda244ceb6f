"""What stands on a deck stays on it."""

from __future__ import annotations

import numpy as np
import pytest

from lookdown.lab.synthetic import fittings
from lookdown.lab.synthetic.fittings import Fitting
from lookdown.lab.synthetic.hull import Hull, Paint
from lookdown.lab.synthetic.parts import bounds

HULL = Hull(length=200, beam=30)
PAINT = Paint((0.1, 0.1, 0.1), (0.3, 0.1, 0.1), (0.8, 0.8, 0.8), (0.5, 0.2, 0.1), ((0.4, 0.1, 0.1), (0.1, 0.2, 0.4)))
ALL: dict[str, Fitting] = {
    "house": fittings.house(-0.4, 0.1),
    "funnel": fittings.funnel(-0.45),
    "two funnels": fittings.funnel(0.1, y=0.3, pair=True),
    "containers": fittings.containers(-0.3, 0.4, 12, gap=(0.0, 0.1)),
    "hatches": fittings.hatches(-0.3, 0.4, 7),
    "cranes": fittings.cranes(-0.3, 0.25, 4),
    "pipes": fittings.pipes(-0.3, 0.4),
    "spheres": fittings.spheres(-0.3, 0.35, 4),
    "roof": fittings.roof(-0.48, 0.4, 18, vents=10),
    "liner": fittings.liner(),
    "car deck": fittings.car_deck(-0.45, 0),
    "cargo": fittings.cargo(-0.4, 0.1),
}


@pytest.mark.parametrize("name", ALL)
def test_a_fitting_stays_within_the_rails(name: str) -> None:
    parts = list(ALL[name](HULL, PAINT, np.random.default_rng(0)))
    assert parts
    left, right, low, high = bounds(parts)
    assert -HULL.length / 2 - 1 <= left < right <= HULL.length / 2 + 1
    assert -HULL.beam / 2 - 2 <= low < high <= HULL.beam / 2 + 2
    assert all(0 <= value <= 1 for part in parts for value in part.colour)


def test_counts_are_what_they_say() -> None:
    rng = np.random.default_rng(0)
    assert len(list(fittings.hatches(-0.3, 0.4, 7)(HULL, PAINT, rng))) == 2 * 7
    assert len(list(fittings.funnel(0.1, y=0.3, pair=True)(HULL, PAINT, rng))) == 4


def test_the_gap_between_containers_is_free() -> None:
    parts = list(fittings.containers(-0.3, 0.4, 12, gap=(0.0, 0.1))(HULL, PAINT, np.random.default_rng(0)))
    middles = np.array([part.outline[:, 0].mean() for part in parts])
    assert not ((middles > 0) & (middles < 20)).any()


def test_derricks_of_a_trawler_reach_over_the_side() -> None:
    _, _, low, high = bounds(list(fittings.trawl()(HULL, PAINT, np.random.default_rng(0))))
    assert high > HULL.beam / 2
    assert low < -HULL.beam / 2
