"""Files good and bad become batches; every image here is made by its test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import DataLoader

from lookdown.chips.batches import Batch, ChipDataset, chip_batches
from lookdown.chips.reading import letterbox, read_chip
from lookdown.errors import InputError

# Python 3.12 and later warn of any fork of a process with threads, and torch has threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def some_pixels(h: int, w: int, bands: int = 3, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (h, w, bands), dtype=np.uint8)


def saved(path: Path, pixels: NDArray[np.uint8]) -> Path:
    Image.fromarray(pixels).save(path)
    return path


def some_chips(folder: Path, count: int) -> list[Path]:
    return [saved(folder / f"{i}.png", some_pixels(10 + i, 20, seed=i)) for i in range(count)]


def assert_equal_batches(found: Sequence[Batch], expected: Sequence[Batch]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert torch.equal(a.indices, b.indices)
        assert torch.equal(a.images, b.images)
        assert a.problems == b.problems


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


def test_chips_are_read_as_a_gallery_reads_them(tmp_path: Path) -> None:
    path = saved(tmp_path / "large.jpg", some_pixels(400, 200))
    expected = letterbox(read_chip(path, side=32), 32)
    np.testing.assert_array_equal(ChipDataset([path], size=32)[0].image.permute(1, 2, 0).numpy(), expected)
    assert (expected != letterbox(read_chip(path), 32)).any()  # a half of it was decoded


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
