"""Files good and bad become chips, squares and batches; every image here is made by its test."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import DataLoader

from lookdown.chips.reading import Batch, ChipDataset, chip_batches, letterbox, read_chip
from lookdown.errors import ImageError, InputError

# Python 3.12 and later warn of any fork of a process with threads, and torch has threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

Pixels = NDArray[np.uint8]


def some_pixels(h: int, w: int, bands: int = 3, seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (h, w, bands), dtype=np.uint8)


def saved(path: Path, pixels: Pixels) -> Path:
    Image.fromarray(pixels).save(path)
    return path


def some_chips(folder: Path, count: int) -> list[Path]:
    return [saved(folder / f"{i}.png", some_pixels(10 + i, 20, seed=i)) for i in range(count)]


def png_that_claims(path: Path, width: int, height: int) -> Path:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(1000))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))
    return path


def assert_equal_batches(found: Sequence[Batch], expected: Sequence[Batch]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert torch.equal(a.indices, b.indices)
        assert torch.equal(a.images, b.images)
        assert a.problems == b.problems


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


def test_an_item_is_the_letterboxed_chip_or_zeros_and_a_sentence(tmp_path: Path) -> None:
    paths = [*some_chips(tmp_path, 1), tmp_path / "gone.png"]
    dataset = ChipDataset(paths, size=16)
    good, bad = dataset[0], dataset[1]
    assert (good.index, good.problem) == (0, None)
    np.testing.assert_array_equal(good.image.permute(1, 2, 0).numpy(), letterbox(read_chip(paths[0]), 16))
    assert bad.index == 1
    assert bad.image.shape == (3, 16, 16)
    assert bad.image.dtype == torch.uint8
    assert not bad.image.any()
    assert "gone.png" in (bad.problem or "")
    batch = dataset.collate([bad, good, bad])
    assert batch.indices.tolist() == [0]
    assert torch.equal(batch.images, good.image[None])
    assert batch.problems == [(1, bad.problem), (1, bad.problem)]
    assert dataset.collate([bad]).images.shape == (0, 3, 16, 16)


@pytest.mark.parametrize("seed", [None, 5])
def test_worker_processes_change_nothing(tmp_path: Path, seed: int | None) -> None:
    paths = some_chips(tmp_path, 9)
    paths[4].write_text("no longer an image")
    runs = [chip_batches(paths, size=16, batch_size=2, workers=workers, seed=seed) for workers in (0, 2)]
    alone, together = (list(run) for run in runs)
    assert_equal_batches(together, alone)
    assert runs[0].skipped == runs[1].skipped
    assert list(runs[0].skipped) == [4]
    assert sorted(int(i) for batch in alone for i in batch.indices) == [0, 1, 2, 3, 5, 6, 7, 8]
    for batch in alone:
        for index, image in zip(batch.indices.tolist(), batch.images, strict=True):
            expected = letterbox(read_chip(paths[index]), 16)
            np.testing.assert_array_equal(image.permute(1, 2, 0).numpy(), expected)


def test_spawned_workers_read_the_same(tmp_path: Path) -> None:
    dataset = ChipDataset(some_chips(tmp_path, 3), size=8)
    loader = DataLoader(
        dataset, batch_size=2, num_workers=1, collate_fn=dataset.collate, multiprocessing_context="spawn"
    )
    assert_equal_batches(list(loader), list(chip_batches(dataset.paths, size=8, batch_size=2)))


def test_the_seed_alone_decides_the_order(tmp_path: Path) -> None:
    paths = some_chips(tmp_path, 12)

    def order(seed: int | None) -> list[int]:
        return [int(i) for batch in chip_batches(paths, size=4, batch_size=5, seed=seed) for i in batch.indices]

    assert order(None) == list(range(12))
    assert order(1) == order(1) != order(2)
    assert sorted(order(1)) == list(range(12)) != order(1)
    batches = chip_batches(paths, size=4, batch_size=5, seed=1)
    assert_equal_batches(list(batches), list(batches))
    assert len(batches) == len(list(batches)) == 3


def test_reading_leaves_the_global_generator_alone(tmp_path: Path) -> None:
    before = torch.get_rng_state()
    list(chip_batches(some_chips(tmp_path, 2), size=4, batch_size=1, seed=1))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_batch_without_a_good_chip_is_left_out(tmp_path: Path) -> None:
    good = some_chips(tmp_path, 2)
    bad = [tmp_path / f"gone-{i}.png" for i in range(3)]
    batches = chip_batches([good[0], bad[0], bad[1], bad[2], good[1]], size=8, batch_size=2)
    assert [batch.indices.tolist() for batch in batches] == [[0], [4]]
    assert sorted(batches.skipped) == [1, 2, 3]
    assert all(bad[i - 1].name in sentence for i, sentence in batches.skipped.items())
    saved(bad[1], some_pixels(3, 3))
    assert [batch.indices.tolist() for batch in batches] == [[0], [2], [4]]
    assert sorted(batches.skipped) == [1, 3]  # of this epoch, not of all
    assert list(chip_batches(bad[:1], size=8, batch_size=4)) == []
    assert list(chip_batches([], size=8, batch_size=4)) == []


@pytest.mark.parametrize("workers", [0, 1])
def test_a_file_deleted_while_the_epoch_runs_is_skipped(tmp_path: Path, workers: int) -> None:
    paths = some_chips(tmp_path, 40)
    batches = chip_batches(paths, size=8, batch_size=2, workers=workers)
    seen: list[int] = []
    for batch in batches:
        paths[39].unlink(missing_ok=True)
        seen += batch.indices.tolist()
    assert seen == list(range(39))
    assert list(batches.skipped) == [39]
    assert "there is no such file" in batches.skipped[39]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("batch_size", [1, 2])  # in two batches, and in one
def test_chips_with_different_bands_are_refused_by_name(tmp_path: Path, workers: int, batch_size: int) -> None:
    rgb, many = some_chips(tmp_path, 1)[0], tmp_path / "many.npy"
    np.save(many, some_pixels(5, 5, 8))
    with pytest.raises(InputError, match=r"^chips of one run.*0\.png has 3 and .*many\.npy has 8"):
        list(chip_batches([rgb, many], size=8, batch_size=batch_size, workers=workers))
    batches = list(chip_batches([many, tmp_path / "gone.png"], size=8, batch_size=2, workers=workers))
    assert [batch.images.shape for batch in batches] == [(1, 8, 8, 8)]  # a missing chip has no bands to differ in


@pytest.mark.parametrize(("size", "batch_size", "workers"), [(0, 2, 0), (8, 0, 0), (8, 2, -1)])
def test_settings_out_of_range_are_refused(size: int, batch_size: int, workers: int) -> None:
    with pytest.raises(InputError, match="must be at least"):
        chip_batches([], size=size, batch_size=batch_size, workers=workers)
