"""From a source to a manifest: nothing lost, nothing leaked, stopped and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.chips import layouts

from lookdown.chips.cutting import CutOptions
from lookdown.chips.manifest import Manifest
from lookdown.chips.prepare import cut_chips, prepare
from lookdown.chips.roles import SplitOptions
from lookdown.chips.sources import SourceContent, read_source
from lookdown.errors import InputError, OutputError

SCENES = 24


@pytest.fixture
def mar20(tmp_path: Path) -> SourceContent:
    layouts.voc(tmp_path / "data", SCENES, mar20=True)
    return read_source("mar20", tmp_path / "data")


def assert_no_leak(manifest: Manifest) -> None:
    roles = defaultdict(set)
    for group, role in zip(manifest.groups, manifest.table["role"].to_pylist(), strict=True):
        roles[group].add(role)
    assert all(len(of_group) == 1 for of_group in roles.values())


def roles_of_classes(manifest: Manifest) -> dict[str | None, Counter[str]]:
    found: dict[str | None, Counter[str]] = defaultdict(Counter)
    for label, role in zip(manifest.labels, manifest.table["role"].to_pylist(), strict=True):
        found[label][role] += 1
    return found


def test_every_object_becomes_a_chip_with_a_role_and_no_group_is_in_two(mar20: SourceContent, tmp_path: Path) -> None:
    done = cut_chips(mar20, tmp_path / "out")
    manifest = Manifest.read(tmp_path / "out")
    assert len(manifest) + len(done.skipped) >= 4 * SCENES
    objects = [row for row in manifest.table.to_pylist() if not row["background"]]
    assert len(objects) + sum("background" not in item.item for item in done.skipped) == 4 * SCENES
    assert_no_leak(manifest)
    for label, counts in roles_of_classes(manifest).items():
        assert set(counts) == ({"gallery"} if label is None else {"train", "query", "gallery"})
    one = next(row for row in objects if row["id"] == "0_0000")
    with Image.open(tmp_path / "out" / one["path"]) as chip:
        assert chip.size == (24 - 4 + 4, 20 - 4 + 4)  # a margin of 2 on each side
    assert one["polygon"] == "POLYGON ((4 4, 24 4, 24 20, 4 20, 4 4))"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "chips", "manifest.parquet", "prepare.json", "skipped.csv", "split.csv",
    ]  # fmt: skip


def test_the_same_again_has_nothing_to_do_and_other_options_are_refused(mar20: SourceContent, tmp_path: Path) -> None:
    first = cut_chips(mar20, tmp_path / "out")
    again = cut_chips(mar20, tmp_path / "out")
    assert again.resumed
    assert again.manifest.table.equals(first.manifest.table)
    assert again.skipped == first.skipped
    with pytest.raises(OutputError, match="`overwrite=True`"):
        cut_chips(mar20, tmp_path / "out", cutting=CutOptions(margin=0.3))
    replaced = cut_chips(mar20, tmp_path / "out", cutting=CutOptions(margin=0.3), overwrite=True)
    assert len(replaced.manifest) == len(first.manifest)


@pytest.mark.parametrize("bad", ["nan", "inf", "1e300"])
def test_one_impossible_box_costs_itself_only(bad: str, tmp_path: Path) -> None:
    layouts.voc(tmp_path / "data", 12)
    file = tmp_path / "data" / "Annotations" / "0.xml"
    file.write_text(file.read_text().replace("<xmax>24</xmax>", f"<xmax>{bad}</xmax>"))
    done = cut_chips(read_source("voc", tmp_path / "data"), tmp_path / "out", splitting=SplitOptions(groups="scene"))
    assert [item.item for item in done.skipped if "background" not in item.item] == ["0_0000"]


def test_a_source_without_objects_makes_no_folder(tmp_path: Path) -> None:
    (tmp_path / "data" / "labelTxt").mkdir(parents=True)
    with pytest.raises(InputError, match="holds no object"):
        cut_chips(read_source("dota", tmp_path / "data"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_bad_images_cost_their_own_objects_only(tmp_path: Path) -> None:
    layouts.voc(tmp_path / "data", SCENES, mar20=True)
    images = tmp_path / "data" / "JPEGImages"
    (images / "3.jpg").write_bytes((images / "3.jpg").read_bytes()[:300])
    (images / "4.jpg").unlink()
    (images / "5.jpg").write_text("not an image")
    done = cut_chips(read_source("mar20", tmp_path / "data"), tmp_path / "out")
    lost = Counter(item.item.split("_")[0] for item in done.skipped if item.item.split("_")[0] in "345")
    assert lost == {"3": 4, "4": 4, "5": 4}
    assert not {"3", "4", "5"} & set(done.manifest.table["scene"].to_pylist())
    assert all(str(images) in item.reason for item in done.skipped if item.item.startswith(("3_", "4_", "5_")))


@pytest.mark.parametrize("bands", [1, 3, 5])
def test_chips_of_any_number_of_bands_are_written(bands: int, tmp_path: Path) -> None:
    import rasterio

    with rasterio.open(
        tmp_path / "scene.tif", "w", driver="GTiff", width=200, height=150, count=bands, dtype="uint8",
        crs="EPSG:32631", transform=rasterio.transform.from_origin(500000, 5.7e6, 10, 10),
    ) as scene:  # fmt: skip
        scene.write(np.random.default_rng(0).integers(0, 255, size=(bands, 150, 200), dtype=np.uint8))
    found = read_source("windows", tmp_path, size=64)
    done = cut_chips(found, tmp_path / "out")
    path = done.manifest.paths[0]
    chip = np.load(path) if bands == 5 else np.asarray(Image.open(path))
    assert chip.shape[:2] == (64, 64)
    assert set(done.manifest.table["role"].to_pylist()) == {"gallery"}
    assert done.manifest.table["footprint"][0].as_py().startswith("POLYGON ((")
    assert done.manifest.table["gsd"][0].as_py() == pytest.approx(10, rel=0.01)


def test_boxes_drawn_on_a_map_come_back_as_footprints(tmp_path: Path) -> None:
    import rasterio

    (tmp_path / "data").mkdir()
    with rasterio.open(
        tmp_path / "data" / "port.tif", "w", driver="GTiff", width=200, height=150, count=3, dtype="uint8",
        crs="EPSG:32631", transform=rasterio.transform.from_origin(500000, 5.7e6, 10, 10),
    ) as scene:  # fmt: skip
        scene.write(np.random.default_rng(0).integers(0, 255, size=(3, 150, 200), dtype=np.uint8))
    west, north, step = 3.005, 51.446, 0.002
    lefts = [west + index * 2 * step for index in range(3)]
    rings = [[[x, north], [x + step, north], [x + step, north - step], [x, north - step], [x, north]] for x in lefts]
    features = [
        {"type": "Feature", "properties": {"label": "ship"}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for ring in rings
    ]
    (tmp_path / "data" / "ships.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    done = cut_chips(read_source("geojson", tmp_path / "data"), tmp_path / "out", cutting=CutOptions(background=0))
    assert [row["label"] for row in done.manifest.table.to_pylist()] == ["ship"] * 3
    pixel = 10 / 111_000  # degrees of latitude
    for footprint, ring in zip(done.manifest.table["footprint"].to_pylist(), rings, strict=True):
        corners = np.array([pair.split() for pair in footprint[10:-2].split(", ")], dtype=float)
        np.testing.assert_allclose(corners, ring, atol=pixel / 10)


def test_chips_that_are_there_already_stay_where_they_are(tmp_path: Path) -> None:
    layouts.fair1m_chips(tmp_path / "data", 20)
    done = cut_chips(read_source("fair1m", tmp_path / "data"), tmp_path / "out")
    assert not (tmp_path / "out" / "chips").exists()
    assert all(path.is_relative_to(tmp_path / "data") for path in done.manifest.paths)
    assert Manifest.read(tmp_path / "out").background.sum() == 3
    assert_no_leak(done.manifest)


def test_near_duplicates_across_images_share_a_group(tmp_path: Path) -> None:
    layouts.folders(tmp_path / "data", 14)
    twin = Image.open(tmp_path / "data" / "A1" / "003.jpg")
    twin.save(tmp_path / "data" / "A1" / "copy.jpg", quality=80)
    done = cut_chips(read_source("folder", tmp_path / "data"), tmp_path / "out")
    groups = dict(zip(done.manifest.table["id"].to_pylist(), done.manifest.groups, strict=True))
    assert groups["A1/copy.jpg"] == groups["A1/003.jpg"]
    assert len(set(groups.values())) > 30


def test_an_archive_without_classes_is_all_gallery(tmp_path: Path) -> None:
    for index in range(5):
        layouts.save_image(tmp_path / "data" / f"{index}.png", index)
    done = cut_chips(read_source("folder", tmp_path / "data"), tmp_path / "out")
    assert done.manifest.table["role"].to_pylist() == ["gallery"] * 5


def test_nothing_left_is_said_with_the_reasons(tmp_path: Path) -> None:
    layouts.voc(tmp_path / "data", 2)
    for image in (tmp_path / "data" / "JPEGImages").iterdir():
        image.unlink()
    with pytest.raises(InputError, match="no chip is left of 8 objects"):
        cut_chips(read_source("voc", tmp_path / "data"), tmp_path / "out")
    assert not (tmp_path / "out" / "manifest.parquet").exists()


def test_awkward_names_make_safe_files(tmp_path: Path) -> None:
    layouts.voc(tmp_path / "data", 12)
    for kind, suffix in (("Annotations", "xml"), ("JPEGImages", "jpg")):
        folder = tmp_path / "data" / kind
        (folder / f"0.{suffix}").rename(folder / f"ö b'c\"0.{suffix}")
    text = (tmp_path / "data" / "Annotations" / "1.xml").read_text()
    (tmp_path / "data" / "Annotations" / "1.xml").write_text(text.replace(">A1<", ">A/1 'x'<"))
    done = cut_chips(read_source("voc", tmp_path / "data"), tmp_path / "out", splitting=SplitOptions(groups="scene"))
    names = [path.name for path in (tmp_path / "out" / "chips").iterdir()]
    assert all(name.isascii() and "'" not in name and " " not in name for name in names)
    assert len(set(names)) == len(names)
    assert len(done.manifest) > 30


WORK = """
import sys, time
from pathlib import Path
from lookdown.chips import prepare
cut = prepare._cut_scene
def slow(*arguments):
    time.sleep(0.2)
    return cut(*arguments)
