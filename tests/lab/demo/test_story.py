from __future__ import annotations

import json

from tests.lab.demo.conftest import Heard, hear


def test_the_story_tells_its_chapters_and_how_far_it_is(heard: Heard) -> None:
    assert len(heard.chapters) == 7
    assert all("mAP" in note for note in heard.notes)
    assert len(heard.notes) == 5  # three runs and two comparisons
    assert heard.progress
    assert all(0 <= done <= total for done, total, _ in heard.progress)


def test_it_leaves_a_run_a_gallery_and_a_map_layer(heard: Heard) -> None:
    left = {path.name for path in heard.folder.iterdir()}
    assert {"world", "abroad", "run", "baselines", "adapted", "gallery", "index.html", "hits.html"} <= left
    layer = json.loads((heard.folder / "hits.geojson").read_text())
    assert layer["type"] == "FeatureCollection"


def test_told_again_it_goes_on_from_what_is_there(heard: Heard) -> None:
    kept = [heard.folder / name for name in ("world", "abroad", "run", "baselines")]
    before = {file: file.stat().st_mtime_ns for folder in kept for file in folder.rglob("*") if file.is_file()}
    again = hear(heard.folder)
    after = {file: file.stat().st_mtime_ns for folder in kept for file in folder.rglob("*") if file.is_file()}
    assert {file: after[file] for file in before} == before
    assert again.told.figures == heard.told.figures
