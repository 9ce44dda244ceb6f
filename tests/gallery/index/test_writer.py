"""Chips into a gallery: embedded as the network embeds them, none twice, none lost, and what is broken is listed."""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
import shutil
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import rasterio
import torch
from numpy.typing import NDArray
from PIL import Image
from tests.chips.layouts import save_image

from lookdown.chips.manifest import Manifest
from lookdown.chips.pixels import letterbox, read_chip
from lookdown.gallery import Cutting, Gallery
from lookdown.gallery.index import writer
from lookdown.gallery.index.sources import ChipGroup, chip_groups
from lookdown.gallery.index.vectors import add_vectors
from lookdown.gallery.index.writer import AddReport, ChipRegistry, add_chips, note_skipped
from lookdown.gallery.search.searcher_cache import read_lists, write_lists
from lookdown.gallery.store.table import ChipTable, TableLocation
from lookdown.networks import Embedder
from lookdown.progress import no_progress

Calls = list[tuple[int, int]]


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder("test_resnet", size=32, weights="none", dimension=8)


@pytest.fixture
def gallery(tmp_path: Path, embedder: Embedder) -> Gallery:
    return Gallery.create(tmp_path / "gallery", embedder)


def small(path: Path, seed: int = 0, size: tuple[int, int] = (24, 20)) -> Path:
    save_image(path, seed, size)
    return path


def archive(folder: Path, count: int, seed: int = 0) -> list[Path]:
    return [small(folder / f"{place:02d}.png", seed + place) for place in range(count)]


