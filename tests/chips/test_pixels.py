"""Files good and bad become chips and squares; every image here is made by its test."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from lookdown.chips import photographs
from lookdown.chips.pixels import letterbox, read_chip
from lookdown.errors import ImageError, InputError

Pixels = NDArray[np.uint8]


def some_pixels(h: int, w: int, bands: int = 3, seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (h, w, bands), dtype=np.uint8)


def saved(path: Path, pixels: Pixels) -> Path:
    Image.fromarray(pixels).save(path)
    return path


def png_that_claims(path: Path, width: int, height: int) -> Path:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(1000))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))
    return path


def test_pixels_come_back_as_they_were_saved(tmp_path: Path) -> None:
    pixels = some_pixels(7, 11)
    found = read_chip(saved(tmp_path / "a.png", pixels))
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, pixels)
    found[0] = 0  # the caller's own
    smooth = np.broadcast_to(np.arange(40, dtype=np.uint8)[:, None, None] * 5, (40, 30, 3)).copy()
    read = read_chip(saved(tmp_path / "a.jpg", smooth))
    assert np.abs(read.astype(int) - smooth).max() < 12


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "PA", "RGBA", "CMYK"])
def test_every_8_bit_mode_becomes_three_bands(tmp_path: Path, mode: str) -> None:
    grey = np.where(np.arange(6)[:, None] < 3, 0, 255).astype(np.uint8).repeat(4, axis=1)
    path = tmp_path / ("a.tif" if mode in ("CMYK", "PA") else "a.png")
    Image.fromarray(grey).convert("RGB").convert("P" if mode == "PA" else mode).convert(mode).save(path)
    np.testing.assert_array_equal(read_chip(path), grey[:, :, None].repeat(3, axis=2))


def test_a_palette_with_transparent_colours_is_read_without_a_warning(tmp_path: Path) -> None:
    image = Image.new("P", (4, 4), 1)
    image.putpalette([0, 0, 0, 200, 100, 50])
    image.save(tmp_path / "a.png", transparency=b"\x00\x80")
    assert read_chip(tmp_path / "a.png")[0, 0].tolist() == [200, 100, 50]


@pytest.mark.parametrize("bands", [1, 4, 12])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_with_any_bands_are_read(tmp_path: Path, bands: int, order: str) -> None:
    pixels = some_pixels(5, 6, bands)
    np.save(tmp_path / "a.npy", np.asarray(pixels, order="F" if order == "F" else "C"))
    found = read_chip(tmp_path / "a.npy")
    np.testing.assert_array_equal(found, pixels)
    assert found.flags.c_contiguous


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((4, 4, 3), np.uint16), "uint16"),
        (np.zeros((4, 4), np.uint8), r"\(4, 4\)"),
        (np.zeros((0, 4, 3), np.uint8), "no pixels"),
        (np.array([[[{}]]], dtype=object), "object"),
    ],
)
def test_arrays_of_the_wrong_kind_are_refused(tmp_path: Path, array: NDArray[np.generic], words: str) -> None:
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(ImageError, match=rf"a\.npy: .*{words}.*;"):
        read_chip(tmp_path / "a.npy")


def test_truncated_and_alleged_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, some_pixels(9, 9))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ImageError, match="truncated"):
        read_chip(path)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(ImageError, match="cannot be read"):
        read_chip(path)
    path.write_text("a poem, not an array")
    with pytest.raises(ImageError, match="cannot be read"):
        read_chip(path)
    with path.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (1 << 20, 1 << 20, 3)}
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(ImageError, match="megapixels"):
        read_chip(path)


@pytest.mark.parametrize(("name", "keep"), [("a.jpg", 0.5), ("a.png", 0.5), ("a.tif", 0.5), ("a.jpg", 0.01)])
def test_a_truncated_image_is_refused(tmp_path: Path, name: str, keep: float) -> None:
    path = saved(tmp_path / name, some_pixels(64, 64))
    assert read_chip(path).shape == (64, 64, 3)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(ImageError, match=rf"{name}.*;"):
        read_chip(path)


def test_what_is_no_image_is_refused_with_a_next_step(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"gone\.jpg: there is no such file; check"):
        read_chip(tmp_path / "gone.jpg")
    (tmp_path / "text.jpg").write_text("this is not a ship")
    with pytest.raises(ImageError, match=r"text\.jpg: not an image of a known kind .*; convert"):
        read_chip(tmp_path / "text.jpg")
    (tmp_path / "empty.jpg").touch()
    with pytest.raises(ImageError, match=r"empty\.jpg: the file is empty; copy"):
        read_chip(tmp_path / "empty.jpg")
    (tmp_path / "folder.jpg").mkdir()
    with pytest.raises(ImageError, match=r"folder\.jpg: cannot be read"):
        read_chip(tmp_path / "folder.jpg")
    (tmp_path / "drawing.png").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n")
    with pytest.raises(ImageError, match="not an image of a known kind"):  # Pillow would run Ghostscript
        read_chip(tmp_path / "drawing.png")
    with pytest.raises(ImageError, match=r"cannot be read|no pixels|not an image"):
        read_chip(png_that_claims(tmp_path / "zero.png", 0, 0))


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_deep_pixels_are_stretched_rather_than_clipped(name: str, tmp_path: Path) -> None:
    ramp = np.linspace(1000, 5000, 400).astype(np.uint16).reshape(20, 20)
    Image.fromarray(ramp).save(tmp_path / name)
    chip = read_chip(tmp_path / name)
    assert chip.shape == (20, 20, 3)
    assert (chip[0, 0] == 0).all()
    assert (chip[-1, -1] == 255).all()
    assert (np.diff(chip[:, :, 0].ravel().astype(int)) >= 0).all()


@pytest.mark.parametrize(("width", "height"), [(100_000, 100_000), (20_000, 20_000), (300_000, 1_001)])
def test_a_bomb_is_refused_before_it_is_decoded(tmp_path: Path, width: int, height: int) -> None:
    usual = Image.MAX_IMAGE_PIXELS
    with pytest.raises(ImageError, match=r"bomb\.png: more than 300 megapixels"):
        read_chip(png_that_claims(tmp_path / "bomb.png", width, height))
    assert usual == Image.MAX_IMAGE_PIXELS


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_bomb_that_pillow_only_warns_of_is_refused_whatever_the_filters(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="more than 300 megapixels"):
        read_chip(png_that_claims(tmp_path / "bomb.png", 20_000, 20_000))


def test_the_limit_is_ours_and_not_the_lower_one_of_pillow(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="cannot be read"):  # let in; then its pixels turn out to be missing
        read_chip(png_that_claims(tmp_path / "large.png", 20_000, 10_000))


def photograph(path: Path, w: int, h: int, **options: Any) -> Path:
    """Save what has large things and small ones in it, as photographs do."""
    y, x = np.mgrid[:h, :w]
    waves = [np.sin(x / scale) * np.cos(y / (scale + 3)) for scale in (40, 11, 5)]
    pixels = np.stack([128 + 60 * waves[0] + 30 * waves[1] + 15 * waves[2], 120 + 50 * waves[1], 90 + 40 * waves[0]], 2)
    Image.fromarray(pixels.astype(np.uint8)).convert(options.pop("mode", "RGB")).save(path, **options)
    return path


@pytest.mark.parametrize(
    ("size", "side", "read"),
    [
        ((512, 256), 64, (128, 64)),
        ((1024, 512), 64, (128, 64)),
        ((4096, 512), 112, (512, 64)),
        ((512, 4096), 112, (64, 512)),
        ((446, 446), 112, (446, 446)),  # a half has less than twice the letterbox
        ((448, 448), 112, (224, 224)),
        ((449, 448), 112, (449, 448)),  # no half of both sides
        ((900, 900), 112, (225, 225)),
        ((200, 200), 16, (100, 100)),  # not less than a picture shows
    ],
)
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_jpeg_is_decoded_no_larger_than_needed(
    tmp_path: Path, size: tuple[int, int], side: int, read: tuple[int, int], mode: str
) -> None:
    path = photograph(tmp_path / "a.jpg", *size, mode=mode)
    whole, part = read_chip(path), read_chip(path, side=side)
    assert whole.shape == (*size[::-1], 3)
    assert part.shape == (*read[::-1], 3)
    apart = np.abs(letterbox(whole, side).astype(int) - letterbox(part, side))
    assert apart.mean() <= 1
    assert apart.max() <= 16


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.webp", "a.tif"])
def test_what_is_no_jpeg_is_decoded_whole(tmp_path: Path, name: str) -> None:
    assert read_chip(photograph(tmp_path / name, 512, 512), side=32).shape == (512, 512, 3)


def test_a_jpeg_that_is_cut_short_is_refused_at_a_part_of_its_size_too(tmp_path: Path) -> None:
    path = photograph(tmp_path / "a.jpg", 512, 512)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ImageError, match=r"a\.jpg: cannot be read"):
        read_chip(path, side=32)


def test_the_limit_of_pixels_is_that_of_the_file_and_not_of_what_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(photographs, "MAX_PIXELS", 100_000)
    with pytest.raises(ImageError, match="megapixels"):
        read_chip(photograph(tmp_path / "a.jpg", 512, 512), side=32)


def test_bytes_that_were_read_already_are_taken_for_those_of_the_file(tmp_path: Path) -> None:
    path = photograph(tmp_path / "a.jpg", 60, 40)
    content, pixels = path.read_bytes(), read_chip(path)
    path.write_bytes(b"something else by now")
    np.testing.assert_array_equal(read_chip(path, content=content), pixels)
    for wrong in (b"", b"no image", content[: len(content) // 2]):
        with pytest.raises(ImageError, match=r"a\.jpg: .*;"):
            read_chip(path, content=wrong)


@pytest.mark.parametrize("path", ["/vsicurl/http://x/a.png", "/vsizip/a.zip/a.png", "https://x/a.png", "s3://x/a.npy"])
def test_paths_that_lead_elsewhere_are_refused(path: str) -> None:
    with pytest.raises(ImageError, match="is not a local file"):
        read_chip(Path(path))


def test_letterbox_keeps_the_ratio_of_length_to_beam() -> None:
    chip = np.zeros((100, 200, 3), np.uint8)
    chip[40:60, 50:150] = 255  # a ship, five times as long as wide
    for turned in (chip, chip.transpose(1, 0, 2)):
        ship = letterbox(turned, 64, fill=(0, 0, 0))[:, :, 0] > 127
        sides = sorted((int(ship.any(0).sum()), int(ship.any(1).sum())))
        assert sides == [6, 32]  # 20 and 100 at 0.32
        assert [int(line.mean().round()) for line in np.nonzero(ship)] == [32, 32]  # in the middle


def test_letterbox_pads_evenly_with_the_mean_colour_or_the_one_given() -> None:
    chip = np.zeros((10, 20, 3), np.uint8)
    chip[:5], chip[5:] = (10, 100, 200), (20, 110, 203)
    square = letterbox(chip, 40)
    assert square.shape == (40, 40, 3)
    mean = np.array([15, 105, round(201.5)])
    assert (square[:10] == mean).all()
    assert (square[30:] == mean).all()
    assert (square[10:16] == (10, 100, 200)).all()
    assert (square[24:30] == (20, 110, 203)).all()
    assert (letterbox(chip, 40, fill=(1, 2, 3))[:10] == (1, 2, 3)).all()


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 5000, 3), (5000, 1, 3), (3, 2000, 7), (64, 64, 1)])
def test_letterbox_takes_any_shape(shape: tuple[int, int, int]) -> None:
    flat = np.full(shape, 77, np.uint8)
    square = letterbox(flat, 64, fill=(0,) * shape[2])
    assert square.shape == (64, 64, shape[2])
    kept = square[:, :, -1] == 77
    scale = 64 / max(shape[:2])
    assert kept.any(1).sum() == max(1, round(shape[0] * scale))
    assert kept.any(0).sum() == max(1, round(shape[1] * scale))


def test_letterbox_leaves_a_square_of_the_right_size_and_treats_bands_alike() -> None:
    chip = some_pixels(32, 32, 5)
    np.testing.assert_array_equal(letterbox(chip, 32), chip)
    small = letterbox(chip, 20)
    for band in range(5):
        np.testing.assert_array_equal(letterbox(chip[:, :, band : band + 1], 20)[:, :, 0], small[:, :, band])
    rgb = Image.fromarray(chip[:, :, :3]).resize((20, 20), Image.Resampling.LANCZOS)
    np.testing.assert_array_equal(small[:, :, :3], np.asarray(rgb))


@pytest.mark.parametrize("shape", [(31, 20, 3), (20, 31, 3), (7, 90, 3), (40, 40, 3), (31, 20, 4), (20, 31, 1)])
def test_letterbox_is_that_of_each_band_alone(shape: tuple[int, int, int]) -> None:
    chip = some_pixels(*shape)
    wide = np.zeros((shape[0], 2 * shape[1], shape[2] + 2), np.uint8)
    wide[:, ::2, 1:-1] = chip
    h, w = (max(1, round(side * 24 / max(shape[:2]))) for side in shape[:2])
    expected = np.empty((24, 24, shape[2]), np.uint8)
    for band in range(shape[2]):
        values = [float(value) for value in chip[:, :, band].ravel()]
        expected[:, :, band] = round(sum(values) / len(values))
        image = Image.fromarray(np.ascontiguousarray(chip[:, :, band])).resize((w, h), Image.Resampling.LANCZOS)
        expected[(24 - h) // 2 : (24 - h) // 2 + h, (24 - w) // 2 : (24 - w) // 2 + w, band] = np.asarray(image)
    np.testing.assert_array_equal(letterbox(chip, 24), expected)
    np.testing.assert_array_equal(letterbox(wide[:, ::2, 1:-1], 24), expected)  # a part of a larger array


def test_letterbox_averages_when_it_shrinks() -> None:
    board = np.indices((256, 256)).sum(0) % 2 * 255
    grey = letterbox(board.astype(np.uint8)[:, :, None], 32)
    assert np.abs(grey.astype(int) - 127).max() <= 3


@pytest.mark.parametrize(
    ("chip", "size", "fill"),
    [
        (np.zeros((4, 4), np.uint8), 8, None),
        (np.zeros((0, 4, 3), np.uint8), 8, None),
        (np.zeros((4, 4, 3), np.float32), 8, None),
        (np.zeros((4, 4, 3), np.uint8), 0, None),
        (np.zeros((4, 4, 3), np.uint8), 8, (0, 0)),
        (np.zeros((4, 4, 3), np.uint8), 8, (0, 0, 256)),
    ],
)
def test_letterbox_refuses_what_it_cannot_use(chip: Pixels, size: int, fill: tuple[int, ...] | None) -> None:
    with pytest.raises(InputError):
        letterbox(chip, size, fill)
