"""Places on Earth."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from lookdown.lab.synthetic.locations import footprints, sample_locations


def test_places_are_apart_and_the_same_for_a_seed() -> None:
    locations = sample_locations(40, 7)
    assert locations == sample_locations(40, 7)
    assert locations != sample_locations(40, 8)
    spots = np.array([(location.easting, location.northing) for location in locations])
    gaps = np.hypot(*(spots[:, None] - spots).transpose(2, 0, 1)) + 1e9 * np.eye(40)
    assert gaps.min() > 9_000, "chips lie up to four kilometres from the middle of their location"
    assert {location.ground for location in locations} == {"sea", "harbour", "apron", "forest", "desert"}
    assert len({location.name for location in locations}) == 40
    assert all(90 <= location.sun_azimuth <= 270 for location in locations)


def test_footprints_are_degrees_with_the_right_area() -> None:
    ring = np.array([[300_000.0, 50_000.0], [300_100.0, 50_000.0], [300_100.0, 50_050.0], [300_000.0, 50_050.0]])
    (wkt,) = footprints([ring])
    shape = shapely.from_wkt(wkt)
    assert 0 < shape.centroid.x < 3
    assert 0 < shape.centroid.y < 1
    metres = shape.area * 111_320 * 110_574  # at the equator a degree is as long either way, nearly
    assert metres == pytest.approx(5_000, rel=0.01)