def scene(path: Path, side: int = 130) -> NDArray[np.uint8]:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(side).integers(0, 256, (side, side, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


def tiff(path: Path, bands: int, side: int = 20) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.random.default_rng(bands).integers(0, 256, (bands, side, side), dtype=np.uint8)
    place = {"crs": "EPSG:32631", "transform": rasterio.Affine(10, 0, 500_000, 0, -10, 5_000_000)}
    shape = {"count": bands, "height": side, "width": side, "dtype": "uint8"}
    with rasterio.open(path, "w", driver="GTiff", **shape, **place) as file:
        file.write(values)


def png_that_claims(path: Path, width: int, height: int) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(bytes(1000))), chunk(b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def ids(gallery: Gallery) -> list[str]:
    return list(gallery.snapshot.ids.to_pylist())


def stored(gallery: Gallery, names: Sequence[str]) -> NDArray[np.float32]:
    rows = gallery.snapshot.find(names)
    assert (rows >= 0).all(), names
    return gallery.snapshot.embeddings(rows)


def listed(gallery: Gallery) -> dict[str, str]:
    with (gallery.path / "skipped.csv").open(newline="", encoding="utf-8") as lines:
        return {row["item"]: row["reason"] for row in csv.DictReader(lines)}


def by_name(skipped: dict[str, str]) -> dict[str, str]:
    """Return what was left out by the names of the files, whichever folder they are said to be in."""
    return {Path(item).name: reason for item, reason in skipped.items()}


def counts(added: AddReport) -> tuple[int, int, int]:
    return added.added, added.present, len(added.skipped)


# What is stored


def test_stored_embeddings_are_those_of_the_network(tmp_path: Path, gallery: Gallery, embedder: Embedder) -> None:
    paths = [small(tmp_path / "a" / f"{place}.png", place, (20 + place, 50)) for place in range(9)]
    Image.fromarray(np.full((9, 9), 77, np.uint8)).save(tmp_path / "a" / "grey.png")
    paths.append(tmp_path / "a" / "grey.png")
    assert counts(gallery.add(tmp_path / "a")) == (10, 0, 0)
    assert ids(gallery) == [f"a/{path.name}" for path in paths]
    expected = embedder.embed_chips(paths)
    assert not expected.skipped
    np.testing.assert_allclose(gallery.snapshot.embeddings(), expected.embeddings, rtol=1e-4, atol=1e-5)
    assert len(np.unique(expected.embeddings.round(3), axis=0)) == 10  # so that no two could be exchanged


def test_windows_are_embedded_as_what_they_show(tmp_path: Path, gallery: Gallery, embedder: Embedder) -> None:
    pixels = scene(tmp_path / "a" / "s.png")
    cutting = Cutting(windows=(64, 40), strides=(66, 45), scene_side=100)
    assert counts(gallery.add(tmp_path / "a", cutting=cutting)) == (4 + 9, 0, 0)
    for name in ids(gallery):
        x0, y0, x1, y1 = (int(number) for number in name.partition(":")[2].split(","))
        square = letterbox(pixels[y0:y1, x0:x1], 32).transpose(2, 0, 1)[None]
        np.testing.assert_allclose(stored(gallery, [name]), embedder.embed(square), rtol=1e-4, atol=1e-5)


def test_thumbnails_are_small_jpegs_of_the_chips(tmp_path: Path, gallery: Gallery) -> None:
    small(tmp_path / "a" / "small.png", 1, (24, 20))
    small(tmp_path / "a" / "wide.png", 2, (400, 100))
    tiff(tmp_path / "a" / "tiff.tif", 3)
    gallery.add(tmp_path / "a")
    sizes = {}
    for row in gallery.snapshot.read(np.arange(3), ["id", "source", "thumbnail"]):
        image = Image.open(io.BytesIO(row["thumbnail"]))
        assert image.format == "JPEG"
        sizes[row["id"]] = image.size
        shown = read_chip(Path(row["source"])).mean((0, 1))
        np.testing.assert_allclose(np.asarray(image).mean((0, 1)), shown, atol=4)
    assert sizes == {"a/small.png": (24, 20), "a/wide.png": (96, 24), "a/tiff.tif": (20, 20)}


def test_a_small_jpeg_is_its_own_thumbnail_without_what_was_noted_in_it(tmp_path: Path, gallery: Gallery) -> None:
    exif = Image.Exif()
    exif[0x010E] = "taken from my balcony"
    for name, size in (("small.jpg", (100, 60)), ("large.jpg", (300, 60))):
        small(tmp_path / "a" / name, 3, size)
        with Image.open(tmp_path / "a" / name) as image:
            image.copy().save(tmp_path / "a" / name, exif=exif, quality=80)
    gallery.add(tmp_path / "a")
    large, own = gallery.snapshot.read(np.arange(2), ["source", "thumbnail"])
    with Image.open(io.BytesIO(own["thumbnail"])) as image:
        np.testing.assert_array_equal(np.asarray(image), read_chip(Path(own["source"])))
    assert b"balcony" in Path(own["source"]).read_bytes()
    assert b"balcony" not in own["thumbnail"]
    with Image.open(io.BytesIO(large["thumbnail"])) as image:
        assert image.size == (96, 19)


def test_a_large_jpeg_is_embedded_as_a_query_of_it_is(tmp_path: Path, gallery: Gallery) -> None:
    for place in range(3):
        small(tmp_path / "a" / f"{place}.jpg", place, (400, 256))
    gallery.add(tmp_path / "a")
    (best,) = gallery.search(tmp_path / "a" / "1.jpg", k=1).hits
    assert (best.id, round(best.score, 5)) == ("a/1.jpg", 1)


def test_places_classes_times_and_sensors_reach_the_table(tmp_path: Path, gallery: Gallery) -> None:
    tiff(small(tmp_path / "a" / "tanker" / "1.png").with_name("2.tif"), 3)
    small(tmp_path / "a" / "background" / "3.png")
    gallery.add(tmp_path / "a", cutting=Cutting(classes=True, time="2021-06-01", sensor="S2A"))
    found = gallery.stats()
    assert (found.chips, found.labelled, found.background, found.placed, found.marked) == (3, 2, 1, 1, 0)
    assert found.sensors == ("S2A",)
    assert str(found.first_time).startswith("2021-06-01")
    (row,) = gallery.snapshot.read(gallery.snapshot.find(["a/tanker/2.tif"]), ["footprint", "gsd", "label", "west"])
    assert row["footprint"].startswith("POLYGON ((3.0")
    assert (row["gsd"], row["label"], round(row["west"], 4)) == (10, "tanker", 3.0)


# Once and no more


def test_adding_twice_adds_once(tmp_path: Path, gallery: Gallery) -> None:
    archive(tmp_path / "a", 7)
    scene(tmp_path / "a" / "s.png", 600)
    cutting = Cutting(strides=(300,))
    first = gallery.add([tmp_path / "a"], cutting=cutting)
    assert counts(first) == (7 + 9, 0, 0)
    before, version = gallery.snapshot.embeddings(), gallery.snapshot.version
    assert counts(gallery.add(str(tmp_path / "a"), cutting=cutting)) == (0, 16, 0)
    assert counts(gallery.add([tmp_path / "a", tmp_path / "a"], cutting=cutting)) == (0, 32, 0)
    assert gallery.snapshot.version == version  # nothing was written
    np.testing.assert_array_equal(gallery.snapshot.embeddings(), before)
    small(tmp_path / "a" / "new.png", 99)
    assert counts(gallery.add(tmp_path / "a", cutting=cutting)) == (1, 16, 0)


def test_the_same_folder_twice_in_one_call_is_one(tmp_path: Path, gallery: Gallery) -> None:
    archive(tmp_path / "a", 3)
    assert counts(gallery.add([tmp_path / "a", tmp_path / "a"])) == (3, 3, 0)


def test_two_files_of_one_name_both_get_in(tmp_path: Path, gallery: Gallery, embedder: Embedder) -> None:
    first, second = archive(tmp_path / "2021" / "ships", 2), archive(tmp_path / "2022" / "ships", 2, seed=50)
    given = [tmp_path / "2021" / "ships", tmp_path / "2022" / "ships"]
    assert counts(gallery.add(given)) == (4, 0, 0)
    names = ids(gallery)
    assert names[:2] == ["ships/00.png", "ships/01.png"]
    assert all(re.fullmatch(rf"ships/0{place}\.png#[0-9a-f]{{8}}", name) for place, name in enumerate(names[2:]))
    assert gallery.snapshot.texts("source") == [str(path) for path in (*first, *second)]
    np.testing.assert_allclose(gallery.snapshot.embeddings(), embedder.embed([*first, *second]), rtol=1e-4, atol=1e-5)
    for again in (given, given[::-1], given[1:], given[:1]):
        assert counts(gallery.add(again)) == (0, 2 * len(again), 0)
    assert ids(gallery) == names


def test_scenes_of_one_name_both_get_in(tmp_path: Path, gallery: Gallery) -> None:
    cutting = Cutting(scene_side=100)
    for year in ("2021", "2022"):
        scene(tmp_path / year / "s.png")
    assert counts(gallery.add([tmp_path / "2021" / "s.png"], cutting=cutting)) == (16, 0, 0)
    assert counts(gallery.add([tmp_path / "2022" / "s.png"], cutting=cutting)) == (16, 0, 0)
    assert counts(gallery.add([tmp_path / "2022" / "s.png"], cutting=cutting)) == (0, 16, 0)


def test_an_archive_that_was_moved_is_not_added_again(tmp_path: Path, gallery: Gallery) -> None:
    archive(tmp_path / "old" / "ships", 3)
    gallery.add(tmp_path / "old" / "ships")
    shutil.move(tmp_path / "old", tmp_path / "new")
    small(tmp_path / "new" / "ships" / "new.png", 70)
    assert counts(gallery.add(tmp_path / "new" / "ships")) == (1, 3, 0)
    assert len(gallery) == 4


def test_hits_of_an_archive_that_was_moved_name_files_that_are_there(tmp_path: Path, gallery: Gallery) -> None:
    archive(tmp_path / "old" / "ships", 2)
    gallery.add(tmp_path / "old" / "ships")
    shutil.move(tmp_path / "old", tmp_path / "new")
    gallery.add(tmp_path / "new" / "ships")
    assert all(Path(source or "").is_file() for source in gallery.snapshot.texts("source"))


@pytest.mark.parametrize("way", ["a folder, then the one above", "an image, then its folder", "dots", "a link"])
def test_a_file_is_added_once_by_whichever_way_it_is_reached(tmp_path: Path, gallery: Gallery, way: str) -> None:
    small(tmp_path / "a" / "ships" / "1.png")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "ships").symlink_to(tmp_path / "a" / "ships")
    first, second = {
        "a folder, then the one above": (tmp_path / "a" / "ships", tmp_path / "a"),
        "an image, then its folder": (tmp_path / "a" / "ships" / "1.png", tmp_path / "a" / "ships"),
        "dots": (tmp_path / "a" / "ships", tmp_path / "link" / ".." / "a" / "ships"),
        "a link": (tmp_path / "a" / "ships", tmp_path / "link" / "ships"),
    }[way]
    assert counts(gallery.add(first)) == (1, 0, 0)
    assert counts(gallery.add(second)) == (0, 1, 0)


def test_the_second_file_of_a_name_is_not_added_again_when_the_first_was_removed(
    tmp_path: Path, gallery: Gallery
) -> None:
    for year in ("2021", "2022"):
        small(tmp_path / year / "1.png", int(year))
        gallery.add(tmp_path / year / "1.png")
    gallery.remove(["1.png"])
    assert counts(gallery.add(tmp_path / "2022" / "1.png")) == (0, 1, 0)


def chips_of_manifest(folder: Path, count: int, seed: int = 0) -> Manifest:
    rows = [
        {"id": f"chip {place}", "path": path.name, "scene": "s", "scene_group": "s", "role": "gallery"}
        | {"background": False, "label": "tanker"}
        for place, path in enumerate(archive(folder, count, seed))
    ]
    return Manifest.of_rows(rows, folder)


def test_a_manifest_whose_files_are_missing_is_added_without_them(tmp_path: Path, gallery: Gallery) -> None:
    manifest = chips_of_manifest(tmp_path / "a", 4)
    manifest.paths[2].unlink()
    added = gallery.add(manifest)
    assert counts(added) == (3, 0, 1)
    (reason,) = added.skipped.values()
    assert "02.png: there is no such file" in reason
    assert gallery.stats().labelled == 3
    assert counts(gallery.add(manifest)) == (0, 3, 1)


def test_another_chip_by_the_same_id_in_another_manifest_is_not_lost_silently(tmp_path: Path, gallery: Gallery) -> None:
    gallery.add(chips_of_manifest(tmp_path / "a", 2))
    added = gallery.add(chips_of_manifest(tmp_path / "b", 2, seed=50))
    assert added.present == 0
    assert added.added + len(added.skipped) == 2


# What is broken


def broken(folder: Path) -> dict[str, str]:
    """Write files of every kind of damage, and return the words that tell it."""
    for name in ("cut.jpg", "cut.tif", "cut.png"):
        cut_short(small(folder / name, 7, (64, 64)))
    (folder / "empty.jpg").touch()
    (folder / "text.png").write_text("this is not a ship")
    (folder / "text.tif").write_text("this is not a ship")
    (folder / "drawing.png").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n")
    png_that_claims(folder / "bomb.png", 100_000, 100_000)
    png_that_claims(folder / "nothing.png", 0, 0)
    tiff(folder / "two.tif", 2)
    tiff(folder / "many.tif", 12)
    Image.new("RGB", (20, 20)).save(folder / "really a png.tif", "PNG")
    return {
        "cut.jpg": "cut.jpg: cannot be read",
        "cut.png": "cut.png: cannot be read",
        "cut.tif": "cut.tif is damaged or truncated",
        "empty.jpg": "the file is empty; copy or download it again",
        "text.png": "not an image of a known kind",
        "text.tif": "is not a GeoTIFF",
        "drawing.png": "not an image of a known kind",
        "bomb.png": "more than 300 megapixels",
        "nothing.png": "nothing.png: ",
        "two.tif": "a/two.tif has 2 bands, this embedder takes 3; select 3 of them",
        "many.tif": "has 12 bands",
        "really a png.tif": "is not a GeoTIFF",
    }


def test_what_is_broken_is_left_out_with_the_reason_and_the_rest_is_added(tmp_path: Path, gallery: Gallery) -> None:
    paths = archive(tmp_path / "a", 5)
    words = broken(tmp_path / "a")
    added = gallery.add(tmp_path / "a")
    assert counts(added) == (5, 0, len(words))
    assert set(ids(gallery)) == {f"a/{path.name}" for path in paths}
    found = by_name(added.skipped)
    assert set(found) == set(words)
    for name, told in words.items():
        assert told in found[name]
    assert listed(gallery) == added.skipped
    assert counts(gallery.add(tmp_path / "a")) == (0, 5, len(words))
    assert listed(gallery) == added.skipped


def test_what_is_repaired_is_added_and_no_longer_listed(tmp_path: Path, gallery: Gallery) -> None:
    archive(tmp_path / "a", 2)
    words = broken(tmp_path / "a")
    gallery.add(tmp_path / "a")
    for place, name in enumerate(sorted(words)[:-1]):
        small(tmp_path / "a" / name, 100 + place)
    last = max(words)
    added = gallery.add(tmp_path / "a")
    assert counts(added) == (len(words) - 1, 2, 1)
    assert list(by_name(added.skipped)) == [last]
    assert listed(gallery) == added.skipped
    small(tmp_path / "b" / "1.png")
    gallery.add(tmp_path / "b")
    assert listed(gallery) == added.skipped  # what was said of other folders stays
    small(tmp_path / "a" / last)
    gallery.add(tmp_path / "a")
    assert (gallery.path / "skipped.csv").read_text().splitlines() == ["item,reason"]


def test_nothing_broken_writes_no_list(tmp_path: Path, gallery: Gallery) -> None:
    archive(tmp_path / "a", 2)
    gallery.add(tmp_path / "a")
    assert not (gallery.path / "skipped.csv").exists()


def test_an_archive_of_broken_files_alone_adds_nothing(tmp_path: Path, gallery: Gallery) -> None:
    (tmp_path / "a").mkdir()
    words = broken(tmp_path / "a")
    assert counts(gallery.add(tmp_path / "a")) == (0, 0, len(words))
    assert len(gallery) == 0


def test_a_scene_that_is_repaired_is_no_longer_listed(tmp_path: Path, gallery: Gallery) -> None:
    scene(tmp_path / "a" / "s.png")
    cut_short(tmp_path / "a" / "s.png")
    cutting = Cutting(scene_side=100)
    assert counts(gallery.add(tmp_path / "a", cutting=cutting)) == (0, 0, 1)
    scene(tmp_path / "a" / "s.png")
    assert counts(gallery.add(tmp_path / "a", cutting=cutting)) == (16, 0, 0)
    assert listed(gallery) == {}


def test_a_scene_with_other_bands_is_listed_once(tmp_path: Path, gallery: Gallery) -> None:
    tiff(tmp_path / "a" / "s.tif", 5, side=130)
    added = gallery.add(tmp_path / "a", cutting=Cutting(scene_side=100))
    assert any("has 5 bands" in reason for reason in added.skipped.values())
    assert len(listed(gallery)) == 1


def test_a_broken_file_stays_listed_when_another_of_its_name_is_added(tmp_path: Path, gallery: Gallery) -> None:
    small(tmp_path / "2021" / "1.png").write_text("no image")
    small(tmp_path / "2022" / "1.png")
    added = gallery.add([tmp_path / "2021" / "1.png", tmp_path / "2022" / "1.png"])
    assert counts(added) == (1, 0, 1)
    assert len(listed(gallery)) == 1


@pytest.mark.parametrize("text", [b"item;reason\na;b\n", b"item,reason\n\xe4,b\n", b"\xef\xbb\xbfitem,reason\na,b\n"])
def test_a_list_that_a_spreadsheet_has_saved_does_not_stop_the_work(
    tmp_path: Path, gallery: Gallery, text: bytes
) -> None:
    (gallery.path / "skipped.csv").write_bytes(text)
    archive(tmp_path / "a", 2)
    assert counts(gallery.add(tmp_path / "a")) == (2, 0, 0)
    assert len(gallery) == 2


def not_text(folder: Path, name: bytes) -> Path:
    """Return a path that is no UTF-8, as archives from old systems have."""
    path = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
    try:
        path.touch()
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    return path


def test_a_file_whose_name_is_no_text_is_left_out(tmp_path: Path, gallery: Gallery) -> None:
    paths = archive(tmp_path / "a", 3)
    odd = not_text(tmp_path / "a", b"caf\xe9.png")
    shutil.copy(paths[0], odd)
    calls: Calls = []
    added = gallery.add(tmp_path / "a", progress=lambda *call: calls.append(call[:2]))
    assert by_name(added.skipped) == {r"caf\udce9.png": "its file name is not UTF-8; rename the file"}
    assert counts(added) == (3, 0, 1)
    assert calls[-1] == (4, 4)
    assert listed(gallery) == added.skipped
    odd.rename(tmp_path / "a" / "café.png")
    assert counts(gallery.add(tmp_path / "a")) == (1, 3, 0)


@pytest.mark.parametrize("damage", ["none, but open sea", "cut short"])
def test_a_scene_whose_name_is_no_text_is_left_out(tmp_path: Path, gallery: Gallery, damage: str) -> None:
    paths = archive(tmp_path / "a", 2)
    pixels = scene(tmp_path / "s.png")
    pixels[:80, :80] = 40
    Image.fromarray(pixels).save(tmp_path / "s.png")
    if damage == "cut short":
        cut_short(tmp_path / "s.png")
    shutil.move(tmp_path / "s.png", not_text(tmp_path / "a", b"caf\xe9.png"))
    added = gallery.add(tmp_path / "a", cutting=Cutting(scene_side=100))
    assert added.added == len(paths) == len(gallery)
    assert added.skipped
    assert listed(gallery) == added.skipped


def test_a_chip_without_an_embedding_is_left_out(tmp_path: Path) -> None:
    blind = Embedder("test_resnet", size=32, weights="none", dimension=8)
    with torch.no_grad():
        for parameter in blind.head.parameters():
            parameter.zero_()
    gallery = Gallery.create(tmp_path / "gallery", blind)
    archive(tmp_path / "a", 2)
    added = gallery.add(tmp_path / "a")
    assert counts(added) == (0, 0, 2)
    assert by_name(added.skipped)["00.png"] == "its embedding is zero; the network sees nothing in it"
    assert len(gallery) == 0


def test_a_network_for_one_band_takes_grey_images(tmp_path: Path) -> None:
    gallery = Gallery.create(tmp_path / "g", Embedder("test_resnet", size=32, bands=1, weights="none", dimension=8))
    (tmp_path / "a").mkdir()
    Image.fromarray(np.arange(400, dtype=np.uint8).reshape(20, 20)).save(tmp_path / "a" / "grey.png")
    assert counts(gallery.add(tmp_path / "a")) == (1, 0, 0)


# Progress, steps and interruptions


def assert_rising(calls: Calls) -> None:
    assert calls
    for before, after in itertools.pairwise(calls):
        assert before[0] <= after[0]
        assert before[1] <= after[1]
    assert all(0 <= done <= known for done, known in calls)


def many(folder: Path, count: int, kinds: int = 25) -> list[Path]:
    """Write a few images under many names."""
    images = archive(folder.with_name(f"{folder.name} of"), kinds)
    folder.mkdir()
    paths = [folder / f"{place:04d}.png" for place in range(count)]
    for place, path in enumerate(paths):
        os.link(images[place % kinds], path)
    return paths


def test_many_chips_come_in_steps(tmp_path: Path, gallery: Gallery, embedder: Embedder) -> None:
    paths = many(tmp_path / "a", 1_500)
    paths[700].unlink()
    paths[700].write_text("no image")
    calls: Calls = []
    assert counts(gallery.add(tmp_path / "a", progress=lambda *call: calls.append(call[:2]))) == (1_499, 0, 1)
    assert len(calls) == 6  # 64, 128, 256, 512, 512 and what is left
    assert_rising(calls)
    assert calls[-1] == (1_500, 1_500)
    good = [path for path in paths if path != paths[700]]
    assert ids(gallery) == [f"a/{path.name}" for path in good]
    kinds = embedder.embed(paths[:25])
    expected = kinds[[int(path.stem) % 25 for path in good]]
    np.testing.assert_allclose(gallery.snapshot.embeddings(), expected, rtol=1e-4, atol=1e-5)
    assert len(set(gallery.snapshot.keys.tolist())) == 1_499
    assert (np.diff(gallery.snapshot.keys) > 0).all()
    calls.clear()
    assert counts(gallery.add(tmp_path / "a", progress=lambda *call: calls.append(call[:2]))) == (0, 1_499, 1)
    assert_rising(calls)
    assert calls[-1] == (1_500, 1_500)


class StopError(Exception):
    """Stands for whatever ends the work in the middle."""


def test_work_that_is_stopped_goes_on_where_it_was(tmp_path: Path, gallery: Gallery) -> None:
    paths = many(tmp_path / "a", 600)

    def stop(done: int, total: int | None, unit: str) -> None:
        raise StopError

    with pytest.raises(StopError):
        gallery.add(tmp_path / "a", progress=stop)
    assert len(Gallery.open(gallery.path)) == 64  # the first step
    assert counts(gallery.add(tmp_path / "a")) == (536, 64, 0)
    assert ids(gallery) == [f"a/{path.name}" for path in paths]


def test_an_error_that_nobody_has_foreseen_keeps_the_steps_before_it(tmp_path: Path, embedder: Embedder) -> None:
    paths = many(tmp_path / "a", 600)

    def parts() -> Iterator[ChipGroup]:
        yield from chip_groups([tmp_path / "a"], Cutting())
        raise StopError

    records = ChipTable.create(TableLocation(tmp_path), 8)
    with pytest.raises(StopError):
        add_chips(records, embedder, parts(), no_progress)
    assert records.snapshot().ids.to_pylist() == [f"a/{path.name}" for path in paths[:448]]  # 64, 128, 256


class Eager:
    """Stands for a network: says when it is at work."""

    settings = SimpleNamespace(size=8, bands=3, dimension=2)

    def __init__(self) -> None:
        self.begun = [threading.Event() for _ in range(9)]
        self._number = itertools.count()

    def embed(self, squares: NDArray[np.uint8]) -> NDArray[np.float32]:
        self.begun[next(self._number)].set()
        return np.ones((len(squares), 2), np.float32)


def test_a_step_is_written_while_the_next_is_in_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_BATCH_CHIPS", 4)
    paths = archive(tmp_path / "a", 11)
    records, network = ChipTable.create(TableLocation(tmp_path / "g"), 2), Eager()
    append, steps, calls = records.append, itertools.count(1), []

    def slowly(*arguments: Any, **options: Any) -> None:
        step = next(steps)
        assert step == 3 or network.begun[step].wait(30)  # the next one, before this is written
        append(*arguments, **options)

    def progress(done: int, total: int | None, unit: str) -> None:
        calls.append((done, len(records.snapshot())))

    monkeypatch.setattr(records, "append", slowly)
    add_chips(records, network, chip_groups([tmp_path / "a"], Cutting()), progress)  # type: ignore[arg-type]
    assert calls == [(4, 4), (8, 8), (11, 11)]  # what was said to be done is there, and no more
    assert records.snapshot().ids.to_pylist() == [f"a/{path.name}" for path in paths]


@pytest.mark.parametrize("fails", [1, 2, 3])
def test_after_a_step_that_could_not_be_written_none_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    monkeypatch.setattr(writer, "_BATCH_CHIPS", 4)
    archive(tmp_path / "a", 12)
    records = ChipTable.create(TableLocation(tmp_path / "g"), 2)
    append, steps, calls = records.append, itertools.count(1), []

    def full(*arguments: Any, **options: Any) -> None:
        if next(steps) == fails:
            raise StopError
        append(*arguments, **options)

    monkeypatch.setattr(records, "append", full)
    with pytest.raises(StopError):
        add_chips(records, Eager(), chip_groups([tmp_path / "a"], Cutting()), lambda *call: calls.append(call[:2]))  # type: ignore[arg-type]
    assert len(records.snapshot()) == 4 * (fails - 1)
    assert [done for done, _ in calls] == [4 * step for step in range(1, fails)]


def test_a_network_that_fails_keeps_the_steps_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_BATCH_CHIPS", 4)
    archive(tmp_path / "a", 12)
    records, network = ChipTable.create(TableLocation(tmp_path / "g"), 2), Eager()
    embed = network.embed

    def failing(squares: NDArray[np.uint8]) -> NDArray[np.float32]:
        if network.begun[1].is_set():
            raise StopError
        return embed(squares)

    monkeypatch.setattr(network, "embed", failing)
    with pytest.raises(StopError):
        add_chips(records, network, chip_groups([tmp_path / "a"], Cutting()), no_progress)  # type: ignore[arg-type]
    assert len(records.snapshot()) == 8
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]


