"""Guns, launchers and decks to fly from."""

from __future__ import annotations

import numpy as np
import pytest

from lookdown.lab.synthetic import naval_fittings
from lookdown.lab.synthetic.fittings import Fitting
from lookdown.lab.synthetic.hull import Hull, Paint
from lookdown.lab.synthetic.parts import bounds

HULL = Hull(length=200, beam=30)
PAINT = Paint((0.1, 0.1, 0.1), (0.3, 0.1, 0.1), (0.8, 0.8, 0.8), (0.5, 0.2, 0.1), ((0.4, 0.1, 0.1), (0.1, 0.2, 0.4)))
ALL: dict[str, Fitting] = {
    "helideck": naval_fittings.helideck(0.3),
    "gun": naval_fittings.gun(0.2),
    "cells": naval_fittings.cells(0.1),
    "launchers": naval_fittings.launchers(-0.3),
    "mast": naval_fittings.mast(0, 20),
}


@pytest.mark.parametrize("name", ALL)
def test_a_fitting_stays_within_the_rails(name: str) -> None:
    parts = list(ALL[name](HULL, PAINT, np.random.default_rng(0)))
    assert parts
    left, right, low, high = bounds(parts)
    assert -HULL.length / 2 - 1 <= left < right <= HULL.length / 2 + 1
    assert -HULL.beam / 2 - 2 <= low < high <= HULL.beam / 2 + 2
    assert all(0 <= value <= 1 for part in parts for value in part.colour)


def test_tubes_are_counted() -> None:
    assert len(list(naval_fittings.launchers(-0.3)(HULL, PAINT, np.random.default_rng(0)))) == 8


def test_an_angled_deck_is_wider_on_the_left() -> None:
    rng = np.random.default_rng(0)
    angled, straight = (bounds(list(naval_fittings.flight_deck(angled=a)(HULL, PAINT, rng))) for a in (True, False))
    assert angled[3] > 1.3 * straight[3]
    assert angled[2] == pytest.approx(straight[2])
