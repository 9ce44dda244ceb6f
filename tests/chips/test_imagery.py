"""Scenes: windows, stretch, nodata and places against rasterio and numpy; what is damaged is refused by name."""

from __future__ import annotations

import io
import json
import math
import os
import re
import subprocess
import sys
import threading
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
import shapely
from numpy.typing import NDArray
from PIL import Image
from rasterio.transform import Affine
from rasterio.warp import transform as warp
from tests.chips import layouts

from lookdown.chips import imagery, photographs
from lookdown.chips.imagery import open_scene
from lookdown.errors import ImageError, InputError

UTM = {"crs": "EPSG:32631", "transform": Affine(10, 0, 500_000, 0, -10, 5_000_000)}
RNG = np.random.default_rng(0)
Values = NDArray[Any]


def write_tiff(path: Path, values: Values, **profile: Any) -> Path:
    """Write (bands, height, width)."""
    bands, height, width = values.shape
    shape = {"count": bands, "height": height, "width": width, "dtype": values.dtype}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(path, "w", driver="GTiff", **shape, **profile) as file:
            file.write(values)
    return path


def whole(path: Path, **options: Any) -> NDArray[np.uint8]:
    with open_scene(path, **options) as scene:
        pixels = scene.read((0, 0, scene.width, scene.height))
        assert pixels.shape == (scene.height, scene.width, scene.bands)
        assert pixels.dtype == np.uint8
        return pixels


def noise(*shape: int) -> NDArray[np.uint8]:
    return RNG.integers(0, 256, shape, dtype=np.uint8)


# Pixels


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.webp", "a.ppm", "a.tif", "A.TIFF"])
@pytest.mark.parametrize("bands", [1, 3])
def test_eight_bits_stay_as_they_are_and_a_window_is_a_slice(name: str, bands: int, tmp_path: Path) -> None:
    pixels = noise(30, 40, bands)
    if name.lower().endswith(("tif", "tiff")):
        write_tiff(tmp_path / name, np.moveaxis(pixels, -1, 0))
    else:
        options: dict[str, Any] = {"lossless": True} if name.endswith("webp") else {}
        if bands == 1 and name.endswith("webp"):
            pytest.skip("WebP has no greyscale")
        Image.fromarray(pixels if bands == 3 else pixels[..., 0]).save(tmp_path / name, **options)
    with open_scene(tmp_path / name) as scene:
        assert (scene.width, scene.height, scene.bands) == (40, 30, bands)
        np.testing.assert_array_equal(scene.read((7, 3, 25, 30)), pixels[3:30, 7:25])
        assert scene.valid((7, 3, 25, 30)).shape == (27, 18)
        assert scene.valid((0, 0, 40, 30)).all()
        assert scene.gsd is None
        assert scene.footprint([(0, 0), (1, 0), (1, 1)]) is None


@pytest.mark.parametrize("window", [(-1, 0, 5, 5), (0, 0, 41, 5), (5, 0, 5, 5), (0, 9, 5, 3), (0, 0, 5, 31)])
@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_a_window_beyond_the_image_is_refused(window: Any, name: str, tmp_path: Path) -> None:
    Image.fromarray(noise(30, 40)).save(tmp_path / "a.png")
    write_tiff(tmp_path / "a.tif", noise(1, 30, 40))
    with open_scene(tmp_path / name) as scene:
        for ask in (scene.read, scene.valid):
            with pytest.raises(ImageError, match=r"not inside the image of 40 x 30"):
                ask(window)


