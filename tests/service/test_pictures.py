"""Stored pictures, drawn anew."""

from __future__ import annotations

import io

from PIL import Image
from tests.service.galleries import encoded, pixels

from lookdown.service.pictures import redrawn


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