WITHOUT_TORCH = """
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from lookdown.gallery import Gallery
from lookdown.gallery.index.sources import Cutting, chip_groups
from lookdown.gallery.index.writer import add_chips
from lookdown.progress import no_progress

class Means:
    settings = SimpleNamespace(size=8, bands=3, dimension=3)

    def embed(self, squares):
        return squares.mean((2, 3)).astype(np.float32)

folder = Path(sys.argv[1])
gallery = Gallery.create(folder / "g", dimension=3)
add_chips(gallery._table, Means(), chip_groups([folder / "a"], Cutting()), no_progress)
gallery.refresh()
gallery.embedder = Means()
print(gallery.search(folder / "a" / "01.png", k=1).hits[0].id)
print(*({"torch", "timm", "sklearn.cluster"} & {*sys.modules}))
"""


def test_from_files_to_hits_torch_is_needed_by_the_network_alone(tmp_path: Path) -> None:
    archive(tmp_path / "a", 3)
    found = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, str(tmp_path)], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "a/01.png\n\n"), found.stderr


def test_progress_ends_where_all_is_done(tmp_path: Path, gallery: Gallery) -> None:
    archive(tmp_path / "a", 4)
    gallery.add(tmp_path / "a")
    scene(tmp_path / "a" / "s.png")
    broken(tmp_path / "a")
    small(tmp_path / "a" / "new.png")
    calls: Calls = []
    added = gallery.add(tmp_path / "a", cutting=Cutting(scene_side=100), progress=lambda *call: calls.append(call[:2]))
    assert_rising(calls)
    assert calls[-1] == (sum(counts(added)),) * 2


