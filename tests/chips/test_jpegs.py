"""What libjpeg-turbo alone decodes is what Pillow decodes, and what it leaves to Pillow is None."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from lookdown.chips import photographs
from lookdown.chips.photographs import decode_small_jpeg, jpeg_size
from lookdown.chips.pixels import read_chip
from lookdown.errors import ImageError


def picture(width: int, height: int) -> Image.Image:
    y, x = np.mgrid[:height, :width]
    waves = np.stack([128 + 60 * np.sin(x / 7 + band) + 50 * np.cos(y / 9 - band) for band in range(3)], axis=2)
    noise = np.random.default_rng(0).normal(0, 12, waves.shape)
    return Image.fromarray((waves + noise).clip(0, 255).astype(np.uint8))


def jpeg(width: int = 60, height: int = 44, mode: str = "RGB", **options: Any) -> bytes:
    stream = io.BytesIO()
    picture(width, height).convert(mode).save(stream, "JPEG", **options)
    return stream.getvalue()


def by_pillow(content: bytes) -> NDArray[np.uint8]:
    with Image.open(io.BytesIO(content)) as image:
        return np.array(image.convert("RGB"))


def noted() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6  # lies on its side
    return exif


@pytest.mark.parametrize("size", [(1, 1), (7, 9), (16, 16), (33, 64), (144, 143), (191, 3)])
@pytest.mark.parametrize("quality", [5, 75, 95, 100])
@pytest.mark.parametrize("options", [{"subsampling": 0}, {"subsampling": 1}, {"subsampling": 2}, {"mode": "L"}])
@pytest.mark.parametrize("progressive", [False, True])
def test_pixels_are_those_of_pillow_to_the_bit(
    size: tuple[int, int], quality: int, options: dict[str, Any], progressive: bool
) -> None:
    content = jpeg(*size, quality=quality, progressive=progressive, **options)
    found = decode_small_jpeg(content, 192)
    assert found is not None
    assert found.flags.writeable
    assert jpeg_size(content) == size
    np.testing.assert_array_equal(found, by_pillow(content), strict=True)


@pytest.mark.parametrize(
    "content",
    [
        jpeg(exif=noted()),
        jpeg(comment=b"a ship", dpi=(300, 300)),
        jpeg(restart_marker_blocks=2),
        jpeg(optimize=True),
        jpeg() + b"what comes behind",
    ],
    ids=["turned", "comment", "restarts", "optimised", "trailing"],
)
def test_what_a_file_says_besides_its_pixels_changes_none(content: bytes) -> None:
    found = decode_small_jpeg(content, 192)
    assert found is not None
    np.testing.assert_array_equal(found, by_pillow(content), strict=True)


@pytest.mark.parametrize(
    "content",
    [b"", b"no image", jpeg(mode="CMYK"), jpeg(keep_rgb=True), jpeg()[:-200], jpeg()[:100], jpeg(192, 8), jpeg(8, 192)],
    ids=["empty", "text", "cmyk", "rgb", "cut short", "head", "wide", "tall"],
)
def test_anything_else_is_left_to_pillow(content: bytes) -> None:
    assert decode_small_jpeg(content, 192) is None


def test_a_damaged_file_ends_as_it_does_by_pillow_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(0)
    whole = [jpeg(), jpeg(mode="L"), jpeg(progressive=True), jpeg(restart_marker_blocks=1), jpeg(mode="CMYK")]
    assert min(map(len, whole)) > 600  # the tables, where most damage is noticed
    damaged = []
    for _ in range(1500):
        content = bytearray(rng.choice(whole))
        for _ in range(rng.randrange(3)):
            content[rng.randrange(rng.choice((600, len(content))))] = rng.randrange(256)
        damaged.append(bytes(content[: rng.choice((len(content), rng.randrange(1, len(content))))]))
    path = tmp_path / "a.jpg"  # sentences name it
    path.touch()
    fast = [told(path, content) for content in damaged]
    taken = sum(decode_small_jpeg(content, 192) is not None for content in damaged)
    monkeypatch.setattr("lookdown.chips.pixels.decode_small_jpeg", lambda content, below: None)
    assert fast == [told(path, content) for content in damaged]
    assert 200 < taken < 1300  # both ways were gone


def told(path: Path, content: bytes) -> tuple[tuple[int, ...], bytes] | str:
    try:
        found = read_chip(path, side=16, content=content)
    except ImageError as error:
        return str(error).split(" object at ")[0]  # Pillow names an address in memory
    return found.shape, found.tobytes()


def test_the_first_bytes_tell_the_size_of_a_large_file() -> None:
    content = jpeg(900, 700, quality=95)
    assert jpeg_size(content[:4096]) == (900, 700)
    assert jpeg_size(content[:100]) is None


def test_no_size_is_told_beyond_the_limit_of_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    content = jpeg(40, 30)
    frame = content.index(b"\xff\xc0")
    assert jpeg_size(content[: frame + 5] + b"\xfd\xe8\xfd\xe8" + content[frame + 9 :]) is None  # 65,000 x 65,000
    monkeypatch.setattr(photographs, "MAX_PIXELS", 1199)
    assert jpeg_size(content) is None
