from __future__ import annotations

import json

import shapely
from tests.lab.demo.conftest import Heard

from lookdown import Gallery
from lookdown.chips.manifest import Manifest
from lookdown.lab.demo.archive import accept, build_gallery, search_scenes
from lookdown.lab.demo.demo_worlds import TRAINED
from lookdown.progress import no_progress


def test_the_gallery_holds_searched_chips_and_windows_and_is_not_made_twice(heard: Heard) -> None:
    gallery = Gallery.open(heard.folder / "gallery")
    searched = Manifest.read(heard.folder / "world").with_role("gallery")
    windows = 2 * (19 * 19 + 9 * 9)  # of 64 and 128 pixels at half their side, in scenes of 640
    assert len(gallery) == len(searched) + windows
    assert len(build_gallery(heard.folder, no_progress)) == len(gallery)


def test_hits_in_scenes_are_judged_by_what_stands_there(heard: Heard) -> None:
    found = search_scenes(Gallery.open(heard.folder / "gallery"), heard.folder / "world")
    assert [one.scene.stem for one in found] == ["apron-01", "harbour-00"]
    for one in found:
        assert one.kind in TRAINED
        boxes = json.loads(one.scene.with_suffix(".geojson").read_text())["features"]
        standing = [shapely.geometry.shape(box["geometry"]) for box in boxes if box["properties"]["label"] == one.kind]
        assert len(one.hits) == len(one.objects) == len(standing)
        for hit, right in zip(one.hits, one.right, strict=True):
            footprint = shapely.from_wkt(hit.footprint)  # in degrees, where we looked in pixels
            assert right == any(footprint.covers(box.centroid) for box in standing)
        shown = [shapely.from_wkt(hit.footprint) for hit in one.hits]
        assert len(one.missed) == sum(not any(area.covers(box.centroid) for area in shown) for box in standing)


def test_what_a_rate_accepts_is_counted_by_label_and_by_place(heard: Heard) -> None:
    gallery, world = Gallery.open(heard.folder / "gallery"), heard.folder / "world"
    found = accept(gallery, world, 0.2)
    assert [one.kind for one in found] == list(TRAINED)
    for one in found:
        labelled = sum(hit.label == one.kind for hit in one.results.hits)
        assert one.results.requested_false_alarm_rate == 0.2
        assert labelled <= one.right <= len(one.results)
        assert one.right + one.false == len(one.results)
    assert sum(one.right for one in found) > 0
