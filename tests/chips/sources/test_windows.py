"""Windows over scenes without boxes, against a double loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from numpy.typing import NDArray
from PIL import Image
from rasterio.transform import Affine

from lookdown.chips.imagery import SceneReader
from lookdown.chips.sources import windows
from lookdown.errors import InputError, SourceError

RNG = np.random.default_rng(0)
UTM = {"crs": "EPSG:32631", "transform": Affine(10, 0, 500_000, 0, -10, 5_000_000)}


def write_tiff(path: Path, values: NDArray[Any], **profile: Any) -> Path:
    bands, height, width = values.shape
    shape = {"count": bands, "height": height, "width": width, "dtype": values.dtype}
    with rasterio.open(path, "w", driver="GTiff", **shape, **UTM, **profile) as file:
        file.write(values)
    return path


def boxes(found: Any) -> list[tuple[float, ...]]:
    assert all(item.label is None and not item.background for item in found.crops)
    return [(*item.polygon[0], *item.polygon[2]) for item in found.crops]


@pytest.mark.parametrize(("size", "stride"), [(8, None), (8, 8), (8, 3), (10, 7), (5, None), (1, 1)])
@pytest.mark.parametrize("flat", [0.0, 2.0, 30.0])
def test_windows_are_those_of_a_double_loop(size: int, stride: int | None, flat: float, tmp_path: Path) -> None:
    pixels = RNG.integers(0, 255, (3, 37, 50)).astype(np.uint8)
    pixels[:, :15, :20] = 40  # sea: flat in every band
    pixels[0, 20:, 35:] = 90  # flat in one band only
    pixels[:, 10:30, 25:40] = 255  # no data
    pixels[:, 28, 38] = 1
    path = write_tiff(tmp_path / "a.tif", pixels, nodata=255)
    found = windows.read(path, size=size, stride=stride, empty=0.7, flat=flat)
    step = stride or size // 2
    expected, missing, plain = [], 0, 0
    for y in [*range(0, 37 - size, step), 37 - size]:
        for x in [*range(0, 50 - size, step), 50 - size]:
            chip = pixels[:, y : y + size, x : x + size]
            valid = (chip != 255).any(axis=0)
            if (~valid).mean() > 0.7:
                missing += 1
            elif all(band[valid].std() < flat for band in chip):
                plain += 1
            else:
                expected.append((x, y, x + size, y + size))
    assert boxes(found) == expected
    assert missing
    total = missing + plain + len(expected)
    reason = f"{missing + plain:,} of {total:,} windows left out: {missing:,} without data, {plain:,} flat"
    assert [(entry.item, entry.reason) for entry in found.skipped] == [("a.tif", reason)]
    assert found.scenes["a.tif"].path == path
    assert found.scenes["a.tif"].gsd == 10


def test_every_pixel_is_covered_and_ids_are_unique_and_stable(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.png", "deep/a.png"):
        Image.fromarray(RNG.integers(0, 256, (70, 101)).astype(np.uint8)).save(tmp_path / name)
    found = windows.read(tmp_path, size=32)
    assert list(found.scenes) == ["b.png", "deep/a.png"]
    assert not found.skipped
    ids = [item.id for item in found.crops]
    assert len(set(ids)) == len(ids)
    assert windows.read(tmp_path, size=32) == found
    seen = np.zeros((70, 101), np.bool_)
    for item in found.crops:
        if item.scene == "b.png":
            (x0, y0), (x1, y1) = (tuple(map(int, corner)) for corner in (item.polygon[0], item.polygon[2]))  # type: ignore[index]
            assert (x1 - x0, y1 - y0) == (32, 32)
            seen[y0:y1, x0:x1] = True
    assert seen.all()


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((20, 30), [(0, 0, 30, 20)]), ((64, 64), [(0, 0, 64, 64)]), ((20, 70), [(0, 0, 64, 20), (6, 0, 70, 20)])],
)
def test_an_image_smaller_than_a_window_is_one_window(shape: Any, expected: Any, tmp_path: Path) -> None:
    Image.fromarray(RNG.integers(0, 256, shape).astype(np.uint8)).save(tmp_path / "a.png")
    assert boxes(windows.read(tmp_path)) == expected


def test_a_scene_is_read_in_strips(tmp_path: Path, monkeypatch: Any) -> None:
    path = write_tiff(tmp_path / "a.tif", RNG.integers(0, 256, (1, 500, 300)).astype(np.uint8))
    heights = []
    read = SceneReader.read

    def watched(scene: SceneReader, window: Any) -> Any:
        heights.append(window[3] - window[1])
        return read(scene, window)

    monkeypatch.setattr(SceneReader, "read", watched)
    windows.read(path, size=16)
    assert set(heights) == {16}


def test_a_damaged_image_is_listed_and_the_rest_is_read(tmp_path: Path) -> None:
    Image.fromarray(RNG.integers(0, 256, (20, 20)).astype(np.uint8)).save(tmp_path / "good.png")
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    whole = write_tiff(tmp_path / "cut.tif", RNG.integers(0, 256, (1, 300, 300)).astype(np.uint8))
    whole.write_bytes(whole.read_bytes()[:60_000])
    (tmp_path / "notes.txt").write_text("not looked at")
    found = windows.read(tmp_path)
    assert list(found.scenes) == ["good.png"]
    assert {item.scene for item in found.crops} == {"good.png"}  # nothing of the half that could be read
    assert [entry.item for entry in found.skipped] == ["bad.jpg", "cut.tif"]
    assert "is not an image" in found.skipped[0].reason


def test_a_place_without_images_and_odd_arguments_are_refused(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "gone"):
        with pytest.raises(SourceError, match="holds no image; give"):
            windows.read(place)
    odd: list[dict[str, Any]] = [{"size": 0}, {"stride": 0}, {"empty": 1.5}, {"flat": -1.0}, {"flat": float("nan")}]
    for arguments in odd:
        with pytest.raises(InputError, match=next(iter(arguments))):
            windows.read(tmp_path, **arguments)