def test_progress_is_never_more_than_all(tmp_path: Path, gallery: Gallery) -> None:
    pixels = scene(tmp_path / "a" / "s.png")
    pixels[:80, :80] = 40  # open sea
    Image.fromarray(pixels).save(tmp_path / "a" / "s.png")
    calls: Calls = []
    gallery.add(tmp_path / "a", cutting=Cutting(scene_side=100), progress=lambda *call: calls.append(call[:2]))
    assert_rising(calls)
    assert calls[-1][0] == calls[-1][1]


def test_progress_counts_files_and_not_names(tmp_path: Path, gallery: Gallery) -> None:
    for year in ("2021", "2022"):
        small(tmp_path / year / "1.png").write_text("no image")
    calls: Calls = []
    given = [tmp_path / year / "1.png" for year in ("2021", "2022")]
    added = gallery.add(given, progress=lambda *call: calls.append(call[:2]))
    assert len(added.skipped) == 2
    assert calls[-1] == (2, 2)


# Labels and numbers


def test_labels_that_were_marked_survive(tmp_path: Path, gallery: Gallery) -> None:
    for kind in ("tanker", "ferry"):
        archive(tmp_path / "a" / kind, 2)
    gallery.add(tmp_path / "a", cutting=Cutting(classes=True))
    gallery.label(["a/ferry/00.png"], ["yacht"], background=["a/tanker/01.png"])
    before = gallery.snapshot.read(np.arange(4), ["id", "label", "background", "marked"])
    small(tmp_path / "a" / "ferry" / "new.png", 9)
    assert counts(gallery.add(tmp_path / "a", cutting=Cutting(classes=True))) == (1, 4, 0)
    after = {row["id"]: row for row in gallery.snapshot.read(np.arange(5), ["id", "label", "background", "marked"])}
    for row in before:
        assert after[row["id"]] == row
    assert (after["a/ferry/00.png"]["label"], after["a/ferry/00.png"]["marked"]) == ("yacht", True)
    assert after["a/tanker/01.png"]["background"]
    assert after["a/ferry/new.png"]["label"] == "ferry"


