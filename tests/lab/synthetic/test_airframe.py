"""Aircraft as they are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from lookdown.lab.synthetic.aircraft import AIRCRAFT
from lookdown.lab.synthetic.airframe import Aircraft, draw_aircraft, sample_livery
from lookdown.lab.synthetic.parts import bounds


@pytest.mark.parametrize("kind", AIRCRAFT, ids=lambda kind: kind.name)
def test_an_aircraft_has_the_measures_it_says_and_is_symmetric(kind: Aircraft) -> None:
    parts = draw_aircraft(kind, sample_livery(kind, np.random.default_rng(0)))
    left, right, low, high = bounds(parts)
    assert high - low == pytest.approx(kind.span, rel=0.02)
    assert right - left == pytest.approx(kind.length, rel=0.2)
    assert low == pytest.approx(-high)


@pytest.mark.parametrize(("name", "engines"), [("wide-body twinjet", 2), ("wide-body quadjet", 4), ("heavy bomber", 8)])
def test_engines_are_counted(name: str, engines: int) -> None:
    kind = next(kind for kind in AIRCRAFT if kind.name == name)
    assert kind.wing_engines * kind.pods == engines
    bare = Aircraft(**{field: getattr(kind, field) for field in kind.__slots__} | {"wing_engines": 0})
    livery = sample_livery(kind, np.random.default_rng(1))
    assert len(draw_aircraft(kind, livery)) - len(draw_aircraft(bare, livery)) == 2 * engines  # a pod and its intake


def test_liveries_differ_and_some_are_camouflage() -> None:
    fighter = next(kind for kind in AIRCRAFT if kind.name == "delta fighter")
    liveries = [sample_livery(fighter, np.random.default_rng(seed)) for seed in range(60)]
    assert len({livery.body for livery in liveries}) >= 4
    hidden = [livery for livery in liveries if livery.second]
    assert 0 < len(hidden) < 30
    assert any(part.second for part in draw_aircraft(fighter, hidden[0]))
