"""Small pictures of chips."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from lookdown.gallery.thumbnails import thumbnail


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