def test_exif_orientation_is_ignored(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    Image.fromarray(noise(30, 40, 3)).save(tmp_path / "a.jpg", exif=exif)
    with open_scene(tmp_path / "a.jpg") as scene:
        assert (scene.width, scene.height) == (40, 30)


@pytest.mark.parametrize("mode", ["P", "RGBA", "LA", "1", "CMYK", "P with transparency"])
def test_other_modes_become_grey_or_colours(mode: str, tmp_path: Path) -> None:
    colours = Image.fromarray(noise(20, 20, 3))
    path = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
    image = colours.convert(mode[:1] if mode.startswith("P") else mode)
    if mode in ("RGBA", "LA"):
        alpha = np.full((20, 20), 255, np.uint8)
        alpha[:5] = 0
        image.putalpha(Image.fromarray(alpha))
    extra: dict[str, Any] = {"transparency": bytes([0] * 128 + [255] * 128)} if "with" in mode else {}
    image.save(path, **extra)
    with open_scene(path) as scene:
        assert scene.bands == (1 if mode in ("1", "LA") else 3)
        valid = scene.valid((0, 0, 20, 20))
    if mode in ("RGBA", "LA"):
        np.testing.assert_array_equal(valid, np.arange(20)[:, None].repeat(20, 1) >= 5)
    elif "with" in mode:
        np.testing.assert_array_equal(valid, np.asarray(image) >= 128)
    else:
        assert valid.all()
    if mode == "P":
        np.testing.assert_array_equal(whole(path), np.asarray(image.convert("RGB")))


def test_sixteen_bits_of_a_png_are_stretched_like_a_geotiff(tmp_path: Path) -> None:
    deep = RNG.integers(300, 2500, (50, 60)).astype(np.uint16)  # 11 bits in 16: the high byte alone would be black
    Image.fromarray(deep).save(tmp_path / "a.png")
    write_tiff(tmp_path / "a.tif", deep[None])
    np.testing.assert_array_equal(whole(tmp_path / "a.png"), whole(tmp_path / "a.tif"))
    assert whole(tmp_path / "a.png").std() > 50


@pytest.mark.parametrize("dtype", ["uint16", "int16", "float32", "float64"])
@pytest.mark.parametrize("bands", [1, 3, 13])
def test_deep_bands_are_stretched_each_between_its_own_percentiles(dtype: str, bands: int, tmp_path: Path) -> None:
    values = (RNG.gamma(2, 200, (bands, 40, 50)) * np.arange(1, bands + 1)[:, None, None]).astype(dtype)
    values[:, :10] = 0
    path = write_tiff(tmp_path / "a.tif", values, nodata=0, **UTM)
    found = whole(path, stretch=(5, 90))
    for band in range(bands):
        seen = values[band].astype(np.float64)
        low, high = np.percentile(seen[seen != 0], (5, 90))
        expected = np.rint(np.clip((seen - low) / (high - low), 0, 1) * 255)
        np.testing.assert_array_equal(found[..., band], np.where(seen == 0, 0, expected))
    with open_scene(path) as scene:
        np.testing.assert_array_equal(scene.valid((0, 0, 50, 40)), (values != 0).any(axis=0))
        np.testing.assert_array_equal(scene.read((3, 8, 9, 20)), whole(path)[8:20, 3:9])


def test_nan_is_no_data_declared_or_not(tmp_path: Path) -> None:
    values = RNG.random((2, 20, 20)).astype(np.float32)
    values[:, :4] = np.nan
    values[0, 5] = np.inf  # one band only: the pixel still shows something
    path = write_tiff(tmp_path / "a.tif", values)
    with open_scene(path) as scene:
        np.testing.assert_array_equal(scene.valid((0, 0, 20, 20)), np.isfinite(values).any(axis=0))
    pixels = whole(path)
    assert not pixels[:4].any()
    assert not pixels[5, :, 0].any()
    assert pixels[6:].std() > 50


def test_one_value_or_none_at_all_gives_black_and_no_warning(tmp_path: Path) -> None:
    assert not whole(write_tiff(tmp_path / "flat.tif", np.full((1, 9, 9), 700, np.uint16))).any()
    nothing = write_tiff(tmp_path / "nothing.tif", np.zeros((2, 9, 9), np.float32), nodata=0)
    assert not whole(nothing).any()
    with open_scene(nothing) as scene:
        assert not scene.valid((0, 0, 9, 9)).any()


def test_the_stretch_of_a_large_scene_comes_from_every_nth_pixel(tmp_path: Path) -> None:
    """Along 3000 columns the sample has a step of 3: what lies between is not seen, the rest is near the truth."""
    values = RNG.integers(1000, 2000, (1, 300, 3000)).astype(np.uint16)
    path = write_tiff(tmp_path / "a.tif", values)
    with open_scene(path) as scene:
        sample, _ = scene._sample()
        assert sample.shape == (100, 1000, 1)
        low, high = scene._limits
    np.testing.assert_allclose([low[0], high[0]], np.percentile(values, (2, 98)), atol=10)


def test_an_alpha_band_is_a_mask_and_a_palette_becomes_colours(tmp_path: Path) -> None:
    pixels = noise(4, 10, 10)
    pixels[3] = 255
    pixels[3, :, :4] = 0
    path = write_tiff(tmp_path / "alpha.tif", pixels, photometric="RGB", alpha="yes")
    with open_scene(path) as scene:
        assert scene.bands == 3
        np.testing.assert_array_equal(scene.valid((0, 0, 10, 10)), pixels[3] > 0)
    np.testing.assert_array_equal(whole(path), np.moveaxis(pixels[:3], 0, -1))
    indexes = RNG.integers(0, 3, (1, 10, 10)).astype(np.uint8)
    path = tmp_path / "palette.tif"
    with rasterio.open(
        path, "w", driver="GTiff", count=1, width=10, height=10, dtype="uint8", photometric="palette", **UTM
    ) as file:
        file.write_colormap(1, {0: (9, 8, 7, 255), 1: (200, 100, 50, 255), 2: (0, 0, 255, 255)})
        file.write(indexes)
    table = np.array([(9, 8, 7), (200, 100, 50), (0, 0, 255)], np.uint8)
    np.testing.assert_array_equal(whole(path), table[indexes[0]])


def sparse(path: Path, dtype: str) -> Path:
    """20,000 x 20,000 pixels of which one tile is stored."""
    shape = {"width": 20_000, "height": 20_000, "count": 1, "dtype": dtype}
    tiles = {"tiled": True, "blockxsize": 512, "blockysize": 512, "SPARSE_OK": True}
    with rasterio.open(path, "w", driver="GTiff", **shape, **tiles, **UTM) as file:
        file.write(np.full((1, 512, 512), 77, dtype), window=rasterio.windows.Window(512 * 30, 512 * 20, 512, 512))
    assert path.stat().st_size < 2_000_000
    return path


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_a_window_of_a_huge_scene_takes_the_memory_of_a_window(dtype: str, tmp_path: Path) -> None:
    """In its own process, whose peak says what GDAL took as well: whole, the scene is 400 or 800 MB."""
    path = sparse(tmp_path / "a.tif", dtype)
    code = (
        "import resource, sys; from pathlib import Path; from lookdown.chips.imagery import open_scene\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        "with open_scene(Path(sys.argv[1])) as scene:\n"
        "    inside, edge = scene.read((15300, 10200, 15428, 10328)), scene.read((19900, 19900, 20000, 20000))\n"
        "    print(inside[-1, -1, 0], inside[0, 0, 0], edge.max(), (peak() - before) // 1024)\n"
    )
    environment = os.environ | {"GDAL_CACHEMAX": "64"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True, env=environment
    )
    stored, hole, edge, megabytes = map(int, done.stdout.split())
    assert (stored, hole, edge) == ((77, 0, 0) if dtype == "uint8" else (255, 0, 0))
    assert megabytes < 150


def test_python_holds_no_more_than_the_window(tmp_path: Path) -> None:
    path = sparse(tmp_path / "a.tif", "uint8")
    tracemalloc.start()
    with open_scene(path) as scene:
        scene.read((0, 0, 256, 256))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


# Places


@pytest.mark.parametrize(
    ("crs", "transform"),
    [
        ("EPSG:32631", Affine(10, 0, 500_000, 0, -10, 5_000_000)),
        ("EPSG:3857", Affine(9.5, 0, 1_000_000, 0, -9.5, 6_000_000)),
        ("EPSG:4326", Affine(1e-4, 0, 12, 0, -1e-4, 60)),
        ("EPSG:32756", Affine(7, 7, 300_000, 7, -7, 6_200_000)),  # turned by 45 degrees
        ("EPSG:2263", Affine(3, 0, 980_000, 0, -3, 200_000)),  # feet
    ],
)
def test_a_footprint_is_where_rasterio_says(crs: str, transform: Affine, tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "a.tif", noise(1, 40, 60), crs=crs, transform=transform)
    corners = [(0.0, 0.0), (60.0, 0.0), (55.5, 40.0), (3.25, 31.0)]
    with open_scene(path) as scene:
        footprint = scene.footprint(corners)
    assert footprint is not None
    shape = shapely.from_wkt(footprint)
    assert shape.is_valid
    lon, lat = np.array(shape.exterior.coords[:-1]).T
    x, y = (np.array(axis) for axis in warp("EPSG:4326", crs, lon, lat))
    back = ~transform
    np.testing.assert_allclose(back.a * x + back.b * y + back.c, [x for x, _ in corners], atol=1e-2)
    np.testing.assert_allclose(back.d * x + back.e * y + back.f, [y for _, y in corners], atol=1e-2)
    first = warp(crs, "EPSG:4326", [transform.c], [transform.f])
    np.testing.assert_allclose((lon[0], lat[0]), np.ravel(first), atol=1e-8)  # longitude first


def test_a_footprint_across_the_date_line_stays_in_one_piece(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "a.tif", noise(1, 20, 20), crs="EPSG:32660", transform=Affine(10, 0, 7e5, 0, -10, 5e6))
    with open_scene(path) as scene:
        (x,), (y,) = warp("EPSG:4326", "EPSG:32660", [180], [45])
        column, row = (x - 7e5) / 10, (5e6 - y) / 10
        wkt = scene.footprint([(column - 9, row), (column + 9, row), (column + 9, row + 9), (column - 9, row + 9)])
    left, _, right, _ = shapely.from_wkt(wkt).bounds
    assert 179.99 < left < 180 < right < 180.01


@pytest.mark.parametrize(
    ("crs", "transform", "expected"),
    [
        ("EPSG:32631", Affine(10, 0, 5e5, 0, -10, 5e6), 10),
        ("EPSG:32631", Affine(8, 6, 5e5, 6, -8, 5e6), 10),  # turned: still 10 m
        ("EPSG:3857", Affine(10, 0, 0, 0, -10, 8_399_737.89), 5),  # 60 degrees north: half
        ("EPSG:3857", Affine(10, 0, 0, 0, -10, 0), 10),
        ("EPSG:2263", Affine(10, 0, 980_000, 0, -10, 200_000), 3.048),  # feet
        ("EPSG:4326", Affine(1e-4, 0, 12, 0, -1e-4, 0), 11.1195),
        ("EPSG:4326", Affine(2e-4, 0, 12, 0, -1e-4, 60), 11.1195),  # at 60 degrees twice as wide is square
    ],
)
def test_metres_a_pixel_are_those_on_the_ground(crs: str, transform: Affine, expected: float, tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "a.tif", noise(1, 4, 4), crs=crs, transform=transform)
    with open_scene(path) as scene:
        assert scene.gsd == pytest.approx(expected, rel=1e-3)


def test_a_scene_with_half_a_place_has_none(tmp_path: Path) -> None:
    for path in (
        write_tiff(tmp_path / "crs.tif", noise(1, 9, 9), crs="EPSG:32631"),
        write_tiff(tmp_path / "transform.tif", noise(1, 9, 9), transform=UTM["transform"]),
    ):
        with open_scene(path) as scene:
            assert scene.gsd is None
            assert scene.footprint([(0, 0), (9, 0), (9, 9)]) is None


def test_boxes_of_real_ships_lie_where_rasterio_says_to_a_pixel() -> None:
    folder = layouts.data_folder("sen2ships")
    content = json.loads((folder / "annotations.json").read_text())
    checked = 0
    for image in content["images"]:
        with open_scene(folder / image["file_name"]) as scene, rasterio.open(folder / image["file_name"]) as file:
            assert (scene.width, scene.height) == (image["width"], image["height"]) == (file.width, file.height)
            middle = warp(file.crs, "EPSG:4326", *([value] for value in file.xy(file.height // 2, file.width // 2)))
            assert scene.gsd == pytest.approx(file.res[0] * math.cos(math.radians(middle[1][0])), rel=1e-3)
            for box in (a["bbox"] for a in content["annotations"] if a["image_id"] == image["id"]):
                x, y, w, h = box
                wkt = scene.footprint([(x, y), (x + w, y), (x + w, y + h), (x, y + h)])
                lon, lat = np.array(shapely.from_wkt(wkt).exterior.coords[:-1]).T
                east, north = warp("EPSG:4326", file.crs, lon, lat)
                rows, columns = rasterio.transform.rowcol(file.transform, east, north, op=lambda value: value)
                np.testing.assert_allclose(columns, [x, x + w, x + w, x], atol=0.01)
                np.testing.assert_allclose(rows, [y, y, y + h, y + h], atol=0.01)
                checked += 1
    assert checked == 118


# What is refused


def encoded(kind: str) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(noise(64, 64, 3)).save(stream, kind)
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["jpeg", "png", "bmp", "webp", "tiff"])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9])
def test_a_truncated_file_is_refused(kind: str, share: float, tmp_path: Path) -> None:
    content = encoded(kind)
    path = tmp_path / f"a.{kind}"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ImageError, match=r"; (copy|use)") as caught, open_scene(path) as scene:
        scene.read((0, 0, 64, 64))
    assert str(path) in str(caught.value)
    path.write_bytes(content)
    assert whole(path).shape == (64, 64, 3)


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.tif"])
@pytest.mark.parametrize(
    "content", [b"text", b"<svg/>", bytes(1000), b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"]
)
def test_what_is_not_an_image_is_refused(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ImageError, match=rf"{re.escape(str(path))} is not an? (image|GeoTIFF)"):
        open_scene(path)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", ["jpeg", "png", "gif", "webp", "tiff"])
def test_damaged_bytes_are_read_or_refused_and_nothing_else(kind: str, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    content = bytearray(encoded(kind))
    for place in rng.integers(0, min(len(content), 400), 8):
        content[place] = rng.integers(256)
    path = tmp_path / f"a.{kind}"
    path.write_bytes(content)
    try:
        with open_scene(path) as scene:
            scene.read((0, 0, min(scene.width, 64), min(scene.height, 64)))
    except ImageError as error:
        if str(path) not in str(error):
            raise


def test_a_vanished_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for name in ("a.jpg", "a.tif"):
        with pytest.raises(ImageError, match="No such file or directory; check the path"):
            open_scene(tmp_path / name)
    (tmp_path / "b.tif").mkdir()
    with pytest.raises(ImageError, match="is not a file"):
        open_scene(tmp_path / "b.tif")


@pytest.mark.parametrize(
    "path",
    ["/vsicurl/https://example.org/a.tif", "/vsizip/a.zip/a.tif", "//vsis3/b/a.tif", "/VSIMEM/a.tif", "https://e.org/a.tif",
     "s3://bucket/a.jpg", "zip+file://a.zip!a.tif", "file:///etc/a.png"],
)  # fmt: skip
def test_what_is_not_a_local_file_is_refused(path: str) -> None:
    with pytest.raises(ImageError, match="not a local file; download it"):
        open_scene(Path(path))


def test_a_vrt_is_refused_by_name_and_by_content(tmp_path: Path) -> None:
    secret = write_tiff(tmp_path / "secret.tif", noise(1, 9, 9))
    text = (
        '<VRTDataset rasterXSize="9" rasterYSize="9"><VRTRasterBand dataType="Byte" band="1"><SimpleSource>'
        f"<SourceFilename>{secret}</SourceFilename><SourceBand>1</SourceBand></SimpleSource></VRTRasterBand></VRTDataset>"
    )
    for name in ("a.vrt", "a.VRT", "a.tif", "a.png"):
        (tmp_path / name).write_text(text)
        with pytest.raises(ImageError, match=r"is a VRT|is not a"):
            open_scene(tmp_path / name)


def test_nothing_beside_a_geotiff_is_opened(tmp_path: Path) -> None:
    """An overview or mask beside the scene may be a VRT; plain rasterio does open it."""
    path = write_tiff(tmp_path / "a.tif", np.full((1, 512, 512), 7, np.uint16), **UTM)
    text = '<VRTDataset rasterXSize="256" rasterYSize="256"><VRTRasterBand dataType="UInt16" band="1"/></VRTDataset>'
    (tmp_path / "a.tif.ovr").write_text(text)
    with rasterio.open(path) as file:
        assert file.overviews(1) == [2]
    with open_scene(path) as scene:
        assert scene._file.overviews(1) == []  # type: ignore[attr-defined]
        scene.read((0, 0, 9, 9))
        assert scene._file.files == [str(path)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("pixels", [150, 250])
def test_a_decompression_bomb_is_refused_and_pillow_is_left_as_it_was(
    pixels: int, tmp_path: Path, monkeypatch: Any
) -> None:
    """Pillow warns above its limit and raises above twice that: 15 x 10 and 25 x 10 pixels against a limit of 100."""
    monkeypatch.setattr(photographs, "MAX_PIXELS", 100)
    Image.fromarray(noise(10, pixels // 10)).save(tmp_path / "a.png")
    before = Image.MAX_IMAGE_PIXELS
    with pytest.raises(ImageError, match="megapixels; save it as a tiled GeoTIFF"):
        open_scene(tmp_path / "a.png")
    assert before == Image.MAX_IMAGE_PIXELS
    monkeypatch.undo()
    assert photographs.MAX_PIXELS == 300_000_000
    assert whole(tmp_path / "a.png").shape == (10, pixels // 10, 1)


def test_our_limit_counts_and_not_that_of_pillow(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    for side in (12, 30):
        Image.fromarray(noise(side, side)).save(tmp_path / "a.png")
        assert whole(tmp_path / "a.png").shape == (side, side, 1)


def test_a_geotiff_in_one_huge_block_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    path = write_tiff(tmp_path / "a.tif", noise(1, 64, 64), blockysize=64)
    monkeypatch.setattr(imagery, "MAX_PIXELS", 64 * 64 - 1)
    with pytest.raises(ImageError, match="TILED=YES"):
        open_scene(path)


def test_complex_numbers_and_odd_percentiles_are_refused(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "a.tif", np.ones((1, 9, 9), np.complex64))
    with pytest.raises(ImageError, match="amplitude"):
        open_scene(path)
    for stretch in ((98, 2), (-1, 50), (0, 101), (math.nan, 98)):
        with pytest.raises(InputError, match="stretch must be"):
            open_scene(path, stretch=stretch)


def test_threads_leave_the_filters_of_warnings_as_they_were(tmp_path: Path) -> None:
    paths = [write_tiff(tmp_path / f"{n}.tif", noise(1, 9, 9)) for n in range(4)]
    Image.fromarray(noise(9, 9)).save(tmp_path / "a.png")
    paths.append(tmp_path / "a.png")
    before, limit = list(warnings.filters), Image.MAX_IMAGE_PIXELS
    start = threading.Barrier(4)

    def work(_: int) -> None:
        start.wait()
        for path in paths * 10:
            whole(path)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert (list(warnings.filters), Image.MAX_IMAGE_PIXELS) == (before, limit)
