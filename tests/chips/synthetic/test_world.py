"""Worlds on disk: the same from the same seed, split without leaks, and true to their pixels."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import shapely
from PIL import Image

from lookdown.chips.manifest import Manifest
from lookdown.chips.synthetic.world import World, make, plan
from lookdown.errors import InputError, OutputError

SMALL = World(chips=12, size=24, seed=4)


def digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*.jpg"))
    manifest = Manifest.read(folder).table.to_pylist()
    return hashlib.sha256(b"".join(path.read_bytes() for path in files) + repr(manifest).encode()).hexdigest()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worlds") / "small"
    make(SMALL, folder)
    return folder


def test_another_process_draws_the_same_bits(small: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from lookdown.chips.synthetic.world import World, make;"
        "make(World(chips=12, size=24, seed=4), Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "again")], check=True, timeout=300)
    assert digest(tmp_path / "again") == digest(small)


def test_every_kind_is_in_every_role_and_no_place_in_two(small: Path) -> None:
    manifest = Manifest.read(small)
    rows = manifest.table.to_pylist()
    roles = Counter((row["label"], row["role"]) for row in rows if not row["background"])
    assert len(roles) == 36 * 3
    places: dict[str, set[str]] = {}
    for row in rows:
        places.setdefault(row["scene_group"], set()).add(row["role"])
    assert all(len(of_place) == 1 for of_place in places.values())
    assert {row["role"] for row in rows if row["background"]} == {"gallery"}
    assert sum(row["background"] for row in rows) == round(0.15 * 36 * 12)


def test_polygons_and_footprints_agree(small: Path) -> None:
    """A metre on the map is a metre in the chip: areas match, and so do the angles of the long side."""
    for row in Manifest.read(small).table.to_pylist():
        footprint = shapely.from_wkt(row["footprint"])
        if row["background"]:
            assert row["polygon"] is None
            continue
        polygon = shapely.from_wkt(row["polygon"])
        assert shapely.box(-1, -1, 25, 25).covers(polygon), row["id"]
        metres = np.array(footprint.exterior.coords)[:4] * (111_320, 110_574)
        pixels = np.array(polygon.exterior.coords)[:4] * (row["gsd"], -row["gsd"])
        for side in (0, 1):
            there, here = metres[side + 1] - metres[side], pixels[side + 1] - pixels[side]
            np.testing.assert_allclose(there, here, atol=0.02 * np.hypot(*here) + 0.3)


def test_a_chip_does_not_depend_on_the_others() -> None:
    few, many = World(chips=10, size=24, seed=4), World(chips=14, size=24, seed=4, kinds="ships")
    by_id = {item.id: item for item in plan(many)[0]}
    for item in plan(few)[0]:
        if item.id in by_id and item.kind:
            np.testing.assert_array_equal(item.take(few).pixels, by_id[item.id].take(many).pixels)
            break
    else:
        raise AssertionError("no chip in common")


def test_the_shift_changes_the_sensor_of_what_is_searched_only() -> None:
    world = World(chips=12, size=24, shift=0.6, protocol="uda", seed=1)
    planned, skipped, _ = plan(world)
    sensors = {(item.role, item.sensor(world).name) for item in planned}
    assert sensors == {("train", "near"), ("query", "near-far-0.60"), ("gallery", "near-far-0.60")}
    trained = {item.kind for item in planned if item.role == "train"}
    searched = {item.kind for item in planned if item.role != "train"} - {None}
    assert trained
    assert searched
    assert not trained & searched
    assert not skipped, "classes of the two sides are found in different places from the start"
    assert len(searched) == 14
    named = World(chips=12, size=24, protocol="uda", train_classes=("ferry", "trawler"), kinds="ships")
    assert {item.kind for item in plan(named)[0] if item.role == "train"} == {"ferry", "trawler"}
    with pytest.raises(InputError, match="there is no kind 'ferries' in this world"):
        plan(World(protocol="uda", train_classes=("ferries",)))


def test_a_finished_world_is_left_alone_and_another_is_refused(small: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in small.rglob("*")}
    assert make(SMALL, small).resumed
    assert {path: path.stat().st_mtime_ns for path in small.rglob("*")} == before
    with pytest.raises(OutputError, match="other data or other options"):
        make(World(chips=12, size=24, seed=5), small)


def test_scenes_are_written_beside_the_chips(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    world = World(chips=10, size=16, scenes=2, scene_size=512, kinds="aircraft")
    done = make(world, tmp_path / "world", progress=lambda *call: calls.append(call))
    assert calls[-1] == (len(done.manifest) + 2, len(done.manifest) + 2)
    names = sorted(path.name for path in (tmp_path / "world" / "scenes").iterdir())
    assert names == ["apron-00.geojson", "apron-00.tif", "forest-01.geojson", "forest-01.tif"]


def test_chips_are_pictures_of_the_size_asked_for(small: Path) -> None:
    for path in Manifest.read(small).paths[:5]:
        with Image.open(path) as image:
            assert image.size == (24, 24)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chips": 0}, "chips of a world must be at least 1, got 0"),
        ({"places": 3}, "places of a world must be at least 25, got 3"),
        ({"shift": 2}, "got 2"),
        ({"kinds": "trains"}, "kinds are all, ships or aircraft; got 'trains'"),
        ({"background": -1}, "background is a share"),
    ],
)
def test_impossible_worlds_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        World(**options)  # type: ignore[arg-type]
