"""What can be indexed: manifests, folders, images and scenes become chips with names, places and classes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest
import rasterio
import shapely
from numpy.typing import NDArray
from PIL import Image
from rasterio.transform import Affine
from rasterio.warp import transform as warp
from tests.chips.layouts import save_image

from lookdown.chips.imagery import open_scene
from lookdown.chips.manifest import Manifest
from lookdown.errors import ImageError, InputError, LookdownError, ManifestError, SourceError
from lookdown.gallery.index import sources
from lookdown.gallery.index.sources import ChipGroup, Cutting, chip_groups

UTM = {"crs": "EPSG:32631", "transform": Affine(10, 0, 500_000, 0, -10, 5_000_000)}
RNG = np.random.default_rng(0)


def noise(*shape: int) -> NDArray[np.uint8]:
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def geotiff(path: Path, values: NDArray[Any], **profile: Any) -> Path:
    """Write (bands, height, width) with a place on Earth."""
    path.parent.mkdir(parents=True, exist_ok=True)
    bands, height, width = values.shape
    shape = {"count": bands, "height": height, "width": width, "dtype": values.dtype}
    with rasterio.open(path, "w", driver="GTiff", **shape, **UTM, **profile) as file:
        file.write(values)
    return path


def small(path: Path, seed: int = 0) -> Path:
    save_image(path, seed, (24, 20))
    return path


def scene(path: Path, height: int = 90, width: int = 120) -> NDArray[np.uint8]:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = noise(height, width, 3)
    Image.fromarray(pixels).save(path)
    return pixels


def rows(parts: Iterable[ChipGroup]) -> list[dict[str, Any]]:
    return [row for part in parts for row in part.rows]


def ids(*given: str | Path | Manifest, **cutting: Any) -> list[str]:
    return [row["id"] for row in rows(chip_groups(given, Cutting(**cutting)))]


def pixels_of(part: ChipGroup) -> list[NDArray[np.uint8]]:
    read: list[NDArray[np.uint8]] = []
    for place, found in part.pixels(range(len(part.rows))):
        assert place == len(read)
        assert not isinstance(found, ImageError), found
        read.append(found)
    return read


# Folders and names


def test_a_folder_is_walked_in_a_fixed_order_and_what_is_hidden_or_no_image_is_left_out(tmp_path: Path) -> None:
    for name in ("2.png", "1.jpg", "deep/er/3.PNG", ".hidden.png", ".git/4.png", "deep/.old/5.png", "__MACOSX/._1.jpg"):
        small(tmp_path / "a" / name)
    (tmp_path / "a" / "notes.txt").write_text("not looked at")
    (tmp_path / "a" / "folder.png").mkdir()
    (part,) = chip_groups([tmp_path / "a"], Cutting())
    assert [row["id"] for row in part.rows] == ["a/1.jpg", "a/2.png", "a/deep/er/3.PNG"]
    assert [row["source"] for row in part.rows] == [str(tmp_path / row["id"]) for row in part.rows]
    for row in part.rows:
        assert row["scene"] == row["scene_group"] == row["id"]
        assert not row["background"]
        nothing = ("polygon", "footprint", "gsd", "label", "time", "sensor")
        assert [row[name] for name in nothing] == [None] * len(nothing)
    assert part.named_by_path
    assert not part.skipped
    assert ids(tmp_path / "a" / ".git") == [".git/4.png"]  # unless it is asked for by name


def test_names_begin_with_the_folder_so_that_several_folders_have_names_of_their_own(tmp_path: Path) -> None:
    for name in ("2021/ships/1.png", "2021/planes/1.png", "2022/ships/1.png"):
        small(tmp_path / name)
    assert ids(tmp_path / "2021" / "ships", tmp_path / "2021" / "planes") == ["ships/1.png", "planes/1.png"]
    assert ids(tmp_path / "2021", tmp_path / "2022") == ["2021/planes/1.png", "2021/ships/1.png", "2022/ships/1.png"]
    assert ids(tmp_path / "2021" / "ships" / "1.png") == ["1.png"]


def test_a_path_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(tmp_path / "a" / "b" / "1.png")
    monkeypatch.chdir(tmp_path)
    (expected,) = rows(chip_groups([tmp_path / "a"], Cutting()))
    for given in ("a", "a/", "./a", Path("a")):
        assert rows(chip_groups([given], Cutting())) == [expected]
    monkeypatch.chdir(tmp_path / "a")
    assert rows(chip_groups(["."], Cutting())) == [expected]


def test_dots_do_not_get_into_names_and_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(tmp_path / "a" / "1.png")
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "b")
    (plain,) = rows(chip_groups([tmp_path / "a"], Cutting()))
    assert rows(chip_groups(["../a"], Cutting())) == [plain]
    assert ids("..") == [f"{tmp_path.name}/a/1.png"]


def test_a_folder_that_is_a_link_is_entered(tmp_path: Path) -> None:
    small(tmp_path / "disk" / "1.png")
    small(tmp_path / "a" / "0.png")
    (tmp_path / "a" / "2021").symlink_to(tmp_path / "disk")
    assert ids(tmp_path / "a") == ["a/0.png", "a/2021/1.png"]


def test_images_come_in_parts_and_none_is_lost_between_them(tmp_path: Path) -> None:
    image = small(tmp_path / "one.png")
    (tmp_path / "a").mkdir()
    names = [f"{number:04d}.png" for number in range(1_030)]
    for name in names:
        os.link(image, tmp_path / "a" / name)
    scene(tmp_path / "a" / "0500.jpg")
    parts = list(chip_groups([tmp_path / "a"], Cutting(windows=(90,), scene_side=100)))
    assert [len(part.rows) for part in parts] == [2, 512, 512, 6]
    found = [row["id"] for row in rows(parts) if row["polygon"] is None]
    assert found == [f"a/{name}" for name in names]


# Scenes


@pytest.mark.parametrize(("height", "width", "chips"), [(50, 64, 1), (64, 50, 1), (65, 50, 12), (50, 65, 12)])
def test_an_image_whose_longer_side_is_larger_is_a_scene(tmp_path: Path, height: int, width: int, chips: int) -> None:
    scene(tmp_path / "a.png", height, width)
    (part,) = chip_groups([tmp_path / "a.png"], Cutting(windows=(32,), scene_side=64))
    assert len(part.rows) == chips
    assert {row["polygon"] is None for row in part.rows} == {chips == 1}


@pytest.mark.parametrize(
    ("windows", "strides"), [((32,), None), ((32, 48), None), ((32, 48), (10,)), ((32, 48), (16, 40)), ((100,), None)]
)
def test_windows_cover_a_scene_at_every_size(
    tmp_path: Path, windows: tuple[int, ...], strides: tuple[int, ...] | None
) -> None:
    pixels = scene(tmp_path / "a" / "s.png")
    steps = [side // 2 for side in windows] if strides is None else strides * (len(windows) // len(strides))
    boxes = [
        (x, y, min(x + side, 120), min(y + side, 90))
        for side, step in zip(windows, steps, strict=True)
        for y in [*range(0, max(90 - side, 0), step), max(90 - side, 0)]
        for x in [*range(0, max(120 - side, 0), step), max(120 - side, 0)]
    ]
    (part,) = chip_groups([tmp_path / "a"], Cutting(windows=windows, strides=strides, scene_side=100))
    assert [row["id"] for row in part.rows] == [f"a/s.png:{','.join(map(str, box))}" for box in boxes]
    for row, box, chip in zip(part.rows, boxes, pixels_of(part), strict=True):
        x0, y0, x1, y1 = box
        assert shapely.equals(shapely.from_wkt(row["polygon"]), shapely.box(*box))
        np.testing.assert_array_equal(chip, pixels[y0:y1, x0:x1])
        assert (row["scene"], row["scene_group"], row["source"]) == ("a/s.png", "a/s.png", str(tmp_path / "a/s.png"))
        assert (row["footprint"], row["gsd"], row["label"]) == (None, None, None)


def test_only_the_windows_that_are_wanted_are_read(tmp_path: Path) -> None:
    pixels = scene(tmp_path / "s.png")
    (part,) = chip_groups([tmp_path], Cutting(windows=(30,), strides=(30,), scene_side=100))
    found = dict(part.pixels([7, 2]))
    assert list(found) == [7, 2]
    np.testing.assert_array_equal(found[7], pixels[30:60, 90:120])


def degrees(*corners: tuple[float, float]) -> NDArray[np.float64]:
    """Take pixel corners to longitude and latitude by rasterio alone."""
    x, y = zip(*(UTM["transform"] * corner for corner in corners), strict=True)
    return np.column_stack(warp(UTM["crs"], "EPSG:4326", x, y))


def test_windows_of_a_geotiff_know_their_place_on_earth(tmp_path: Path) -> None:
    path = geotiff(tmp_path / "s.tif", noise(3, 90, 120))
    (part,) = chip_groups([path], Cutting(windows=(64,), strides=(20,), scene_side=100))
    pixels_of(part)
    with open_scene(path) as opened:
        for row in part.rows:
            x0, y0, x1, y1 = (int(number) for number in row["id"].partition(":")[2].split(","))
            corners = ((x0, y0), (x1, y0), (x1, y1), (x0, y1))
            assert row["footprint"] == opened.footprint(corners)
            ring = shapely.get_coordinates(shapely.from_wkt(row["footprint"]))
            np.testing.assert_allclose(ring[:4], degrees(*corners), atol=1e-8)
            assert row["gsd"] == 10
    assert len({row["footprint"] for row in part.rows}) == len(part.rows) == 12


def test_a_small_geotiff_is_a_chip_with_the_place_of_its_corners(tmp_path: Path) -> None:
    geotiff(tmp_path / "a" / "1.tif", noise(3, 40, 30))
    Image.fromarray(noise(20, 20, 3)).save(tmp_path / "a" / "2.tif")  # knows no place
    (part,) = chip_groups([tmp_path / "a"], Cutting())
    assert [chip.shape for chip in pixels_of(part)] == [(40, 30, 3), (20, 20, 3)]
    ring = shapely.get_coordinates(shapely.from_wkt(part.rows[0]["footprint"]))
    np.testing.assert_allclose(ring[:4], degrees((0, 0), (30, 0), (30, 40), (0, 40)), atol=1e-8)
    assert part.rows[0]["gsd"] == 10
    assert part.rows[0]["polygon"] is None
    assert (part.rows[1]["footprint"], part.rows[1]["gsd"]) == (None, None)


def test_windows_without_data_and_flat_ones_are_left_out_and_told_once_a_scene(tmp_path: Path) -> None:
    values = noise(1, 128, 128)
    values[:, :64, :64] = 7  # nodata
    values[:, 64:, 64:] = 90  # open sea
    geotiff(tmp_path / "a" / "s.tif", values, nodata=7)
    geotiff(tmp_path / "a" / "sea.tif", np.full((1, 128, 128), 90, np.uint8))
    some, none = chip_groups([tmp_path / "a"], Cutting(strides=(64,), scene_side=100))
    assert [row["id"] for row in some.rows] == ["a/s.tif:64,0,128,64", "a/s.tif:0,64,64,128"]
    ((item, reason),) = some.skipped.items()
    assert (Path(item).name, reason) == ("s.tif", "2 of 4 windows left out: 1 without data, 1 flat")
    assert none.rows == []
    ((item, reason),) = none.skipped.items()
    assert (Path(item).name, reason) == ("sea.tif", "4 of 4 windows left out: 0 without data, 4 flat")


def test_whole_takes_a_large_image_as_one_chip(tmp_path: Path) -> None:
    pixels = scene(tmp_path / "s.png", 600, 40)
    (part,) = chip_groups([tmp_path / "s.png"], Cutting(whole=True))
    assert [row["id"] for row in part.rows] == ["s.png"]
    np.testing.assert_array_equal(pixels_of(part)[0], pixels)


# Classes, times and sensors


def test_folders_are_classes_if_asked_for(tmp_path: Path) -> None:
    names = ("tanker/1.png", "tanker/old/2.png", "background/3.png", "Øresund ferry/4.png", "5.png")
    for name in names:
        small(tmp_path / "a" / name)
    found = {row["id"]: (row["label"], row["background"]) for row in rows(chip_groups([tmp_path / "a"], Cutting()))}
    assert set(found.values()) == {(None, False)}
    found = {
        row["id"]: (row["label"], row["background"])
        for row in rows(chip_groups([tmp_path / "a", tmp_path / "a" / "5.png"], Cutting(classes=True)))
    }
    assert found == {
        "a/tanker/1.png": ("tanker", False),
        "a/tanker/old/2.png": ("tanker", False),
        "a/background/3.png": (None, True),
        "a/Øresund ferry/4.png": ("Øresund ferry", False),
        "a/5.png": (None, False),
        "5.png": (None, False),
    }


def test_time_and_sensor_are_given_to_images_and_windows_and_not_to_manifests(tmp_path: Path) -> None:
    small(tmp_path / "a" / "1.png")
    scene(tmp_path / "a" / "2.png", 90, 120)
    Manifest.of_rows([chip("1", time="2020-01-01")], tmp_path / "a").write(tmp_path / "m.parquet")
    cutting = Cutting(windows=(90,), scene_side=100, time="2021-06-01T10:00Z", sensor="S2A")
    *cut, listed = rows(chip_groups([tmp_path / "a", tmp_path / "m.parquet"], cutting))
    assert len(cut) == 3
    assert {(row["time"], row["sensor"]) for row in cut} == {("2021-06-01T10:00Z", "S2A")}
    assert (listed["time"], listed["sensor"]) == ("2020-01-01", None)


# Manifests


def chip(name: str, role: str = "gallery", **more: Any) -> dict[str, Any]:
    scene = f"scene of {name}"
    known = {"id": f"chip {name}", "path": f"{name}.png", "scene": scene, "scene_group": "group"}
    return known | {"role": role, "background": False} | more


def test_a_manifest_can_be_given_in_four_ways_and_its_columns_stay(tmp_path: Path) -> None:
    told: dict[str, Any] = {
        "label": "tanker",
        "polygon": "POLYGON ((1 1, 2 1, 2 2, 1 1))",
        "footprint": "POLYGON ((4 50, 5 50, 5 51, 4 50))",
        "time": "2020-01-01",
        "sensor": "S2B",
        "gsd": 0.5,
    }
    manifest = Manifest.of_rows([chip("1", **told), chip("2", background=True)], tmp_path / "m")
    small(tmp_path / "m" / "1.png")
    manifest.write(tmp_path / "m" / "manifest.parquet")
    pyarrow.csv.write_csv(manifest.table, tmp_path / "m" / "chips.csv")
    ways = (manifest, tmp_path / "m", tmp_path / "m" / "manifest.parquet", str(tmp_path / "m" / "chips.csv"))
    for way in ways:
        (part,) = chip_groups([way], Cutting())
        first, second = part.rows
        assert first == told | {
            "id": "chip 1",
            "scene": "scene of 1",
            "scene_group": "group",
            "background": False,
            "source": str(tmp_path / "m" / "1.png"),
        }
        assert (second["id"], second["background"], second["label"]) == ("chip 2", True, None)
        assert not part.named_by_path
        (_, good), (_, missing) = part.pixels([0, 1])
        assert not isinstance(good, ImageError)
        assert re.search(r"2\.png: there is no such file", str(missing))


def test_of_a_manifest_the_gallery_is_taken_or_every_role(tmp_path: Path) -> None:
    roles = ("train", "gallery", "query", "gallery")
    manifest = Manifest.of_rows([chip(str(place), role) for place, role in enumerate(roles)], tmp_path)
    assert ids(manifest) == ["chip 1", "chip 3"]
    every = rows(chip_groups([manifest], Cutting(), every_role=True))
    assert [row["id"] for row in every] == ["chip 0", "chip 1", "chip 2", "chip 3"]
    assert ids(manifest.with_role("train", "query")) == ["chip 0", "chip 2"]  # it has no gallery


def test_a_long_manifest_comes_in_parts(tmp_path: Path) -> None:
    manifest = Manifest.of_rows([chip(str(place)) for place in range(1_025)], tmp_path)
    parts = list(chip_groups([manifest], Cutting()))
    assert [len(part.rows) for part in parts] == [512, 512, 1]
    assert [row["source"] for row in rows(parts)] == [str(tmp_path / f"{place}.png") for place in range(1_025)]


def test_the_size_of_a_pixel_in_a_manifest_stays_where_the_chip_is_a_tiff(tmp_path: Path) -> None:
    Image.fromarray(noise(20, 20, 3)).save(tmp_path / "1.tif")
    (part,) = chip_groups([Manifest.of_rows([chip("1", path="1.tif", gsd=0.5)], tmp_path)], Cutting())
    pixels_of(part)
    assert part.rows[0]["gsd"] == 0.5


# What is refused, and what is told when it is met


def test_what_cannot_be_indexed_is_refused_at_once_by_name(tmp_path: Path) -> None:
    good = small(tmp_path / "good" / "1.png").parent
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("no image")
    (tmp_path / "texts" / ".a.png").write_text("hidden")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    (tmp_path / "table.parquet").write_text("no parquet")
    refused: list[tuple[str, type[LookdownError], str]] = [
        ("gone", SourceError, r"gone does not exist; give a manifest, an image, or a folder of images"),
        ("gone.png", SourceError, r"gone\.png does not exist"),
        ("empty", SourceError, r"empty holds no image \(\.bmp, .*\.webp\); give a folder that does"),
        ("texts", SourceError, r"texts holds no image"),
        ("texts/a.txt", SourceError, r"a\.txt is neither a manifest \(\.parquet, \.csv\) nor an image .*; convert it"),
        ("table.csv", ManifestError, r"table\.csv has no column id, path"),
        ("table.parquet", ManifestError, r"table\.parquet cannot be read"),
    ]
    for name, kind, words in refused:
        with pytest.raises(kind, match=words):  # by the call itself, though nothing is taken from what it returns
            chip_groups([good, tmp_path / name], Cutting())


def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        chip_groups(["x" * 5_000], Cutting())


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    first, second = small(tmp_path / "a" / "1.png"), small(tmp_path / "a" / "2.png", seed=1)
    small(tmp_path / "b" / "3.png")
    parts = chip_groups([tmp_path / "a", tmp_path / "b"], Cutting())
    (tmp_path / "b" / "3.png").unlink()
    small(tmp_path / "b" / "4.png")
    part = next(parts)
    first.write_text("no image any more")
    pixels = noise(9, 9, 3)
    Image.fromarray(pixels).save(second)
    ((place, found),) = part.pixels([1])  # the first, which is broken, is not looked at
    assert place == 1
    np.testing.assert_array_equal(found, pixels)
    assert [row["id"] for row in next(parts).rows] == ["b/4.png"]


def test_what_cannot_be_read_is_told_by_its_file_and_the_rest_is_read(tmp_path: Path) -> None:
    small(tmp_path / "a" / "1.png")
    (tmp_path / "a" / "2.png").write_text("no image")
    (tmp_path / "a" / "3.tif").write_bytes(b"II*\0 no more")
    small(tmp_path / "a" / "4.png")
    (part,) = chip_groups([tmp_path / "a"], Cutting())
    found = [pixels for _, pixels in part.pixels(range(4))]
    assert [isinstance(pixels, ImageError) for pixels in found] == [False, True, True, False]
    assert re.search(r"a/2\.png: not an image of a known kind", str(found[1]))
    assert re.search(r"a/3\.tif is not a GeoTIFF, or is truncated", str(found[2]))


def jpeg(path: Path, size: tuple[int, int], **options: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    Image.new(options.pop("mode", "RGB"), size, 90).save(path, options.pop("format", "JPEG"), **options)
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "L"},
        {"mode": "CMYK"},
        {"progressive": True},
        {"comment": b"c" * 9000},  # the size is behind the first bytes
        {"format": "PNG"},  # by a wrong name
        {"keep_rgb": True},
    ],
)
@pytest.mark.parametrize("size", [(1, 1), (40, 512), (513, 7), (600, 400)])
def test_the_size_of_a_jpeg_is_that_which_pillow_tells(
    tmp_path: Path, options: dict[str, Any], size: tuple[int, int]
) -> None:
    path = jpeg(tmp_path / "a.jpg", size, **options)
    assert sources._size(path) == size
    with Image.open(path) as image:
        assert image.size == size


def test_jpegs_without_a_size_and_beyond_the_limit_are_told_when_they_are_read(tmp_path: Path) -> None:
    content = jpeg(tmp_path / "a" / "1.jpg", (600, 400)).read_bytes()
    frame = content.index(b"\xff\xc0") + 5
    (tmp_path / "a" / "2.jpg").write_bytes(content[:frame] + b"\xfd\xe8\xfd\xe8" + content[frame + 4 :])
    (tmp_path / "a" / "3.jpg").write_bytes(content[:frame])
    (tmp_path / "a" / "4.jpg").write_bytes(b"")
    (part,) = chip_groups([tmp_path / "a"], Cutting(scene_side=600))
    whole, *told = [str(found) if isinstance(found, ImageError) else found.shape for _, found in part.pixels(range(4))]
    assert whole == (400, 600, 3)
    assert [re.sub(r".*/a/|;.*| \(.*", "", str(reason)) for reason in told] == [
        "2.jpg: more than 300 megapixels, too large for a chip",
        "3.jpg: cannot be read",
        "4.jpg: the file is empty",
    ]


def test_a_small_jpeg_is_the_same_chip_however_it_is_decoded(tmp_path: Path) -> None:
    pixels = Image.fromarray(noise(50, 37, 3))
    (tmp_path / "a").mkdir()
    for number, mode in enumerate(["RGB", "L", "CMYK"]):
        pixels.convert(mode).save(tmp_path / "a" / f"{number}.jpg", quality=60)
    pixels.save(tmp_path / "a" / "3.jpg", quality=60, progressive=True)
    (part,) = chip_groups([tmp_path / "a"], Cutting())
    for place, found in part.pixels(range(4)):
        with Image.open(part.rows[place]["source"]) as image:
            np.testing.assert_array_equal(found, np.array(image.convert("RGB")), strict=True)
    assert ["thumbnail" in row for row in part.rows] == [True, True, False, False]


@pytest.mark.parametrize("suffix", ["jpg", "tif"])
def test_a_scene_that_is_cut_short_is_told_once(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"s.{suffix}"
    if suffix == "tif":
        geotiff(path, noise(3, 300, 300))
    else:
        scene(path, 300, 300)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    (part,) = chip_groups([path], Cutting(scene_side=100))
    assert part.rows == []
    ((item, reason),) = part.skipped.items()
    assert Path(item).name == path.name
    assert re.search(rf"s\.{suffix} is damaged or truncated: .*; copy the file again", reason)


def test_a_scene_that_is_gone_when_it_is_read_is_told_for_each_window(tmp_path: Path) -> None:
    scene(tmp_path / "s.png", 120, 120)
    (part,) = chip_groups([tmp_path / "s.png"], Cutting(scene_side=100))
    (tmp_path / "s.png").unlink()
    found = list(part.pixels(range(len(part.rows))))
    assert [place for place, _ in found] == list(range(9))
    assert all(isinstance(error, ImageError) and "s.png cannot be read" in str(error) for _, error in found)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"windows": ()}, r"windows must have sides of at least 8 pixels, got \[\]"),
        ({"windows": (64, 7)}, r"at least 8 pixels, got \[64, 7\]"),
        ({"windows": (64, 32), "strides": (1, 2, 3)}, "one stride for all windows or one for each, got 3"),
        ({"strides": ()}, "one stride for all windows or one for each, got 0"),
    ],
)
def test_odd_windows_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Cutting(**options)


@pytest.mark.parametrize(
    "options", [{"strides": (0,)}, {"strides": (-8,)}, {"time": "yesterday"}, {"windows": 64}, {"scene_side": 0}]
)
def test_other_odd_settings_are_refused_before_hours_of_work(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options)).rstrip("s")):
        Cutting(**options)


def test_some_chips_of_a_part_are_a_part_of_their_own(tmp_path: Path) -> None:
    for place in range(4):
        Image.fromarray(np.full((9, 9, 3), 40 * place, np.uint8)).save(tmp_path / f"{place}.png")
    pixels = np.random.default_rng(0).integers(0, 256, (130, 130, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "scene.png")
    for part in chip_groups([tmp_path], Cutting(scene_side=100)):
        some = part.only([3, 1])
        assert [row["id"] for row in some.rows] == [part.rows[place]["id"] for place in (3, 1)]
        found, whole = ([*one.pixels(places)] for one, places in ((some, [0, 1]), (part, [3, 1])))
        for (_, mine), (_, theirs) in zip(found, whole, strict=True):
            np.testing.assert_array_equal(mine, theirs)