def test_what_was_removed_is_added_again_under_a_new_number(tmp_path: Path, gallery: Gallery) -> None:
    archive(tmp_path / "a", 6)
    gallery.add(tmp_path / "a")
    first = dict(zip(ids(gallery), gallery.snapshot.keys.tolist(), strict=True))
    gallery.remove(["a/01.png", "a/03.png"])
    assert counts(gallery.add(tmp_path / "a")) == (2, 4, 0)
    second = dict(zip(ids(gallery), gallery.snapshot.keys.tolist(), strict=True))
    assert len(set(second.values())) == 6
    for name, key in second.items():
        assert (key == first[name]) == (name not in ("a/01.png", "a/03.png"))


def test_numbers_are_never_given_twice(tmp_path: Path, gallery: Gallery) -> None:
    archive(tmp_path / "a", 4)
    gallery.add(tmp_path / "a")
    given = set(gallery.snapshot.keys.tolist())
    for _ in range(2):
        gallery.remove(["a/03.png"])
        small(tmp_path / "a" / "03.png", 80)
        gallery.add(tmp_path / "a")
        (key,) = gallery.snapshot.keys[gallery.snapshot.find(["a/03.png"])].tolist()
        assert key not in given
        given.add(key)


def test_a_new_chip_is_in_no_list_of_the_index_yet(tmp_path: Path, gallery: Gallery) -> None:
    archive(tmp_path / "a", 4)
    gallery.add(tmp_path / "a")
    file = tmp_path / "index" / "lists.safetensors"
    write_lists(file, gallery.snapshot.keys, np.array([0, 1, 2, 3], np.int32))
    gallery.remove(["a/03.png"])
    gallery.add(small(tmp_path / "other.png", 90))
    found = read_lists(file, gallery.snapshot.keys)
    assert found is not None
    assert found[gallery.snapshot.find(["other.png"])].tolist() == [-1]


