"""Galleries for a run and for a pretrained network: made, opened again, and refused where networks differ."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.chips.layouts import save_image
from tests.training.runs import recipe, world

from lookdown.chips.manifest import Manifest
from lookdown.errors import GalleryError, InputError, LookdownError, OutputError, SourceError
from lookdown.gallery import Cutting, Gallery
from lookdown.gallery.index.creation import _sampled, gallery_of_pretrained, gallery_of_run, is_run
from lookdown.gallery.index.sources import chip_groups
from lookdown.metrics import load_metric
from lookdown.networks import Embedder
from lookdown.training.train import train

LITE0 = "tf_efficientnet_lite0"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; nobody writes to it."""
    short = recipe(network={"backbone": "test_resnet"}, stage1={"epochs": 1}, stage2={"epochs": 1})
    return train(short, tmp_path_factory.mktemp("runs") / "ships").path


def archive(folder: Path, count: int) -> Path:
    for place in range(count):
        save_image(folder / f"{place:03d}.png", place, (40, 32))
    return folder


def test_one_call_makes_a_gallery_and_fills_it_and_the_same_call_adds_what_is_new(tmp_path: Path, run: Path) -> None:
    images = archive(tmp_path / "images", 8)
    told: list[int] = []
    gallery = Gallery.from_images(
        tmp_path / "g", images, dimension=4, progress=lambda done, total, unit: told.append(done)
    )
    assert gallery.snapshot.ids.to_pylist() == [f"images/{place:03d}.png" for place in range(8)]
    assert told
    archive(tmp_path / "images", 9)
    assert len(Gallery.from_images(str(tmp_path / "g"), [str(images)], dimension=4)) == 9
    assert gallery.search(images / "003.png", k=1).hits[0].id == "images/003.png"
    assert len(Gallery.from_run(tmp_path / "of a run", run)) == 0
    assert len(Gallery.from_run(str(tmp_path / "of a run"), str(run), images)) == 9


# Of a run


def test_a_gallery_of_a_run_has_its_network_and_its_metric(tmp_path: Path, run: Path) -> None:
    assert is_run(run)
    gallery = gallery_of_run(tmp_path / "g", run)
    embedder = Embedder.load(run / "embedder")
    assert gallery.stats().embedder == embedder.fingerprint
    assert len(gallery) == 0
    assert {metric.about for metric in gallery.metrics()} == {"trained in ships"}
    better = (run / "metric_in_use").read_text().strip()
    assert gallery.metric == {"metric": "1-trained", "kinds": "2-kinds"}[better]
    added = gallery.add(world())
    manifest = Manifest.read(world()).with_role("gallery")
    assert added.added == len(manifest) == len(gallery)
    expected = embedder.embed(manifest.paths)
    np.testing.assert_allclose(gallery.snapshot.embeddings(), expected, rtol=1e-4, atol=1e-4)
    scores = load_metric(run / better).score(expected[:1], expected)[0]
    found = gallery.search(str(manifest.table["id"][0]), k=5, overlap=1)
    np.testing.assert_allclose([hit.score for hit in found.hits], np.sort(scores[1:])[::-1][:5], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("better", "names"), [("metric", ["1-trained"]), ("kinds", ["1-trained", "2-kinds"])])
def test_a_gallery_begins_with_the_metric_that_found_the_held_out_chips_better(
    better: str, names: list[str], tmp_path: Path, run: Path
) -> None:
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "metric_in_use").write_text(better)
    gallery = gallery_of_run(tmp_path / "g", tmp_path / "run")
    assert [metric.name for metric in gallery.metrics()] == names
    assert gallery.metric == names[-1]
    assert all(metric.calibrated for metric in gallery.metrics())


def test_a_gallery_of_the_same_run_is_opened(tmp_path: Path, run: Path) -> None:
    gallery_of_run(tmp_path / "g", run).add(archive(tmp_path / "a", 2))
    shutil.copytree(run, tmp_path / "copy of it")
    for same in (run, tmp_path / "copy of it"):
        assert len(gallery_of_run(tmp_path / "g", same)) == 2
    assert [metric.name for metric in Gallery.open(tmp_path / "g").metrics()].count("1-trained") == 1


