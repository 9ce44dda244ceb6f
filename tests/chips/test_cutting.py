"""Chips are the pixels under their polygon, no more and no less."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lookdown.chips.cutting import CutOptions, background_windows, cut
from lookdown.chips.sources import box_polygon


class _Picture:
    """A scene in memory whose pixel values tell where they are: x in the first band, y in the second."""

    def __init__(self, width: int = 200, height: int = 120) -> None:
        self.width, self.height = width, height
        y, x = np.mgrid[0:height, 0:width]
        self.pixels = np.stack([x, y, x // 2 + y // 2], axis=2).astype(np.uint8)

    def read(self, window: tuple[int, int, int, int]) -> NDArray[np.uint8]:
        left, top, right, bottom = window
        assert 0 <= left < right <= self.width
        assert 0 <= top < bottom <= self.height
        return self.pixels[top:bottom, left:right]


Picture: Any = _Picture  # read as a `SceneReader` is


def test_a_chip_is_the_box_with_its_margin() -> None:
    chip = cut(Picture(), box_polygon(50, 30, 90, 50), CutOptions(margin=0.1))
    assert chip.shape == (20 + 8, 40 + 8, 3)  # 10 % of the longer side, 40, on each side
    assert (chip[0, 0, 0], chip[0, 0, 1], chip[-1, -1, 0], chip[-1, -1, 1]) == (46, 26, 93, 53)


def test_part_pixels_belong_to_the_chip_and_edges_clip_it() -> None:
    assert cut(Picture(), box_polygon(10.4, 10.4, 19.6, 14.2), CutOptions(margin=0)).shape == (5, 10, 3)
    chip = cut(Picture(), box_polygon(-20, 100, 30, 150), CutOptions(margin=0.2))
    assert (chip[0, 0, 0], chip[0, 0, 1]) == (0, 90)
    assert chip.shape == (30, 40, 3)


@pytest.mark.parametrize("turn", [0, 20, 45, 80, 135, 200])
def test_an_oriented_box_is_turned_upright_without_a_mirror(turn: float) -> None:
    """A ship of 40 x 10 with a bright bow half and a mark on its starboard side."""
    scene = Picture(160, 160)
    angle = np.deg2rad(turn)
    along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    y, x = np.mgrid[0:160, 0:160] + 0.5
    u, v = (x - 80) * along[0] + (y - 80) * along[1], (x - 80) * across[0] + (y - 80) * across[1]
    scene.pixels = np.zeros((160, 160, 3), dtype=np.uint8)
    scene.pixels[(np.abs(u) < 20) & (np.abs(v) < 5)] = 100
    scene.pixels[(u > 0) & (u < 20) & (np.abs(v) < 5)] = 200
    scene.pixels[(u > 8) & (u < 16) & (v > 0) & (v < 5), 2] = 0
    corners = tuple(
        tuple(np.array([80, 80]) + s * 20 * along + t * 5 * across) for s, t in ((-1, -1), (1, -1), (1, 1), (-1, 1))
    )
    chip = cut(scene, corners, CutOptions(margin=0, upright=True)).astype(float)
    assert chip.shape == (10, 40, 3)
    if chip[:, :20, 0].mean() > chip[:, 20:, 0].mean():  # bow to the left: the same picture, upside down
        chip = chip[::-1, ::-1]
    assert chip[2:-2, 3:17, 0].mean() == pytest.approx(100, abs=5)
    assert chip[2:-2, 23:37, 0].mean() == pytest.approx(200, abs=5)
    assert chip[6:9, 30:34, 2].mean() < 60, "the mark is below the axis, as it was before: not mirrored"
    assert chip[1:4, 30:34, 2].mean() > 150


@pytest.mark.parametrize(
    ("polygon", "reason"),
    [
        (box_polygon(300, 10, 340, 40), "outside the image of 200 x 120"),
        (box_polygon(10, 10, 10, 40), "no area"),
        (((1, 1), (2, 2), (3, 3)), "no area"),
        (((10, 10), (50, 50), (50, 10), (10, 60)), "crosses itself"),
        (((float("nan"), 1), (2, 2), (3, 1)), "not a number"),
        (box_polygon(10, 10, 13, 13), "fewer than 4 pixels"),
        (box_polygon(197, 10, 210, 13), "fewer than 4 pixels"),
        (box_polygon(-1e9, -1e9, 1e9, 1e9), "less than 10% of the polygon"),
    ],
)
@pytest.mark.parametrize("upright", [False, True])
def test_a_polygon_without_a_chip_says_why(polygon: Any, reason: str, upright: bool) -> None:
    with pytest.raises(ValueError, match=reason):
        cut(Picture(), polygon, CutOptions(upright=upright))


def test_background_is_clear_of_every_box_and_of_other_background() -> None:
    rng = np.random.default_rng(0)
    polygons = [box_polygon(x, y, x + 30, y + 20) for x in (10, 90, 150) for y in (5, 60)]
    windows = background_windows(200, 120, polygons, 6, rng)
    assert 0 < len(windows) <= 6
    taken = np.zeros((120, 200), dtype=int)
    for (x0, y0), _, (x1, y1), _ in polygons:
        taken[int(y0) : int(y1), int(x0) : int(x1)] += 1
    for left, top, right, bottom in windows:
        assert (right - left, bottom - top) == (30, 30), "as large as the objects"
        assert not taken[top:bottom, left:right].any()
        taken[top:bottom, left:right] += 1


def test_a_scene_without_room_gives_no_background() -> None:
    assert background_windows(40, 40, [box_polygon(0, 0, 40, 40)], 5, np.random.default_rng(0)) == []
    assert background_windows(20, 30, [], 1, np.random.default_rng(0)) != []
