"""Merging against a loop over all pairs, and what it must never do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.gallery.search import overlap as overlap_module
from lookdown.gallery.search.overlap import merge_overlapping

BROKEN = [
    None,
    "",
    "no polygon",
    "POLYGON EMPTY",
    "POLYGON ((0 0, 9 9))",
    "POINT (5 5)",
    "LINESTRING (0 0, 90 90)",
    "POLYGON ((0 0, 60 60, 60 0, 0 20, 0 0))",  # crosses itself
    "POLYGON ((0 0, 9 0, 4 0, 0 0))",  # has no area
    "POLYGON ((nan 0, 9 9, 9 0, nan 0))",
    "POLYGON ((inf 0, 9 9, 9 0, inf 0))",
    "POLYGON ((0 0, 1e300 0, 0 1e300, 0 0))",
    "POLYGON ((0 0, 1e-308 0, 1e-309 90, 0 0))",
    "GEOMETRYCOLLECTION (POLYGON ((0 0, 9 0, 9 9, 0 0)))",
]


def window(left: float, top: float, size: float) -> str:
    return str(shapely.box(left, top, left + size, top + size).wkt)


def tilted(rng: np.random.Generator) -> str:
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * rng.uniform(4, 40, 2)
    angle = rng.uniform(0, np.pi)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return str(shapely.Polygon(corners @ turn + rng.uniform(0, 200, 2)).wkt)


def hits(count: int, seed: int) -> tuple[list[str], list[str | None]]:
    """Windows on a grid, windows anywhere, polygons at an angle, and what is none of these."""
    rng = np.random.default_rng(seed)

    def polygon() -> str | None:
        match rng.integers(5):
            case 0:
                return window(32 * int(rng.integers(8)), 32 * int(rng.integers(8)), 64)
            case 1:
                return window(int(rng.integers(200)), int(rng.integers(200)), rng.choice([16, 64, 128]))
            case 2:
                return window(rng.uniform(0, 200), rng.uniform(0, 200), rng.uniform(5, 100))
            case 3:
                return tilted(rng)
            case _:
                return BROKEN[rng.integers(len(BROKEN))]

    return [f"scene {code}" for code in rng.integers(0, 3, count)], [polygon() for _ in range(count)]


def by_all_pairs(scenes: list[str], polygons: list[str | None], overlap: float) -> tuple[list[int], list[int]]:
    shapes = [None if polygon in BROKEN else shapely.from_wkt(polygon) for polygon in polygons]
    kept: list[int] = []
    merged: list[int] = []
    for hit, shape in enumerate(shapes):
        for place, better in enumerate(kept):
            other = shapes[better]
            if shape is None or other is None or scenes[hit] != scenes[better]:
                continue
            if shape.intersection(other).area > overlap * min(shape.area, other.area):
                merged[place] += 1
                break
        else:
            kept.append(hit)
            merged.append(0)
    return kept, merged


@pytest.mark.parametrize("overlap", [0, 0.2, 0.25, 0.5, 1])
@pytest.mark.parametrize("rows", [1, 7, 32])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_loop_over_all_pairs(overlap: float, rows: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap_module, "_BATCH_HITS", rows)
    scenes, polygons = hits(150, seed)
    found = merge_overlapping(scenes, polygons, overlap)
    kept, merged = by_all_pairs(scenes, polygons, overlap)
    np.testing.assert_array_equal(found[0], kept)
    np.testing.assert_array_equal(found[1], merged)
    assert found[1].sum() == 150 - len(kept)


def test_all_windows_at_half_a_stride_around_the_best_go_and_the_next_but_one_stay() -> None:
    places = [(0, 0), *((x, y) for x in (-32, 0, 32) for y in (-32, 0, 32) if (x, y) != (0, 0)), (64, 0), (64, 64)]
    found = merge_overlapping(["scene"] * 11, [window(x, y, 64) for x, y in places], 0.2)
    np.testing.assert_array_equal(found[0], [0, 9, 10])
    np.testing.assert_array_equal(found[1], [8, 0, 0])


@pytest.mark.parametrize("sizes", [(512, 16), (16, 512)])
def test_a_window_within_another_is_the_same_object_whichever_is_better(sizes: tuple[int, int]) -> None:
    found = merge_overlapping(["scene"] * 2, [window(0, 0, size) for size in sizes], 0.9)
    np.testing.assert_array_equal(found[0], [0])
    np.testing.assert_array_equal(found[1], [1])


def test_what_was_merged_merges_nothing_itself() -> None:
    chain = [window(40 * step, 0, 64) for step in range(5)]
    found = merge_overlapping(["scene"] * 5, chain, 0.2)
    np.testing.assert_array_equal(found[0], [0, 2, 4])
    np.testing.assert_array_equal(found[1], [1, 1, 0])  # 1 goes to 0, and 3 to the better of its neighbours


def test_scenes_do_not_mix_though_pixels_are_the_same() -> None:
    found = merge_overlapping(["a", "b", "a", "c"], [window(0, 0, 64)] * 4, 0.2)
    np.testing.assert_array_equal(found[0], [0, 1, 3])
    np.testing.assert_array_equal(found[1], [1, 0, 0])


@pytest.mark.parametrize("polygon", BROKEN)
def test_what_is_no_polygon_is_never_merged_and_never_an_error(polygon: str | None) -> None:
    found = merge_overlapping(["scene"] * 4, [window(0, 0, 64), polygon, polygon, window(1, 1, 64)], 0.2)
    np.testing.assert_array_equal(found[0], [0, 1, 2])
    np.testing.assert_array_equal(found[1], [1, 0, 0])


@pytest.mark.parametrize("count", [0, 1])
def test_few_hits(count: int) -> None:
    found = merge_overlapping(["scene"] * count, [window(0, 0, 64)] * count, 0.2)
    np.testing.assert_array_equal(found[0], np.arange(count))
    np.testing.assert_array_equal(found[1], np.zeros(count))


def test_a_longer_list_keeps_the_same_of_the_hits_before() -> None:
    scenes, polygons = hits(120, 5)
    whole = merge_overlapping(scenes, polygons, 0.2)
    for count in (1, 10, 33, 80):
        found = merge_overlapping(scenes[:count], polygons[:count], 0.2)
        np.testing.assert_array_equal(found[0], whole[0][whole[0] < count])
        assert (found[1] <= whole[1][: len(found[0])]).all()


class Counting(shapely.STRtree):  # type: ignore[misc]
    """A tree that counts the pairs it was asked for."""

    pairs = 0

    def query(self, *arguments: Any) -> NDArray[np.int64]:
        found = np.asarray(super().query(*arguments))
        Counting.pairs += found.shape[-1]
        return found


@pytest.mark.parametrize("case", ["copies", "tiles", "copies after tiles", "wholes after tiles", "many scenes"])
def test_no_list_of_hits_leads_to_all_pairs(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tiles = [window(64 * (place % 50), 64 * (place // 50), 64) for place in range(2500)]
    cases = {
        "copies": tiles[:1] * 5000,
        "tiles": tiles,
        "copies after tiles": tiles[1:] + tiles[:1] * 2500,
        "wholes after tiles": tiles + [window(0, 0, 3200)] * 1000,
        "many scenes": tiles[:2] * 2500,
    }
    polygons = cases[case]
    scenes = [str(place // 2) if case == "many scenes" else "scene" for place in range(len(polygons))]
    monkeypatch.setattr(shapely, "STRtree", Counting)
    monkeypatch.setattr(Counting, "pairs", 0)
    found = merge_overlapping(scenes, polygons, 0.2)
    assert len(found[0]) == {"copies": 1, "many scenes": 5000}.get(case, 2500)
    assert Counting.pairs < 50 * len(polygons)


def test_arguments_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(InputError, match="2 scenes for 1 polygons"):
        merge_overlapping(["a", "b"], [None], 0.2)
    for overlap in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match="from 0 to 1"):
            merge_overlapping(["a"], [None], overlap)
