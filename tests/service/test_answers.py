"""What the gallery says, as the API says it."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.gallery.galleries import vector_gallery
from tests.service.galleries import encoded, pixels

from lookdown import Gallery
from lookdown.service.answers import chips, redrawn, search_answer, spread, stats, thumbnail_address, without_folders
from lookdown.service.service_settings import ServiceSettings


def test_an_answer_is_plain_json_whatever_names_hold(tmp_path: Path) -> None:
    gallery, X, rows = vector_gallery(tmp_path / "g")
    results = without_folders(gallery.search(X[0], k=30))
    answer = search_answer(replace(results, accepted=34), X[:1], b"jpeg", None)
    text = json.dumps(answer, allow_nan=False)
    assert json.loads(text)["accepted"] == 34
    assert answer["truncated"] is True
    assert "/archive/" not in text
    assert len(answer["example"]["embedding"]) == 8
    assert answer["example"]["thumbnail"] == "data:image/jpeg;base64,anBlZw=="
    assert {hit["footprint"] is None for hit in answer["hits"]} == {True, False}
    assert json.dumps(chips(gallery.snapshot, np.arange(len(rows))), allow_nan=False)
    told = stats(gallery, ServiceSettings())
    assert json.dumps(told, allow_nan=False)
    assert (told["can_embed"], told["name"]) == (False, "g")


def test_a_metric_that_another_process_has_dropped_is_still_named(tmp_path: Path) -> None:
    gallery, _, _ = vector_gallery(tmp_path / "g")
    gallery.adapt(clusters=5)
    other = Gallery.open(gallery.path)
    other.use("1-trained")
    other.forget("2-adapted")
    assert stats(gallery, ServiceSettings())["metric"] == {"name": "2-adapted", "about": "", "calibrated": False}


def test_an_id_is_one_part_of_an_address() -> None:
    assert thumbnail_address("a/b c?é#%") == "/v1/chips/a%2Fb%20c%3F%C3%A9%23%25/thumbnail"


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 7, 100, 528])
def test_a_walk_over_the_archive_meets_each_chip_once(rows: int) -> None:
    assert sorted(spread(rows, 0, rows)) == list(range(rows))
    assert [*spread(rows, 0, 5), *spread(rows, 5, rows)] == list(spread(rows, 0, rows))


def test_only_pixels_are_left() -> None:
    evil = encoded(pixels(0, 0), "JPEG", comment=b"<script>alert(1)</script>", exif=b"Exif\0\0secret") + b"<html>"
    drawn = redrawn(evil)
    assert drawn is not None
    assert b"script" not in drawn
    assert b"secret" not in drawn
    assert b"html" not in drawn
    with Image.open(io.BytesIO(drawn)) as image:
        assert (image.format, image.size, image.mode) == ("JPEG", (32, 32), "RGB")


def test_grey_stays_grey_and_what_is_no_small_jpeg_is_none() -> None:
    grey = redrawn(encoded(pixels(0, 0)[:, :, 0], "JPEG"))
    assert grey is not None
    with Image.open(io.BytesIO(grey)) as image:
        assert image.mode == "L"
    large = io.BytesIO()
    Image.new("RGB", (300, 300)).save(large, "JPEG")
    for content in (b"", b"<svg/>", encoded(pixels(0, 0), "PNG"), grey[:100], large.getvalue()):
        assert redrawn(content) is None