# Vectors from elsewhere


def test_the_list_keeps_any_text(tmp_path: Path) -> None:
    records = ChipTable.create(TableLocation(tmp_path), 2)
    file = tmp_path / "skipped.csv"
    skipped = {'a, "b"': "x; y", "two\nlines": "r\r\nn", "船.png": "", "=1+1": "'"}
    note_skipped(file, skipped, records)
    with file.open(newline="", encoding="utf-8") as lines:
        assert [*csv.reader(lines)] == [["item", "reason"], *([item, reason] for item, reason in skipped.items())]
    written = file.stat().st_mtime_ns
    note_skipped(file, {}, records)
    assert file.stat().st_mtime_ns == written  # nothing new, nothing written
    note_skipped(file, {"船.png": "now for another reason"}, records)
    add_vectors(records, [{"id": "two\nlines", "source": "two\nlines"}], np.ones((1, 2)), 2)
    note_skipped(file, {}, records)
    with file.open(newline="", encoding="utf-8") as lines:
        found = {row["item"]: row["reason"] for row in csv.DictReader(lines)}
    assert found == {'a, "b"': "x; y", "船.png": "now for another reason", "=1+1": "'"}


def row(name: str, source: Path | str, polygon: str | None = None) -> dict[str, Any]:
    return {"id": name, "source": str(source), "polygon": polygon, "scene": "s", "scene_group": "s"} | {
        "background": False,
        "thumbnail": b"",
    }


