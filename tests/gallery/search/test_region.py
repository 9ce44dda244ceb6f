"""Regions: which footprints they meet, how few have to be read to know, and what is no region."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.gallery.search.region import Region
from lookdown.gallery.store.snapshot import CategoricalColumn, FilterColumns, Rows, shapes

RING = "POLYGON ((0 0, 12 0, 12 12, 0 12, 0 0), (3 3, 3 9, 9 9, 9 3, 3 3))"


def region_of(place: Any) -> Region:
    is_polygon = isinstance(place, shapely.Geometry) or (isinstance(place, str) and "POLYGON" in place.upper())
    return Region.of_polygon(place) if is_polygon else Region.of_box(place)


class Footprints:
    """FilterColumns of a gallery that know nothing but footprints, and note which were read."""

    def __init__(self, texts: Sequence[str | None]) -> None:
        self.texts = texts
        self.read: list[int] = []
        nothing = CategoricalColumn.from_texts([None] * len(texts))
        background = np.zeros(len(texts), np.bool_)
        bounds = shapely.bounds(shapes(texts)).reshape(-1, 4)
        self.columns = FilterColumns(nothing, nothing, nothing, nothing, background, bounds, self._footprints)

    def _footprints(self, rows: Rows) -> list[str | None]:
        self.read += rows.tolist()
        return [self.texts[row] for row in rows]

    def met_by(self, place: Any, among: NDArray[np.bool_] | None = None) -> list[int]:
        self.read.clear()
        everywhere = np.ones(len(self.texts), dtype=np.bool_)
        found = region_of(place).rows(self.columns, everywhere if among is None else among)
        assert found.dtype == np.bool_
        return np.flatnonzero(found).tolist()


def box(west: float, south: float, east: float, north: float) -> str:
    return str(shapely.box(west, south, east, north).wkt)


def test_a_box_reads_only_the_footprints_on_its_rim() -> None:
    diamond = "POLYGON ((10 9, 11 10, 10 11, 9 10, 10 9))"
    near_the_corner = "POLYGON ((11.5 9, 12.5 10, 11.5 11, 10.5 10, 11.5 9))"
    chips = Footprints([box(1, 1, 2, 2), diamond, near_the_corner, box(20, 20, 21, 21), None, box(10, 5, 11, 6)])
    assert chips.met_by((0, 0, 10.7, 10.7)) == [0, 1, 2, 5]
    assert chips.read == [1, 2, 5]
    assert chips.met_by((10.8, 10.8, 11.2, 12)) == []  # though the bounds of two chips overlap the box
    assert chips.read == [1, 2]
    assert chips.met_by((0, 0, 30, 30)) == [0, 1, 2, 3, 5]
    assert chips.read == []


def test_a_polygon_reads_only_the_footprints_on_its_rim() -> None:
    inside, hole, outside = box(1, 1, 2, 2), box(4, 4, 5, 5), box(13, 1, 14, 2)
    on_the_rim, on_the_rim_of_the_hole, around = box(11, 1, 13, 2), box(2, 4, 4, 5), box(2, 2, 10, 10)
    chips = Footprints([inside, hole, outside, on_the_rim, on_the_rim_of_the_hole, around])
    for place in (RING, f"  {RING.lower()}", shapely.from_wkt(RING), RING.replace("POLYGON", "MULTIPOLYGON (") + ")"):
        assert chips.met_by(place) == [0, 3, 4, 5]
        assert chips.read == [3, 4, 5]


def test_within_the_bounds_of_a_polygon_but_outside_it_nothing_is_read() -> None:
    triangle = "POLYGON ((0 0, 10 0, 0 10, 0 0))"
    slanted = "POLYGON ((5.5 4.9, 6.5 5.9, 5.9 6.5, 4.9 5.5, 5.5 4.9))"  # only its bounds reach over the slope
    chips = Footprints([box(8, 8, 9, 9), box(1, 1, 2, 2), slanted])
    assert chips.met_by(triangle) == [1]
    assert chips.read == [2]


def test_rows_that_other_conditions_leave_out_are_not_read() -> None:
    chips = Footprints([box(0, 0, 2, 2)] * 3)
    assert chips.met_by((1, 1, 3, 3), among=np.array([False, True, False])) == [1]
    assert chips.read == [1]


def test_a_rim_is_read_once_however_often_the_region_goes_round() -> None:
    inside_and_beside_the_next_turn = box(170, 0, 180, 1)
    chips = Footprints([box(175, 0, 185, 1), box(-1, 0, 1, 1), inside_and_beside_the_next_turn])
    assert chips.met_by((-180, -90, 180, 90)) == [0, 1, 2]
    assert chips.read == [0]


def test_to_touch_is_to_meet() -> None:
    chips = Footprints([box(0, 0, 1, 1), "POINT (2 1)", "LINESTRING (1 2, 5 2)"])
    assert chips.met_by((1, 1, 2, 2)) == [0, 1, 2]
    assert chips.met_by(box(1, 1, 2, 2)) == [0, 1, 2]


def test_a_box_may_be_a_point_or_a_line() -> None:
    chips = Footprints([box(0, 0, 2, 2), "POLYGON ((0 0, 2 0, 0 2, 0 0))", box(1.5, 1.5, 1.6, 1.6), "POINT (1.5 1.5)"])
    assert chips.met_by((1.5, 1.5, 1.5, 1.5)) == [0, 2, 3]
    assert chips.met_by((1.5, -1, 1.5, 5)) == [0, 1, 2, 3]
    assert chips.met_by((1.2, 1.2, 1.4, 1.2)) == [0]


def test_the_date_line_is_no_rim() -> None:
    beyond, before = box(-179, 0, -178, 1), box(178, 0, 179, 1)
    across, across_the_other_way = box(179, 0, 181, 1), box(-181, 0, -179, 1)
    chips = Footprints([beyond, before, across, across_the_other_way, box(0, 0, 1, 1)])
    for place in ((170, -5, -170, 5), (170, -5, 190, 5), (-190, -5, -170, 5), box(170, -5, 190, 5)):
        assert chips.met_by(place) == [0, 1, 2, 3], place
        assert chips.read == []
    cut_in_two = shapely.MultiPolygon([shapely.box(170, -5, 180, 5), shapely.box(-180, -5, -170, 5)])
    assert chips.met_by(cut_in_two) == [0, 1, 2, 3]
    assert chips.met_by((-180, -5, -178.5, 5)) == [0, 2, 3]
    assert chips.met_by((180, -5, 180, 5)) == [2, 3]
    assert chips.met_by((10, -5, 170, 5)) == []
    assert chips.met_by((-180, -90, 180, 90)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("turn", [-360, 360])
def test_longitudes_may_be_given_a_turn_away(turn: int) -> None:
    chips = Footprints([box(10, 0, 11, 1), box(-170, 0, -169, 1), box(190, 0, 191, 1), box(-350, 0, -349, 1)])
    for west, expected in ((10, [0, 3]), (-170, [1, 2])):
        if -360 <= west + turn <= 359:
            assert chips.met_by((west + turn, 0, west + turn + 1, 1)) == expected
            assert chips.met_by(box(west + turn, 0, west + turn + 1, 1)) == expected
    assert chips.met_by((350, 0, 345, 1)) == [0, 1, 2, 3]  # all of the way round but for five degrees


def test_footprints_that_cannot_be_read_meet_nothing() -> None:
    texts = [
        "POLYGON ((0 0, 1 1", "", "nonsense", "POLYGON EMPTY", "POLYGON ((0 0, nan 1, 2 2, 0 0))", "POLYGON ((\ud800",
        "POLYGON ((0 0, inf 1, 2 2, 0 0))", "POLYGON ((0 0, 1e999 1, 2 2, 0 0))", "CURVEPOLYGON ((0 0, 1 1, 2 0, 0 0))",
        "GEOMETRYCOLLECTION (POINT (1 1))", None, "POINT (1 1)",
    ]  # fmt: skip
    chips = Footprints(texts)
    assert [text for text, shape in zip(texts, shapes(texts), strict=True) if shape] == ["POINT (1 1)"]
    overlapping, beyond = [0.0, 0.0, 2.0, 2.0], [1.0, -np.inf, np.inf, np.inf]
    for bounds in (overlapping, beyond):  # even where a table says that they have bounds
        chips.columns.bounds[:-1] = bounds
        for place in ((1, 1, 3, 3), "POLYGON ((0.5 0.5, 3 0.5, 3 3, 0.5 0.5))"):
            assert chips.met_by(place) == [len(texts) - 1]


def test_a_footprint_in_parts_may_lie_all_around_the_region() -> None:
    above, below = shapely.box(4, 8, 6, 9), shapely.box(4, 1, 6, 2)
    left, right = shapely.box(1, 4, 2, 6), shapely.box(8, 4, 9, 6)
    chips = Footprints([shapely.MultiPolygon(parts).wkt for parts in ([above, below], [left, right], [above, left])])
    for place in ((3, 3, 7, 7), box(3, 3, 7, 7)):
        assert chips.met_by(place) == []
        assert chips.read == [0, 1, 2]


@pytest.mark.parametrize("place", [(0, 0, 1, 1), "POLYGON ((0 0, 1 0, 0.5 1, 0 0))"])
def test_a_footprint_beyond_all_reason_does_not_stop_the_search(place: Any) -> None:
    chips = Footprints(["POLYGON ((-1e200 -1e200, 1e200 -1e200, 0 1e200, -1e200 -1e200))", box(0, 0, 1, 1)])
    assert 1 in chips.met_by(place)


def test_a_footprint_that_crosses_itself_still_has_a_place() -> None:
    chips = Footprints(["POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))"])
    assert chips.met_by((1.5, 0.9, 3, 1.1)) == [0]
    assert chips.met_by((0.9, 1.5, 1.1, 3)) == []


def test_text_that_nests_without_end_does_not_end_the_process() -> None:
    script = """
