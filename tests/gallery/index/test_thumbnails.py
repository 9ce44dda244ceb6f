"""Small pictures of chips."""

from __future__ import annotations

import io
import random
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lookdown.gallery.index.thumbnails import MAX_OWN_BYTES, own_thumbnail, thumbnail


def opened(content: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(content))
    image.load()
    assert image.format == "JPEG"
    return image


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((96, 96), (96, 96)),
        ((20, 24), (24, 20)),  # never larger than the chip
        ((1, 1), (1, 1)),
        ((97, 96), (95, 96)),
        ((200, 400), (96, 48)),
        ((400, 200), (48, 96)),
        ((1, 5000), (96, 1)),
        ((5000, 3), (1, 96)),
    ],
)
@pytest.mark.parametrize("bands", [1, 3, 5])
def test_the_ratio_stays_and_no_side_is_longer_than_96(
    shape: tuple[int, int], size: tuple[int, int], bands: int
) -> None:
    assert opened(thumbnail(np.zeros((*shape, bands), np.uint8))).size == size


@pytest.mark.parametrize(("bands", "mode"), [(1, "L"), (2, "L"), (3, "RGB"), (4, "RGB"), (12, "RGB")])
def test_of_many_bands_the_first_three_are_shown_and_of_two_the_first(bands: int, mode: str) -> None:
    values = np.arange(10, 10 + 15 * bands, 15, dtype=np.uint8)
    image = opened(thumbnail(np.broadcast_to(values, (30, 40, bands))))
    assert image.mode == mode
    shown = np.asarray(image).reshape(30, 40, -1).mean((0, 1))
    np.testing.assert_allclose(shown, values[: len(shown)], atol=2)


def test_a_picture_is_that_of_the_chip_made_smaller_and_takes_little_room() -> None:
    y, x = np.mgrid[:300, :300]
    chip = np.stack([x * 255 // 300, y * 255 // 300, (x + y) * 255 // 600], axis=2).astype(np.uint8)
    content = thumbnail(chip)
    expected = np.asarray(Image.fromarray(chip).resize((96, 96), Image.Resampling.BOX), np.float64)
    assert np.abs(np.asarray(opened(content)) - expected).mean() < 4
    assert len(content) < 4_000
    assert thumbnail(chip) == content  # the same bytes each time


def test_a_part_of_a_larger_array_is_taken_as_it_looks() -> None:
    scene = np.zeros((60, 60, 4), np.uint8)
    scene[20:40, 20:40] = (200, 100, 50, 7)
    shown = np.asarray(opened(thumbnail(scene[20:40, 20:40][::-1])))
    np.testing.assert_allclose(shown.mean((0, 1)), (200, 100, 50), atol=3)


# Files that are their own picture


def picture(size: tuple[int, int] = (120, 90), mode: str = "RGB") -> Image.Image:
    y, x = np.mgrid[: size[1], : size[0]]
    waves = np.stack([128 + 90 * np.sin(x / 9), 128 + 90 * np.cos(y / 7), (x * 2 + y) % 256], axis=2)
    return Image.fromarray(waves.astype(np.uint8)).convert(mode)


def jpeg(size: tuple[int, int] = (120, 90), mode: str = "RGB", **options: Any) -> bytes:
    stream = io.BytesIO()
    picture(size, mode).save(stream, "JPEG", **{"quality": 85} | options)
    return stream.getvalue()


def with_segment(content: bytes, kind: int, payload: bytes) -> bytes:
    return content[:2] + bytes([0xFF, kind]) + (len(payload) + 2).to_bytes(2, "big") + payload + content[2:]


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("options", [{}, {"subsampling": 0}, {"optimize": True}, {"restart_marker_blocks": 2}])
def test_a_small_plain_jpeg_shows_the_same_pixels(mode: str, options: dict[str, Any]) -> None:
    content = jpeg(mode=mode, **options)
    own = own_thumbnail(content)
    assert own is not None
    np.testing.assert_array_equal(np.asarray(opened(own)), np.asarray(opened(content)))
    assert own_thumbnail(own) == own


def test_nothing_that_was_noted_in_a_file_is_kept() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "taken from my balcony"  # turned by 90 degrees
    exif.get_ifd(0x8825)[2] = (52.0, 31.0, 7.0)
    content = jpeg(exif=exif, comment=b"for nobody else", icc_profile=b"profile" * 20, dpi=(300, 300))
    for kind in (0xE1, 0xE5, 0xED, 0xEF, 0xFE):
        content = with_segment(content, kind, b"secret")
    own = own_thumbnail(content + b"and behind the end")
    assert own is not None
    for word in (b"Exif", b"balcony", b"nobody", b"profile", b"secret", b"behind"):
        assert word not in own
    shown = opened(own)
    assert shown.size == (120, 90)  # as it is stored, and as it was embedded
    assert not shown.getexif()
    assert set(shown.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}
    assert len(own) == len(own_thumbnail(jpeg()) or b"")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xd8",
        b"no picture",
        thumbnail(np.zeros((9, 9, 3), np.uint8))[:-2],
        jpeg(progressive=True),
        jpeg(mode="CMYK"),
        jpeg(keep_rgb=True),
        jpeg((145, 90)),
        jpeg((90, 145)),
        jpeg((144, 144), quality=100, subsampling=0) + bytes(MAX_OWN_BYTES),
        with_segment(jpeg(), 0xEE, b"Adobe\x00\x64\x00\x00\x00\x00\x00"),
        with_segment(jpeg(), 0xC0, jpeg()[jpeg().index(b"\xff\xc0") + 4 :][:15]),
        with_segment(jpeg(), 0xDC, b"\x00\x09"),
    ],
)
def test_any_other_file_is_drawn_anew(content: bytes) -> None:
    assert own_thumbnail(content) is None


def test_a_file_that_is_cut_short_or_scrambled_is_none_or_looks_like_a_jpeg() -> None:
    content = jpeg((40, 30))
    assert own_thumbnail(content) is not None
    assert all(own_thumbnail(content[:end]) is None for end in range(len(content)))
    chance = random.Random(0)
    for _ in range(2_000):
        scrambled = bytearray(content)
        for _ in range(chance.randrange(1, 4)):
            scrambled[chance.randrange(len(content))] = chance.randrange(256)
        own = own_thumbnail(bytes(scrambled))
        assert own is None or (own.startswith(b"\xff\xd8\xff\xe0\x00\x10JFIF") and own.endswith(b"\xff\xd9"))
