"""Painting, light and shadow, against what geometry says."""

from __future__ import annotations

import numpy as np
import pytest

from lookdown.lab.synthetic.parts import box
from lookdown.lab.synthetic.rendering import Field, GroundView, Sun, average_down, light, paint

RED = (0.8, 0.1, 0.1)


def ground(view: GroundView) -> tuple[Field, Field, Field]:
    shape = (view.rows, view.columns)
    return np.full((*shape, 3), 0.5, np.float32), np.zeros(shape, np.float32), np.zeros(shape, np.float32)


def test_pixels_and_metres() -> None:
    view = GroundView(west=100, north=50, columns=20, rows=10, step=2)
    np.testing.assert_allclose(view.pixels(view.corners), [[0, 0], [20, 0], [20, 10], [0, 10]])
    np.testing.assert_allclose(view.finer(3).corners, view.corners)


def test_a_part_is_painted_where_it_is_and_later_ones_lie_on_top() -> None:
    view = GroundView(west=-10, north=10, columns=80, rows=80, step=0.25)
    colour, height, pattern = ground(view)
    seen = paint(view, [box(0, 0, 10, 4, 5, RED), box(3, 0, 2, 2, 8, (0, 0, 1))], colour, height, pattern)
    rows, columns = np.nonzero(seen)
    assert abs(rows.min() - 32) <= 1
    assert abs(rows.max() + 1 - 48) <= 1
    assert abs(columns.min() - 20) <= 1
    assert abs(columns.max() + 1 - 60) <= 1
    assert (seen == 2).sum() == pytest.approx(64, rel=0.3)  # edges are painted to the full pixel
    assert height[40, 40] == 5
    assert height[40, 52] == 8
    np.testing.assert_allclose(colour[0, 0], 0.5)
    assert not paint(view, [], colour, height, pattern).any()


def test_camouflage_has_its_second_colour_where_the_pattern_is_above_zero() -> None:
    view = GroundView(west=-10, north=10, columns=40, rows=40, step=0.5)
    colour, height, pattern = ground(view)
    pattern[:, 20:] = 1
    paint(view, [box(0, 0, 20, 20, 1, RED)._replace(second=(0.0, 0.5, 0.0))], colour, height, pattern)
    np.testing.assert_allclose(colour[20, 5], RED, rtol=1e-6)
    np.testing.assert_allclose(colour[20, 35], (0, 0.5, 0), rtol=1e-6)


@pytest.mark.parametrize(("azimuth", "towards"), [(180, (-1, 0)), (0, (1, 0)), (90, (0, -1)), (270, (0, 1))])
def test_a_shadow_falls_away_from_the_sun_and_is_as_long_as_the_tangent_says(
    azimuth: float, towards: tuple[int, int]
) -> None:
    """A post of 5 m under a sun 45 degrees high throws 5 m; rows count southwards."""
    view = GroundView(west=-20, north=20, columns=160, rows=160, step=0.25)
    for elevation in (45.0, 30.0):
        colour, height, pattern = ground(view)
        paint(view, [box(0, 0, 2, 2, 5, RED)], colour, height, pattern)
        light(view, colour, height, Sun(azimuth, elevation))
        dark = (colour[:, :, 0] < 0.3) & (height == 0)
        rows, columns = np.nonzero(dark)
        along = (rows - 79.5) * towards[0] + (columns - 79.5) * towards[1]
        reach = (along.max() + 0.5) * view.step - 1
        assert reach == pytest.approx(5 / np.tan(np.radians(elevation)), abs=0.5)
        assert along.min() > 0


def test_flat_ground_is_left_as_it_is() -> None:
    view = GroundView(west=0, north=0, columns=8, rows=8, step=1)
    colour, height, _ = ground(view)
    light(view, colour, height, Sun(120, 40))
    np.testing.assert_array_equal(colour, 0.5)


def test_averaging_down_is_the_mean_of_blocks() -> None:
    field = np.random.default_rng(0).random((12, 9, 3), dtype=np.float32)
    expected = field.reshape(4, 3, 3, 3, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(average_down(field, 3), expected, rtol=1e-6)


def test_the_shadow_of_a_thin_wall_has_no_gaps() -> None:
    view = GroundView(west=-5, north=100, columns=40, rows=420, step=0.25)
    colour, height, pattern = ground(view)
    paint(view, [box(0, 0, 8, 0.6, 40, RED)], colour, height, pattern)
    light(view, colour, height, Sun(180, 28))
    dark = (colour[:, 20, 0] < 0.3) & (height[:, 20] == 0)
    rows = np.flatnonzero(dark)
    assert len(rows) == rows[-1] - rows[0] + 1
    assert len(rows) * view.step == pytest.approx(40 / np.tan(np.radians(28)), abs=1.5)
