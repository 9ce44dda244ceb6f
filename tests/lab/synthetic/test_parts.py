"""Pieces of objects: where they are, and how they move together."""

from __future__ import annotations

import numpy as np

from lookdown.lab.synthetic.parts import bounds, box, disc, dome, mirrored, placed, shade, tube

RED = (0.5, 0.1, 0.1)


def area(points: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> float:
    x, y = points.T
    return float(abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2)


def test_a_box_lies_around_its_middle() -> None:
    assert bounds([box(3, -2, 4, 2, 1, RED)]) == (1.0, 5.0, -3.0, -1.0)


def test_placing_turns_about_the_origin_then_moves_and_keeps_areas() -> None:
    (moved,) = placed([box(10, 0, 4, 2, 3, RED)], 100, 50, np.pi / 2)
    np.testing.assert_allclose(moved.outline.mean(axis=0), [100, 60], atol=1e-9)
    assert np.isclose(area(moved.outline), 8)
    assert moved.top == 3
    (larger,) = placed([moved], 0, 0, 0, scale=2)
    assert np.isclose(area(larger.outline), 32)
    assert larger.top == 6
    assert placed([], 0, 0, 0) == []


def test_mirroring_changes_the_side_only() -> None:
    left, right = mirrored(disc(5, 3, 1, 2, RED))
    np.testing.assert_allclose(left.outline[:, 0], right.outline[:, 0])
    np.testing.assert_allclose(left.outline[:, 1], -right.outline[:, 1])


def test_round_things_rise_towards_their_middle() -> None:
    for parts in (dome(disc(2, 2, 3, 1, RED), 4), tube(box(0, 0, 10, 4, 0, RED).outline, 1, 5, RED)):
        tops = [part.top for part in parts]
        areas = [area(part.outline) for part in parts]
        assert tops == sorted(tops)
        assert areas == sorted(areas, reverse=True)
        assert max(tops) <= 5


def test_shades_stay_colours() -> None:
    np.testing.assert_allclose(shade((0.2, 0.4, 0.9), 1.5), (0.3, 0.6, 1.0))
