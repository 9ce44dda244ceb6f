"""Sixteen kinds of ship."""

from __future__ import annotations

import numpy as np
import pytest

from lookdown.lab.synthetic.parts import bounds
from lookdown.lab.synthetic.ships import SHIPS, Ship, draw_ship, sample_paint


def test_there_are_sixteen_of_many_lengths() -> None:
    assert len({ship.name for ship in SHIPS}) == 16
    assert len({ship.hull.length for ship in SHIPS}) >= 11


@pytest.mark.parametrize("ship", SHIPS, ids=lambda ship: ship.name)
def test_a_ship_is_as_long_as_its_hull(ship: Ship) -> None:
    rng = np.random.default_rng(0)
    left, right, low, high = bounds(draw_ship(ship, sample_paint(ship, rng), rng))
    assert right - left == pytest.approx(ship.hull.length, rel=0.03)
    assert high - low < 0.65 * (right - left)


def test_no_two_ships_of_a_kind_are_painted_alike_but_a_navy_is_grey() -> None:
    rng = np.random.default_rng(0)
    for ship in SHIPS:
        paints = [sample_paint(ship, rng) for _ in range(30)]
        assert len({(paint.hull, paint.deck) for paint in paints}) > 1
        if ship.navy:
            assert all(max(paint.hull) - min(paint.hull) < 0.08 for paint in paints)