def test_an_unfinished_run_is_refused_and_leaves_nothing(tmp_path: Path, run: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "metric" / "metric.json").unlink()
    assert is_run(tmp_path / "run")
    with pytest.raises(GalleryError, match=r"run is not finished; continue with `lookdown train --resume .*run`"):
        gallery_of_run(tmp_path / "g", tmp_path / "run")
    assert not (tmp_path / "g").exists()


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    archive(tmp_path / "a", 1)
    for path in (tmp_path / "a", tmp_path / "gone", tmp_path / "a" / "000.png"):
        assert not is_run(path)
        with pytest.raises(OutputError, match="is not a run of `lookdown train`"):
            gallery_of_run(tmp_path / "g", path)
    assert not (tmp_path / "g").exists()


def test_a_gallery_of_another_network_is_refused(tmp_path: Path, run: Path) -> None:
    settings = Embedder.load(run / "embedder").settings
    other = Embedder(settings.backbone, size=settings.size, dimension=settings.dimension, weights="none", seed=9)
    Gallery.create(tmp_path / "other", other)
    Gallery.create(tmp_path / "vectors", dimension=settings.dimension)
    for name in ("other", "vectors"):
        with pytest.raises(GalleryError, match=rf"{name} was made with another embedder than that of .*ships.*; name"):
            gallery_of_run(tmp_path / name, run)


def test_a_folder_with_other_things_is_refused(tmp_path: Path, run: Path) -> None:
    archive(tmp_path / "a", 1)
    with pytest.raises(GalleryError, match=r"holds other things \(000\.png\); name another folder"):
        gallery_of_run(tmp_path / "a", run)


# Of a pretrained network


