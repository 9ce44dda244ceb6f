"""What lies about."""

from __future__ import annotations

import numpy as np
import pytest

from lookdown.lab.synthetic.clutter import boat, building, trees, vehicles, yard
from lookdown.lab.synthetic.parts import bounds


def test_trees_stand_where_they_are_put_in_three_tiers() -> None:
    centres = np.array([[0.0, 0.0], [50.0, 20.0]])
    parts = trees(centres, np.random.default_rng(0), np.array([4.0, 6.0]))
    assert len(parts) == 6
    np.testing.assert_allclose(np.mean([part.outline.mean(axis=0) for part in parts[3:]], axis=0), [50, 20], atol=1)
    assert [part.top for part in parts[:3]] == sorted(part.top for part in parts[:3])


def test_a_yard_keeps_to_its_ground() -> None:
    left, right, low, high = bounds(yard(0, 0, 200, 100, 20, np.random.default_rng(0)))
    assert left > -10
    assert right < 225
    assert low > -15
    assert high < 125


def test_buildings_boats_and_cars() -> None:
    rng = np.random.default_rng(0)
    left, right, low, high = bounds(list(building(10, 20, 30, 12, 8, rng)))
    assert (left, right, low, high) == pytest.approx((-5, 25, 14, 26))
    left, right, *_ = bounds(list(boat(rng)))
    assert 6 <= right - left <= 16
    many = [len(vehicles(0, 0, 50, 50, rng)) for _ in range(50)]
    assert min(many) == 0
    assert 2 <= max(many) <= 4
