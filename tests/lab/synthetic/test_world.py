"""Worlds on disk: the same from the same seed, split without leaks, and true to their pixels."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from PIL import Image
from rasterio.warp import transform

from lookdown.chips.manifest import Manifest
from lookdown.errors import InputError, OutputError
from lookdown.lab.synthetic.locations import CRS
from lookdown.lab.synthetic.world import World, draw_world, plan_world

SMALL = World(chips=12, size=24, seed=4)


def digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*.jpg"))
    manifest = Manifest.read(folder).table.to_pylist()
    return hashlib.sha256(b"".join(path.read_bytes() for path in files) + repr(manifest).encode()).hexdigest()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worlds") / "small"
    draw_world(SMALL, folder)
    return folder


def test_another_process_draws_the_same_bits(small: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from lookdown.lab.synthetic.world import World, draw_world;"
        "draw_world(World(chips=12, size=24, seed=4), Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "again")], check=True, timeout=300)
    assert digest(tmp_path / "again") == digest(small)


def test_every_kind_is_in_every_role_and_no_place_in_two(small: Path) -> None:
    manifest = Manifest.read(small)
    rows = manifest.table.to_pylist()
    roles = Counter((row["label"], row["role"]) for row in rows if not row["background"])
    assert len(roles) == 36 * 3
    locations: dict[str, set[str]] = {}
    for row in rows:
        locations.setdefault(row["scene_group"], set()).add(row["role"])
    assert all(len(roles) == 1 for roles in locations.values())
    assert {row["role"] for row in rows if row["background"]} == {"gallery"}
    assert sum(row["background"] for row in rows) == round(0.15 * 36 * 12)


def test_polygons_and_footprints_agree(small: Path) -> None:
    """The corners of an object, taken from the pixels to metres and to degrees by another way, are its footprint."""
    planned = {item.id: item for item in plan_world(SMALL)[0]}
    for row in Manifest.read(small).table.to_pylist():
        item = planned[row["id"]]
        view = item.take(SMALL).view
        assert row["gsd"] == view.step
        if item.kind is None:
            assert row["polygon"] is None
            pixels = np.array([[0, 0], [24, 0], [24, 24], [0, 24]])
        else:
            polygon = shapely.from_wkt(row["polygon"])
            assert shapely.box(-1, -1, 25, 25).covers(polygon), row["id"]
            pixels = np.array(polygon.exterior.coords)[:4]
        east = item.location.easting + item.at[0] + view.west + pixels[:, 0] * view.step
        north = item.location.northing + item.at[1] + view.north - pixels[:, 1] * view.step
        lon, lat = np.array(shapely.from_wkt(row["footprint"]).exterior.coords)[:4].T
        there = transform("EPSG:4326", CRS, lon.tolist(), lat.tolist())
        np.testing.assert_allclose(there, [east, north], atol=0.02)


def test_a_chip_does_not_depend_on_the_others() -> None:
    few, many = World(chips=10, size=24, seed=4), World(chips=14, size=24, seed=4, kinds="ships")
    by_id = {item.id: item for item in plan_world(many)[0]}
    for item in plan_world(few)[0]:
        if item.id in by_id and item.kind:
            np.testing.assert_array_equal(item.take(few).pixels, by_id[item.id].take(many).pixels)
            break
    else:
        raise AssertionError("no chip in common")


def test_the_shift_changes_the_sensor_of_what_is_searched_only() -> None:
    world = World(chips=12, size=24, shift=0.6, protocol="uda", seed=1)
    planned, skipped, _ = plan_world(world)
    sensors = {(item.role, item.sensor(world).name) for item in planned}
    assert sensors == {("train", "near"), ("query", "near-far-0.60"), ("gallery", "near-far-0.60")}
    trained = {item.kind for item in planned if item.role == "train"}
    searched = {item.kind for item in planned if item.role != "train"} - {None}
    assert trained
    assert searched
    assert not trained & searched
    assert not skipped, "classes of the two sides are found in different locations from the start"
    assert len(searched) == 14
    named = World(chips=12, size=24, protocol="uda", train_classes=("ferry", "trawler"), kinds="ships")
    assert {item.kind for item in plan_world(named)[0] if item.role == "train"} == {"ferry", "trawler"}
    with pytest.raises(InputError, match="there is no kind 'ferries' in this world"):
        plan_world(World(protocol="uda", train_classes=("ferries",)))


def test_kinds_by_name_are_the_same_chips_as_in_the_whole_world() -> None:
    names = ("trawler", "flying wing")
    some, _, _ = plan_world(World(kinds=names, chips=12))
    every, _, _ = plan_world(World(chips=12))
    known = {item.id: item for item in every}
    assert {item.kind for item in some} == {*names, None}
    for item in some:
        if item.kind == "trawler":
            assert (item.location, item.at, item.stream) == (
                known[item.id].location,
                known[item.id].at,
                known[item.id].stream,
            )


def test_a_world_may_hold_nothing_that_trains() -> None:
    world = World(kinds=("trawler", "flying wing"), chips=20, protocol="uda", train_classes=(), shift=0.5)
    planned, skipped, _ = plan_world(world)
    assert {item.role for item in planned} == {"query", "gallery"}
    assert not skipped
    assert {item.sensor(world) for item in planned} == {world.searched_with}


def test_a_finished_world_is_left_alone_and_another_is_refused(small: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in small.rglob("*")}
    again = draw_world(SMALL, small)
    assert again.resumed
    assert again.notes == plan_world(SMALL)[2]
    assert {path: path.stat().st_mtime_ns for path in small.rglob("*")} == before
    with pytest.raises(OutputError, match="other data or other options"):
        draw_world(World(chips=12, size=24, seed=5), small)


def test_scenes_are_written_beside_the_chips(tmp_path: Path) -> None:
    calls: list[tuple[Any, ...]] = []
    world = World(chips=10, size=16, scenes=2, scene_size=512, kinds="aircraft")
    done = draw_world(world, tmp_path / "world", progress=lambda *call: calls.append(call))
    assert calls[-1] == (len(done.manifest) + 2, len(done.manifest) + 2, "images")
    names = sorted(path.name for path in (tmp_path / "world" / "scenes").iterdir())
    assert names == ["apron-00.geojson", "apron-00.tif", "forest-01.geojson", "forest-01.tif"]


def test_chips_are_pictures_of_the_size_asked_for(small: Path) -> None:
    for path in Manifest.read(small).paths[:5]:
        with Image.open(path) as image:
            assert image.size == (24, 24)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chips": 0}, "chips of a world must be at least 10, got 0"),
        ({"locations": 3}, "locations of a world must be at least 25, got 3"),
        ({"locations": 901}, "at most 900 locations"),
        ({"shift": 2}, "got 2"),
        ({"kinds": "trains"}, "kinds are all, ships, aircraft, or a tuple of names; got 'trains'"),
        ({"kinds": ("trawler", "cars")}, "no kind 'cars'"),
        ({"kinds": ()}, "empty"),
        ({"background": -1}, "background is a share"),
    ],
)
def test_impossible_worlds_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        World(**options)  # type: ignore[arg-type]


def test_a_scene_that_was_cut_short_is_drawn_again(tmp_path: Path) -> None:
    world = World(chips=10, size=8, scenes=1, scene_size=512, kinds="ships")
    draw_world(world, tmp_path / "whole")
    for cut in (0, 5, 100, 2000):
        out = tmp_path / f"cut {cut}"
        (out / "scenes").mkdir(parents=True)
        shutil.copy(tmp_path / "whole" / "prepare.json", out)
        record = json.loads((out / "prepare.json").read_text())
        (out / "prepare.json").write_text(json.dumps(record | {"complete": False}))
        scene = (tmp_path / "whole" / "scenes" / "harbour-00.tif").read_bytes()
        (out / "scenes" / ".harbour-00.part.tif").write_bytes(scene[:cut])
        draw_world(world, out)
        assert (out / "scenes" / "harbour-00.tif").read_bytes() == scene


def test_a_world_that_cannot_be_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no kind 'ferries'"):
        draw_world(World(protocol="uda", train_classes=("ferries",)), tmp_path / "world")
    assert not (tmp_path / "world").exists()