@pytest.fixture(scope="module")
def twenty(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    """A gallery fitted to twenty images, and not added to."""
    folder = tmp_path_factory.mktemp("pretrained")
    archive(folder / "a", 20)
    calls: list[tuple[Any, ...]] = []
    made = gallery_of_pretrained(
        folder / "g", LITE0, [folder / "a"], Cutting(), progress=lambda *call: calls.append(call)
    )
    assert calls[-1] == (20, 20, "chips")
    return made


def test_a_few_images_are_enough_to_begin_with(tmp_path: Path, twenty: Gallery) -> None:
    assert twenty.stats().dimension == 19  # no more directions than the images can span
    assert twenty.stats().metric == "1-cosine"
    assert twenty.metrics()[0].about == f"the cosine, on {LITE0} as it came"
    assert len(twenty) == 0
    three = gallery_of_pretrained(tmp_path / "g", LITE0, [archive(tmp_path / "b", 3)], Cutting())
    assert three.stats().dimension == 2
    assert three.add(tmp_path / "b").added == 3


def test_it_is_the_network_fitted_to_the_same_images(twenty: Gallery) -> None:
    paths = sorted((twenty.path.parent / "a").iterdir())
    expected = Embedder.pretrained(LITE0, paths, dimension=19)
    assert twenty.stats().embedder == expected.fingerprint


def test_the_same_images_give_the_same_network(tmp_path: Path, twenty: Gallery) -> None:
    shutil.copytree(twenty.path.parent / "a", tmp_path / "elsewhere" / "a")
    again = gallery_of_pretrained(tmp_path / "g", LITE0, [tmp_path / "elsewhere" / "a"], Cutting())
    assert again.stats().embedder == twenty.stats().embedder


def test_the_dimension_can_be_chosen(tmp_path: Path, twenty: Gallery) -> None:
    archived = twenty.path.parent / "a"
    assert gallery_of_pretrained(tmp_path / "g", LITE0, [archived], Cutting(), dimension=5).stats().dimension == 5
    with pytest.raises(InputError, match="dimension must be a whole number from 1"):
        gallery_of_pretrained(tmp_path / "h", LITE0, [archived], Cutting(), dimension=0)
    assert not (tmp_path / "h").exists()


def test_it_is_opened_again_whatever_the_images(tmp_path: Path, twenty: Gallery) -> None:
    for name in (LITE0, f"{LITE0}.in1k"):  # the tag of the weights is no other network
        again = gallery_of_pretrained(twenty.path, name, [tmp_path / "not looked at"], Cutting(), dimension=7)
        assert again.stats().embedder == twenty.stats().embedder


def test_another_network_is_refused(tmp_path: Path, twenty: Gallery) -> None:
    words = rf"made with the embedder {LITE0}, not resnet18; omit `embedder` to add to it, or name another folder"
    with pytest.raises(GalleryError, match=words):
        gallery_of_pretrained(twenty.path, "resnet18", [tmp_path], Cutting())
    Gallery.create(tmp_path / "vectors", dimension=3)
    with pytest.raises(GalleryError, match=f"not {LITE0}"):
        gallery_of_pretrained(tmp_path / "vectors", LITE0, [tmp_path], Cutting())


def test_a_network_goes_by_its_short_name_too(tmp_path: Path) -> None:
    Gallery.create(tmp_path / "g", Embedder("mobilenetv2", size=32, weights="none", dimension=4))
    assert len(gallery_of_pretrained(tmp_path / "g", "mobilenetv2", [tmp_path], Cutting())) == 0


def test_what_cannot_begin_a_gallery_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    archive(tmp_path / "a", 4)
    for name in ("001.png", "002.png"):
        (tmp_path / "a" / name).write_text("no image")
    refused: list[tuple[str, Path, type[LookdownError], str]] = [
        (LITE0, tmp_path / "a", InputError, "2 images that can be read are too few to begin with; give at least three"),
        (LITE0, tmp_path / "gone", SourceError, "gone does not exist"),
        ("tf_eficientnet_lite0", archive(tmp_path / "b", 3), InputError, f"did you mean {LITE0}"),
    ]
    for backbone, images, kind, words in refused:
        with pytest.raises(kind, match=words):
            gallery_of_pretrained(tmp_path / "g", backbone, [images], Cutting())
    assert not (tmp_path / "g").exists()


def test_two_images_that_are_the_same_are_no_obstacle(tmp_path: Path) -> None:
    archive(tmp_path / "a", 5)
    shutil.copy(tmp_path / "a" / "000.png", tmp_path / "a" / "copy.png")
    assert gallery_of_pretrained(tmp_path / "g", LITE0, [tmp_path / "a"], Cutting()).stats().dimension == 4


# The images that a projection is fitted to


def test_the_sample_is_letterboxed_in_order_and_without_what_cannot_be_read(tmp_path: Path) -> None:
    archive(tmp_path / "a", 5)
    (tmp_path / "a" / "001.png").write_text("no image")
    sample = _sampled(chip_groups([tmp_path / "a"], Cutting()), 16)
    assert sample.shape == (4, 3, 16, 16)
    assert sample.dtype == np.uint8
    assert len(_sampled([], 16)) == 0


def test_a_large_scene_is_a_part_of_the_sample_only(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (600, 600, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "s.png")
    parts = list(chip_groups([tmp_path / "s.png"], Cutting(windows=(32,), scene_side=512)))
    assert len(parts[0].rows) > 1_000
    assert 100 < len(_sampled(parts, 8)) <= 140


def test_a_scene_gives_no_more_than_its_share(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (560, 480, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "s.png")
    parts = list(chip_groups([tmp_path / "s.png"], Cutting(scene_side=512)))
    assert 128 < len(parts[0].rows) < 256
    assert len(_sampled(parts, 8)) <= 128


def test_of_separate_images_all_are_taken(tmp_path: Path) -> None:
    archive(tmp_path / "a", 300)
    assert len(_sampled(chip_groups([tmp_path / "a"], Cutting()), 8)) == 300
