"""Any kind of images comes out as the same batches, in order, read by threads ahead of the network."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from lookdown.chips import reader
from lookdown.chips.manifest import Manifest
from lookdown.chips.pixels import letterbox, read_chip
from lookdown.chips.reader import Group, ImageReader, ahead, read_squares
from lookdown.errors import ImageError, InputError

PIXELS = np.random.default_rng(0).integers(0, 256, (7, 3, 16, 16), dtype=np.uint8)
SIZE = 16


def as_files(folder: Path) -> list[Path]:
    paths = [folder / f"{index}.png" for index in range(len(PIXELS))]
    for path, pixels in zip(paths, PIXELS, strict=True):
        Image.fromarray(pixels.transpose(1, 2, 0)).save(path)
    return paths


def as_manifest(paths: list[Path]) -> Manifest:
    rows = [
        {"id": p.stem, "path": p.name, "scene": "s", "role": "gallery", "background": False, "scene_group": "g"}
        for p in paths
    ]
    return Manifest.of_rows(rows, paths[0].parent)


def reader_of(images: Any, batch_size: int = 3) -> ImageReader:
    return ImageReader(images, bands=3, size=SIZE, batch_size=batch_size)


def copied(images: ImageReader) -> list[tuple[list[int], NDArray[np.uint8]]]:
    return [(positions.tolist(), np.asarray(batch).copy()) for positions, batch in images]


def test_arrays_tensors_files_and_manifests_give_the_same(tmp_path: Path) -> None:
    paths = as_files(tmp_path)
    np.save(tmp_path / "all.npy", PIXELS)
    kinds = [
        PIXELS,
        np.load(tmp_path / "all.npy", mmap_mode="r"),
        torch.from_numpy(PIXELS),
        paths,
        [str(path) for path in paths],
        as_manifest(paths),
    ]
    for images in kinds:
        batches = reader_of(images)
        assert batches.total == 7
        read = copied(batches)
        assert [positions for positions, _ in read] == [[0, 1, 2], [3, 4, 5], [6]]
        assert np.array_equal(np.concatenate([batch for _, batch in read]), PIXELS)
        assert batches.skipped == {}


def test_files_are_letterboxed_and_bad_ones_skipped(tmp_path: Path) -> None:
    paths = as_files(tmp_path)
    wide = PIXELS[1, :, :9].transpose(1, 2, 0)
    Image.fromarray(wide).save(paths[1])
    paths[4].write_text("no image")
    batches = reader_of(paths)
    read = copied(batches)
    assert [position for positions, _ in read for position in positions] == [0, 1, 2, 3, 5, 6]
    assert list(batches.skipped) == [4]
    assert "4.png" in batches.skipped[4]
    np.testing.assert_array_equal(read[0][1][1].transpose(1, 2, 0), letterbox(wide, SIZE))


def test_all_images_at_once_with_their_positions_and_the_progress(tmp_path: Path) -> None:
    paths = as_files(tmp_path)
    paths[4].write_text("no image")
    calls: list[tuple[int, int | None, str]] = []
    images, positions = reader_of(paths).read_all(lambda *call: calls.append(call))
    assert positions.tolist() == [0, 1, 2, 3, 5, 6]
    np.testing.assert_array_equal(images, PIXELS[positions])
    assert calls[-1] == (7, 7, "chips")
    none, nowhere = reader_of([tmp_path / "gone.png"]).read_all()
    assert none.shape == (0, 3, SIZE, SIZE)
    assert not len(nowhere)


def test_chips_are_read_as_a_gallery_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "large.jpg"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (400, 200, 3), dtype=np.uint8)).save(path)
    expected = letterbox(read_chip(path, side=SIZE), SIZE)
    np.testing.assert_array_equal(reader_of([path]).read_all()[0][0].transpose(1, 2, 0), expected)
    assert (expected != letterbox(read_chip(path), SIZE)).any()  # a half of it was decoded


def test_reading_leaves_the_global_generator_alone(tmp_path: Path) -> None:
    before = torch.get_rng_state()
    reader_of(as_files(tmp_path)).read_all()
    assert torch.equal(torch.get_rng_state(), before)


def test_each_pass_lists_its_own_bad_files(tmp_path: Path) -> None:
    good = as_files(tmp_path)[:2]
    bad = [tmp_path / f"gone-{i}.png" for i in range(3)]
    batches = reader_of([good[0], *bad, good[1]], batch_size=2)
    assert [positions for positions, _ in copied(batches)] == [[0], [4]]
    assert sorted(batches.skipped) == [1, 2, 3]
    assert all(bad[i - 1].name in sentence for i, sentence in batches.skipped.items())
    Image.fromarray(PIXELS[0].transpose(1, 2, 0)).save(bad[1])
    assert [positions for positions, _ in copied(batches)] == [[0], [2], [4]]
    assert sorted(batches.skipped) == [1, 3]
    assert copied(reader_of(bad[:1])) == []


def test_a_file_deleted_while_others_are_read_is_skipped(tmp_path: Path) -> None:
    paths = as_files(tmp_path) * 6
    last = tmp_path / "last.png"
    last.write_bytes(paths[0].read_bytes())
    batches = reader_of([*paths, last], batch_size=2)
    seen: list[int] = []
    for positions, _ in batches:
        last.unlink(missing_ok=True)
        seen += positions.tolist()
    assert seen == list(range(len(paths)))
    assert list(batches.skipped) == [len(paths)]
    assert "there is no such file" in batches.skipped[len(paths)]


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (PIXELS[0], r"bands first, got uint8 \(3, 16, 16\)"),
        (PIXELS / 255, r"must be uint8 \(n, 3, 16, 16\), bands first, got float64"),
        (torch.zeros(2, 3, 16, 16), "must be uint8 .* got float32"),
        (PIXELS.transpose(0, 2, 3, 1), "images have 16 bands .*bands first.* takes 3"),
        (PIXELS[:, :2], "images have 2 bands .* build an embedder with bands=2"),
        (PIXELS[:, :, 1:], "images are 15 x 16 pixels, this embedder takes 16 x 16; letterbox them"),
        (PIXELS[:0], "there are no images"),
        ([], "there are no images"),
        ("chip.png", "got str; put the file into a list"),
        (Path("chip.png"), "got PosixPath; put the file into a list"),
        (3, "must be an array, a tensor, a list of files or a manifest, got int"),
        ([PIXELS[0]], "a list of images must hold files; stack pixels"),
    ],
)
def test_what_is_no_batch_of_images_is_refused(images: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reader_of(images)


def test_a_batch_size_below_one_is_refused() -> None:
    with pytest.raises(InputError, match="batch_size must be a whole number of at least 1, got 0"):
        reader_of(PIXELS, batch_size=0)


def test_files_with_other_bands_are_refused_and_grey_is_fitted(tmp_path: Path) -> None:
    np.save(tmp_path / "four.npy", np.zeros((5, 5, 4), np.uint8))
    with pytest.raises(InputError, match=r"four\.npy has 4 bands, this embedder takes 3"):
        reader_of([*as_files(tmp_path), tmp_path / "four.npy"]).read_all()
    Image.fromarray(PIXELS[0, 0]).save(tmp_path / "grey.png")
    images, _ = ImageReader([tmp_path / "grey.png"], bands=5, size=SIZE).read_all()
    np.testing.assert_array_equal(images, np.repeat(PIXELS[:1, :1], 5, axis=1))


def chip(position: int) -> NDArray[np.uint8]:
    return np.random.default_rng(position).integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)


def slow(count: int, *, first: int = 0, lazily: bool = False, asked: list[int] | None = None) -> Group[str]:
    """Images of which some take long, and some are broken."""

    def read(positions: Sequence[int]) -> Iterator[tuple[str, NDArray[np.uint8] | ImageError]]:
        for position in positions:
            if asked is not None:
                asked.append(position)
            time.sleep(0.002 if position % 7 == 0 else 0)
            broken = position % 11 == 5
            yield str(position), ImageError(f"{position} is broken") if broken else chip(position)

    return Group(range(first, first + count), read, lazily=lazily)


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_images_come_in_their_order_however_many_threads_read(
    monkeypatch: pytest.MonkeyPatch, threads: int, lazily: bool
) -> None:
    monkeypatch.setattr(reader, "_THREADS", threads)
    groups = [slow(60, lazily=lazily), slow(0), slow(30, first=60, lazily=lazily)]
    batches = [*read_squares(groups, bands=3, size=SIZE, batch_size=50)]
    good = [position for position in range(90) if position % 11 != 5]
    assert [item for batch in batches for item in batch.items] == [str(position) for position in good]
    assert [len(batch.items) for batch in batches] == [50, len(good) - 50]
    assert all(batch.images.flags.c_contiguous for batch in batches)
    squares = np.concatenate([batch.images for batch in batches])
    np.testing.assert_array_equal(squares, [chip(position).transpose(2, 0, 1) for position in good])
    failed = {item: str(error) for batch in batches for item, error in batch.failed}
    assert failed == {str(position): f"{position} is broken" for position in range(90) if position % 11 == 5}


def test_the_first_batch_is_small_and_the_last_may_be_empty() -> None:
    groups = [Group(range(28), lambda positions: [(i, chip(i)) for i in positions])]
    batches = read_squares(groups, bands=3, size=SIZE, batch_size=16, first_batch=4)
    assert [len(batch.items) for batch in batches] == [4, 8, 16, 0]


def test_several_threads_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_THREADS", 2)
    together = threading.Barrier(2)  # breaks, and so fails, unless two come

    def read(positions: Sequence[int]) -> list[tuple[int, NDArray[np.uint8] | ImageError]]:
        together.wait(30)
        return [(position, chip(position)) for position in positions]

    (batch,) = read_squares([Group(range(32), read)], bands=3, size=SIZE, batch_size=64)
    assert batch.items == list(range(32))


def test_windows_of_a_scene_are_read_as_they_are_needed() -> None:
    asked: list[int] = []
    batches = read_squares([slow(1_000, lazily=True, asked=asked)], bands=3, size=SIZE, batch_size=5)
    assert len(next(batches).items) == 5
    assert asked == [0, 1, 2, 3, 4]
    batches.close()


def test_an_unforeseen_error_ends_the_reading() -> None:
    def read(positions: Sequence[int]) -> list[tuple[int, NDArray[np.uint8] | ImageError]]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(read_squares([Group(range(3), read)], bands=3, size=SIZE, batch_size=5))


def test_the_next_value_is_computed_while_one_is_in_use() -> None:
    begun = [threading.Event() for _ in range(4)]

    def numbers() -> Generator[int]:
        for number, event in enumerate(begun):
            event.set()
            yield number

    values = ahead(numbers())
    assert next(values) == 0
    assert begun[1].wait(30)  # nobody has asked for it
    assert [*values] == [1, 2, 3]


def test_an_error_comes_in_its_turn_and_what_is_left_early_is_closed() -> None:
    closed = []

    def numbers() -> Generator[int]:
        try:
            yield 0
            yield 1
            raise ZeroDivisionError
        finally:
            closed.append(True)

    values = ahead(numbers())
    assert [next(values), next(values)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(values)
    assert closed == [True]
    early = ahead(numbers())
    next(early)
    early.close()
    assert closed == [True, True]