prepare._cut_scene = slow
prepare.prepare("mar20", Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.kill
def test_killed_in_the_middle_it_goes_on_and_ends_with_the_same(mar20: SourceContent, tmp_path: Path) -> None:
    whole = cut_chips(mar20, tmp_path / "whole")
    process = subprocess.Popen([sys.executable, "-c", WORK, str(tmp_path / "data"), str(tmp_path / "out")])
    journal = tmp_path / "out" / "journal.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (journal.exists() and journal.read_text().count("\n") >= 5):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = journal.read_text().count("\n")
    assert 5 <= before < SCENES
    assert not (tmp_path / "out" / "manifest.parquet").exists()
    with journal.open("a") as file:
        file.write('{"scene": "23", "rows": [{"id"')  # a line cut off by the kill
    seen: list[Any] = []
    done = cut_chips(mar20, tmp_path / "out", progress=lambda *call: seen.append(call))
    assert seen[-1] == (SCENES, SCENES, "scenes")
    assert done.manifest.table.equals(whole.manifest.table)
    assert not journal.exists()


def test_a_read_only_place_is_named(mar20: SourceContent, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        cut_chips(mar20, tmp_path / "file" / "out")


@pytest.mark.kill
@pytest.mark.parametrize(
    ("option", "message"), [("size=64k", "No space left on device"), ("ro", "Read-only file system")]
)
def test_a_disk_that_is_full_or_read_only_is_named_and_has_no_manifest(
    option: str, message: str, mar20: SourceContent, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", option, "tmpfs", str(disk)], capture_output=True)
    if made.returncode:
        pytest.skip(f"a file system cannot be mounted here: {made.stderr.decode().strip()}")
    try:
        with pytest.raises(OutputError, match=message):
            cut_chips(mar20, disk / "out")
        assert not (disk / "out" / "manifest.parquet").exists()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.paper
@pytest.mark.parametrize(
    ("name", "folder", "objects", "classes"), [("mar20", "mar20", 6191, 20), ("fair1m", "fair1m_ships", 4634, 9)]
)
def test_real_data_lose_nothing_and_leak_nothing(
    name: str, folder: str, objects: int, classes: int, tmp_path: Path
) -> None:
    root = layouts.data_folder(folder)
    begin = time.monotonic()
    source = read_source(name, root)
    done = cut_chips(source, tmp_path / "out")
    assert time.monotonic() - begin < 60
    assert_no_leak(done.manifest)
    found = roles_of_classes(done.manifest)
    assert sum(sum(counts.values()) for label, counts in found.items() if label) == objects
    assert set(found[None]) == {"gallery"}
    places = {scene.name: scene.group for scene in source.scenes.values()}
    rows = zip(done.manifest.table["scene"].to_pylist(), done.manifest.groups, strict=True)
    assert all(places[scene] == group for scene, group in rows), "groups are as given, background included"
    assert len([label for label in found if label]) == classes
    assert all(set(counts) == {"train", "query", "gallery"} for label, counts in found.items() if label)


def test_one_call_reads_cuts_and_splits_as_the_command_line_does(tmp_path: Path) -> None:
    layouts.voc(tmp_path / "data", SCENES, mar20=True)
    report = prepare(
        "mar20", tmp_path / "data", tmp_path / "out", oriented=True, upright=True, margin=0, background=0,
        protocol="uda", train_classes=("A1", "A2"), seed=3,
    )  # fmt: skip
    content = read_source("mar20", tmp_path / "data", oriented=True)
    cutting = CutOptions(margin=0, upright=True, background=0)
    splitting = SplitOptions(protocol="uda", train_classes=("A1", "A2"), seed=3)
    assert cut_chips(content, tmp_path / "out", cutting, splitting).resumed
    again = prepare("mar20", str(tmp_path / "data"), str(tmp_path / "two"), reuse_split=str(tmp_path / "out/split.csv"))
    assert again.manifest.table.select(["id", "role"]).equals(report.manifest.table.select(["id", "role"]))
