"""Any kind of images comes out as the same batches, or is refused with a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from lookdown.chips.manifest import Manifest
from lookdown.chips.reading import letterbox
from lookdown.errors import InputError
from lookdown.networks.image_batches import ImageBatches

PIXELS = np.random.default_rng(0).integers(0, 256, (7, 3, 16, 16), dtype=np.uint8)


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


def batches_of(images: Any, batch_size: int = 3) -> ImageBatches:
    return ImageBatches(images, bands=3, size=16, batch_size=batch_size)


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
        batches = batches_of(images)
        assert batches.total == 7
        found = list(batches)
        assert [batch.indices.tolist() for batch in found] == [[0, 1, 2], [3, 4, 5], [6]]
        assert np.array_equal(np.concatenate([batch.images for batch in found]), PIXELS)
        assert batches.skipped == {}


def test_files_are_letterboxed_and_bad_ones_skipped(tmp_path: Path) -> None:
    paths = as_files(tmp_path)
    wide = PIXELS[1, :, :9].transpose(1, 2, 0)
    Image.fromarray(wide).save(paths[1])
    paths[4].write_text("no image")
    batches = batches_of(paths)
    found = list(batches)
    assert np.concatenate([batch.indices for batch in found]).tolist() == [0, 1, 2, 3, 5, 6]
    assert list(batches.skipped) == [4]
    assert "4.png" in batches.skipped[4]
    np.testing.assert_array_equal(np.asarray(found[0].images[1]).transpose(1, 2, 0), letterbox(wide, 16))


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
        batches_of(images)


def test_a_batch_size_below_one_is_refused() -> None:
    with pytest.raises(InputError, match="batch_size must be a whole number of at least 1, got 0"):
        batches_of(PIXELS, batch_size=0)


def test_files_with_other_bands_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "four.npy", np.zeros((5, 5, 4), np.uint8))
    with pytest.raises(InputError, match=r"four\.npy has 4 bands, this embedder takes 3"):
        list(batches_of([tmp_path / "four.npy"]))
