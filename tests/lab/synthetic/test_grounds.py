"""The five grounds."""

from __future__ import annotations

import numpy as np
import pytest

from lookdown.lab.synthetic.grounds import GROUNDS, SURFACES, Site, Surroundings, lay
from lookdown.lab.synthetic.locations import sample_locations
from lookdown.lab.synthetic.rendering import GroundView

VIEW = GroundView(west=-50, north=50, columns=50, rows=50, step=2)
SITE = Site(length=60, width=40, heading=0.7, reach=75)


@pytest.mark.parametrize("ground", GROUNDS)
def test_a_ground_has_its_surface_and_colours_of_the_earth(ground: str) -> None:
    location = next(location for location in sample_locations(5, 0) if location.ground == ground)
    surroundings = GROUNDS[ground](SITE, np.random.default_rng(0))
    laid = lay(surroundings, VIEW, location, 2, (0.0, 0.0))
    colour = laid.colour
    assert colour.shape == (100, 100, 3)
    assert laid.cloud.shape == laid.grain.shape == (50, 50)
    assert colour.min() > 0
    assert colour.max() < 0.95
    assert laid.water[50, 50] == (ground in ("sea", "harbour"))
    assert (surroundings.side != 0) == (ground == "harbour") or ground == "apron"


def test_a_slab_is_laid_where_it_is() -> None:
    location = sample_locations(1, 0)[0]
    square = np.array([[0.0, 0.0], [50.0, 0.0], [50.0, 50.0], [0.0, 50.0]])
    colour = lay(Surroundings("water", [(square, "sand")]), VIEW, location, 2, (0.0, 0.0)).colour
    sand = colour[:, :, 0] > 0.2
    assert sand[:48, 52:].all()
    assert not sand[52:].any()
    assert not sand[:, :48].any()
    assert set(SURFACES) >= {"water", "sand", "concrete", "asphalt", "grass"}


def test_the_quay_is_beside_the_object_and_not_under_it() -> None:
    location = next(location for location in sample_locations(5, 0) if location.ground == "harbour")
    for seed in range(20):
        surroundings = GROUNDS["harbour"](SITE, np.random.default_rng(seed))
        land = ~lay(surroundings, VIEW, location, 1, (0.0, 0.0)).water
        assert not land[25, 25]
        assert land.any()


def test_a_clearing_is_free_of_trees() -> None:
    for ground in ("forest", "desert"):
        surroundings = GROUNDS[ground](SITE, np.random.default_rng(1))
        high = [part for part in surroundings.clutter if part.top > 5]
        assert all(np.hypot(*part.outline.mean(axis=0)) > 15 for part in high)