@pytest.fixture
def records(tmp_path: Path) -> ChipTable:
    made = ChipTable.create(TableLocation(tmp_path / "g"), 2)
    (tmp_path / "1.png").write_text("one")
    made.append([row("1.png", tmp_path / "1.png")], np.ones((1, 2), np.float32), first_key=7)
    return made


def test_what_is_there_is_not_new_by_its_place_whatever_it_is_called(records: ChipTable, tmp_path: Path) -> None:
    known = ChipRegistry(records)
    assert not known.add(row("1.png", tmp_path / "1.png"), named_by_path=True)
    assert not known.add(row("folder/1.png", tmp_path / "1.png"), named_by_path=True)
    assert known.add(row("1.png:0,0,9,9", tmp_path / "1.png", "POLYGON ((0 0, 9 9, 0 9, 0 0))"), named_by_path=True)


def test_another_file_of_the_name_gets_a_mark_and_the_same_mark_again(records: ChipTable, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "1.png").write_text("another")
    names = []
    for _ in range(2):
        other = row("1.png", tmp_path / "other" / "1.png")
        assert ChipRegistry(records).add(other, named_by_path=True)
        names.append(other["id"])
    assert names[0] == names[1]
    assert names[0].startswith("1.png#")


def test_a_file_that_is_gone_was_moved(records: ChipTable, tmp_path: Path) -> None:
    (tmp_path / "1.png").rename(tmp_path / "2.png")
    known = ChipRegistry(records)
    assert not known.add(row("1.png", tmp_path / "2.png"), named_by_path=True)
    assert known.moved == {"1.png": str(tmp_path / "2.png")}


def test_a_copy_of_a_chip_of_a_manifest_is_the_same_chip(records: ChipTable, tmp_path: Path) -> None:
    (tmp_path / "copy.png").write_text("one")
    assert not ChipRegistry(records).add(row("1.png", tmp_path / "copy.png"), named_by_path=False)
    assert ChipRegistry(records).add(row("1.png", tmp_path / "copy.png"), named_by_path=True)


def test_what_was_forgotten_is_new_again(records: ChipTable, tmp_path: Path) -> None:
    known = ChipRegistry(records)
    broken = row("2.png", tmp_path / "2.png")
    assert known.add(broken, named_by_path=True)
    known.forget(broken)
    assert known.add(broken, named_by_path=True)


def test_numbers_begin_above_all_that_were_given(records: ChipTable) -> None:
    first = ChipRegistry(records).next_key
    assert first > 7
    records.remove(np.array([7]))
    assert ChipRegistry(records).next_key > first
