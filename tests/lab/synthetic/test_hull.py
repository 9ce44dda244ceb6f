"""The outline of a deck."""

from __future__ import annotations

import numpy as np
import pytest

from lookdown.lab.synthetic.hull import Hull


@pytest.mark.parametrize("hull", [Hull(length=100, beam=16), Hull(length=40, beam=10, bow=0.4, bluntness=1.5, stern=1)])
def test_a_hull_is_as_long_and_as_wide_as_it_says_and_pointed_in_front(hull: Hull) -> None:
    outline = hull.outline()
    assert np.ptp(outline[:, 0]) == pytest.approx(hull.length)
    assert np.ptp(outline[:, 1]) == pytest.approx(hull.beam, rel=0.02)
    np.testing.assert_allclose(outline[:, 1].sum(), 0, atol=1e-9)
    assert hull.half_width(hull.at(0.5)) == 0
    assert hull.half_width(hull.at(-0.5)) == pytest.approx(hull.stern * hull.beam / 2)


def test_the_rail_lies_inside() -> None:
    hull = Hull(length=100, beam=16)
    assert np.ptp(hull.outline(1.0)[:, 0]) == pytest.approx(98)
    assert np.ptp(hull.outline(1.0)[:, 1]) == pytest.approx(14)