from lookdown.errors import InputError
from lookdown.gallery.search.region import Region
from lookdown.gallery.store.snapshot import shapes
deep = "GEOMETRYCOLLECTION (" * 300_000
assert shapes([deep])[0] is None
try:
    Region.of_polygon(deep)
except InputError as error:
    print(str(error)[:9])
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (0, "`polygon`\n"), told.stderr


def test_a_region_is_a_value() -> None:
    for place in ((4, 51, 5, 52), RING):
        region, again = region_of(place), region_of(place)
        assert region == again == region_of(region) == pickle.loads(pickle.dumps(region))
        assert len({region, again, region_of((4, 51, 5, 53)), region_of(box(4, 51, 5, 53))}) == 3
    assert region_of([4, 51, 5, 52]) == region_of(np.array([4, 51, 5, 52], np.float32)) == region_of("4, 51,5.0,52")
    assert region_of((170, 0, -170, 1)) == region_of((170, 0, 190, 1))
    assert region_of(RING) == region_of(shapely.force_3d(shapely.from_wkt(RING), 7))
    assert str(region_of((4.25, 51, 5, 52))) == "the box from 4.25 51 to 5 52"
    assert str(region_of(RING)) == "a polygon from 0 0 to 12 12"


def test_threads_may_share_a_region() -> None:
    rng = np.random.default_rng(0)
    west, south = rng.uniform(-2, 13, (2, 400))
    chips = Footprints([box(x, y, x + 1, y + 1) for x, y in zip(west, south, strict=True)])
    region = region_of(shapely.buffer(shapely.from_wkt(RING), 0.5, quad_segs=64))
    expected = chips.met_by(region)
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda _: region.rows(chips.columns, np.ones(400, np.bool_)), range(64))]
    assert all(np.flatnonzero(rows).tolist() == expected for rows in found)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ((0, 10, 1, 5), "has its south 10 beyond its north 5; give west, south, east and north"),
        ((float("nan"), 0, 1, 1), "has the longitude nan, which is not between -360 and 360; give"),
        ((0, 0, 1, float("nan")), "has the latitude nan, which is not between -90 and 90; give"),
        ((0, 0, 400, 1), "has the longitude 400, which is not"),
        ((51, 4, 52, 91), "has the latitude 91, which is not"),
        ((0, 0, 1, 10**400), "has the latitude 1000"),
        ((0, 0, 1), "is not a box; give"),
        ((0, 0, 1, "1"), "is not a box; give"),
        ((0, 0, 1, True), "is not a box; give"),
        ([[0, 0], [1]], "is not a box; give"),
        (np.zeros((4, 1)), "is not a box; give"),
        (np.float64(4), "is not a box; give"),
        ({0, 1, 2, 3}, "is not a box; give"),
        ({"west": 0}, "is not a box; give"),
        (True, "is not a box; give"),
        ("", "is not a box; give"),
        ("1,2,3", "is not a box; give"),
        ("1,2,nan,4", "has the longitude nan"),
        ("POINT (1 1)", "cannot be read as a polygon; give WKT"),
        ("POLYGON ((0 0, 1 1", "cannot be read as a polygon; give WKT"),
        ("POLYGON ((0 0, 1 0, nan 1, 0 0))", "cannot be read as a polygon; give WKT"),
        ("POLYGON ((0 0, 1 0, \ud800 1, 0 0))", "cannot be read as a polygon; give WKT"),
        ("POLYGON EMPTY", "is an empty Polygon; omit it"),
        ("MULTIPOLYGON EMPTY", "is an empty MultiPolygon; omit it"),
        ("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))", "is not a valid polygon: Self-intersection.*; correct"),
        ("POLYGON ((0 0, 1 0, 1 91, 0 0))", "has the latitude 91.0, which is not"),
        ("POLYGON ((0 0, 361 0, 1 1, 0 0))", "has the longitude 361.0, which is not"),
        (shapely.Point(1, 1), "is a Point; give a Polygon or a MultiPolygon"),
        (shapely.transform(shapely.box(0, 0, 1, 1), lambda at: np.add(at, (np.inf, 0))), "has the longitude inf"),
        (shapely.Polygon(), "is an empty Polygon"),
    ],
)
def test_what_is_no_region_is_refused_by_the_name_of_its_field(place: Any, reason: str) -> None:
    is_polygon = isinstance(place, shapely.Geometry) or (isinstance(place, str) and place[:1].isalpha())
    make = Region.of_polygon if is_polygon else Region.of_box
    with pytest.raises(InputError, match=f"(?s)^`area` .*{reason}"):
        make(place, "area")
