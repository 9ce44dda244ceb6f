"""Scenes on disk: pixels, boxes and locations agree, and tiles meet."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
import shapely

from lookdown.chips.cutting import CutOptions
from lookdown.chips.prepare import cut_chips
from lookdown.chips.roles import SplitOptions
from lookdown.chips.sources import read_source
from lookdown.errors import InputError
from lookdown.lab.synthetic import layouts, scenes
from lookdown.lab.synthetic.parts import SolidPart, placed
from lookdown.lab.synthetic.scenes import tiles_of, write_scene
from lookdown.lab.synthetic.sensors import FAR, NEAR


def test_a_scene_is_a_tiled_geotiff_with_a_box_for_every_object(tmp_path: Path) -> None:
    calls: list[tuple[Any, ...]] = []
    written = write_scene(tmp_path, "port", NEAR, size=1100, gsd=1.0, seed=3, progress=lambda *call: calls.append(call))
    assert calls[-1] == (tiles_of(1100), tiles_of(1100), "tiles") == (9, 9, "tiles")
    with rasterio.open(written.image) as image:
        assert image.profile["tiled"]
        assert image.block_shapes[0] == (512, 512)
        assert (image.width, image.height, image.count) == (1100, 1100, 3)
        assert image.crs.to_epsg() == 32631
    boxes = json.loads(written.boxes.read_text())["features"]
    assert [feature["properties"]["label"] for feature in boxes] == [item.kind for item in written.objects]
    assert boxes
    assert list(tmp_path.glob(".*")) == []


def test_boxes_are_where_the_objects_were_painted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects are painted green, found by their colour, and met by the boxes that the source geojson reads."""

    def green(parts: list[SolidPart], *where: float) -> list[SolidPart]:
        return [part._replace(colour=(0, 1, 0)) for part in placed(parts, *where)]

    monkeypatch.setattr(layouts, "placed", green)
    written = write_scene(tmp_path, "field", NEAR, ground="desert", size=1024, gsd=0.5, seed=1)
    found = read_source("geojson", tmp_path)
    assert len(found.crops) == len(written.objects) > 5
    with rasterio.open(written.image) as image:
        red, value, blue = image.read().astype(np.int64)
    painted = value > 1.7 * np.maximum(red, blue) + 20
    inside = np.zeros_like(painted)
    for marked in found.crops:
        assert marked.polygon is not None
        shape = shapely.Polygon(marked.polygon)
        left, low, right, high = (round(edge) for edge in shape.bounds)
        assert painted[low:high, left:right].mean() > 0.1, marked
        inside[max(low - 1, 0) : high + 1, max(left - 1, 0) : right + 1] = True
    assert painted[~inside].mean() < 1e-4


def test_tiles_meet_without_a_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = replace(FAR, noise=0.0)
    whole = write_scene(tmp_path, "large", quiet, size=900, gsd=1.0, seed=2).image
    monkeypatch.setattr(scenes, "_TILE_PIXELS", 256)
    parts = write_scene(tmp_path, "small", quiet, size=900, gsd=1.0, seed=2).image
    with rasterio.open(whole) as first, rasterio.open(parts) as second:
        difference = np.abs(first.read().astype(np.int64) - second.read())
    assert (difference > 3).mean() < 1e-5, "a pixel or two where an edge runs through the middle of one"


def test_a_scene_goes_through_prepare(tmp_path: Path) -> None:
    write_scene(tmp_path / "scenes", "port", NEAR, size=1024, gsd=1.0, seed=5)
    found = read_source("geojson", tmp_path / "scenes")
    done = cut_chips(found, tmp_path / "out", cutting=CutOptions(background=0.5), splitting=SplitOptions(split="none"))
    assert set(done.manifest.labels) - {None} == {item.label for item in found.crops}
    assert all(done.manifest.table["footprint"].to_pylist())


def test_what_is_no_scene_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="harbour, apron, forest or desert; got 'moon'"):
        write_scene(tmp_path, "x", NEAR, ground="moon")
