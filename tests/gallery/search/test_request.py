"""What is searched for, in every form: the same pixels give the same embedding, and what cannot be asked is told."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from numpy.typing import NDArray
from PIL import Image
from tests.chips.layouts import save_image

from lookdown.chips import imagery, photographs, pixels
from lookdown.chips.pixels import fit_bands, letterbox, read_chip
from lookdown.errors import GalleryError, ImageError, InputError, LookdownError
from lookdown.gallery import Gallery
from lookdown.gallery.search.request import Example, SearchRequest, as_examples, picture
from lookdown.gallery.store.snapshot import Snapshot
from lookdown.networks import Embedder


def request(**changes: Any) -> SearchRequest:
    fields: dict[str, Any] = {"examples": np.ones(4, np.float32), "k": 5}
    return SearchRequest(**fields | changes)


def test_what_can_be_asked() -> None:
    assert request(k=None, false_alarm_rate=1e-3).false_alarm_rate == 1e-3
    assert request(k=np.int64(7), overlap=1, expand=3).k == 7
    assert request(k=None).hits == 50
    assert request(k=None, false_alarm_rate=0.1).hits is None
    assert request(examples="a").examples == ["a"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"examples": []}, "nothing to search for"),
        ({"kind": "tug"}, "give `examples` or `kind`, not both"),
        ({"examples": [], "kind": "tug", "expand": 3}, "`expand` lets hits join the examples"),
        ({"examples": [], "kind": 3}, "`kind` must be the name of a kind, got 3"),
        ({"false_alarm_rate": 0.1}, "`k` or `false_alarm_rate`, not both"),
        ({"k": 0}, "`k` must be a whole number of at least 1, got 0"),
        ({"k": 2.5}, "`k` must be a whole number"),
        ({"k": True}, "`k` must be a whole number"),
        ({"k": None, "false_alarm_rate": 0.0}, "`false_alarm_rate` must be between 0 and 1"),
        ({"k": None, "false_alarm_rate": "1e-3"}, "`false_alarm_rate` must be between 0 and 1"),
        ({"prior": 1.0}, "`prior` must be between 0 and 1"),
        ({"prior": float("nan")}, "`prior` must be between 0 and 1"),
        ({"overlap": 1.1}, "`overlap` must be a share"),
        ({"overlap": None}, "`overlap` must be a share"),
        ({"overlap": -0.1}, "`overlap` must be a share"),
        ({"expand": -1}, "`expand` must be a whole number"),
    ],
)
def test_what_cannot(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        request(**changes)


Pixels = NDArray[np.uint8]


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder("test_resnet", size=32, weights="none", dimension=8)


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Gallery:
    """Nobody writes to it, so that one is enough."""
    folder = tmp_path_factory.mktemp("examples")
    for place in range(6):
        save_image(folder / "a" / f"{place}.png", place, (30 + place, 40))
    made = Gallery.create(folder / "gallery", embedder)
    made.add(folder / "a")
    return made


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A gallery without an embedder."""
    made = Gallery.create(tmp_path_factory.mktemp("vectors") / "gallery", dimension=8)
    made.add_embeddings([{"id": "one"}, {"id": "two"}], np.eye(8)[:2])
    return made.snapshot


def some_pixels(h: int = 25, w: int = 40, bands: int = 3) -> Pixels:
    return np.random.default_rng(1).integers(0, 256, (h, w, bands), dtype=np.uint8)


def image_bytes(pixels: Pixels, kind: str) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind)
    return stream.getvalue()


def expected(embedder: Embedder, pixels: Pixels) -> NDArray[np.float32]:
    return embedder.embed(letterbox(pixels, 32).transpose(2, 0, 1)[None])


def tiff_bytes(path: Path, bands: int, side: int = 20) -> bytes:
    place = {"crs": "EPSG:32631", "transform": rasterio.Affine(10, 0, 500_000, 0, -10, 5_000_000)}
    shape = {"count": bands, "height": side, "width": side, "dtype": "uint8"}
    with rasterio.open(path, "w", driver="GTiff", **shape, **place) as file:
        file.write(np.ones((bands, side, side), np.uint8))
    return path.read_bytes()


# Images


@pytest.mark.parametrize("suffix", ["jpg", "png", "tif", "bmp"])
def test_an_image_is_the_same_as_a_file_as_bytes_and_as_pixels(
    gallery: Gallery, embedder: Embedder, tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"a.{suffix}"
    save_image(file, 5, (50, 30))
    pixels, content = read_chip(file), file.read_bytes()
    wanted = expected(embedder, pixels)
    forms: list[Any] = [file, str(file), content, bytearray(content), memoryview(content), pixels]
    for form in forms:
        found = as_examples(form, gallery.snapshot, lambda: embedder)
        np.testing.assert_allclose(found.embeddings, wanted, rtol=1e-5, atol=1e-6)
        assert found.embeddings.dtype == np.float32
        assert len(found.rows) == 0
        assert found.description == (str(file) if isinstance(form, str | Path) else "an image")


@pytest.mark.parametrize("kind", ["II*", "II+"])
def test_bytes_of_a_tiff_are_told_by_how_they_begin(
    gallery: Gallery, embedder: Embedder, tmp_path: Path, kind: str
) -> None:
    pixels = some_pixels()
    place = {"crs": "EPSG:32631", "transform": rasterio.Affine(10, 0, 500_000, 0, -10, 5_000_000)}
    shape = {"count": 3, "height": 25, "width": 40, "dtype": "uint8", "BIGTIFF": "YES" if kind == "II+" else "NO"}
    with rasterio.open(tmp_path / "a.tif", "w", driver="GTiff", **shape, **place) as file:
        file.write(pixels.transpose(2, 0, 1))
    content = (tmp_path / "a.tif").read_bytes()
    assert content[:3].decode() == kind
    found = as_examples(content, gallery.snapshot, lambda: embedder).embeddings
    np.testing.assert_allclose(found, expected(embedder, pixels), rtol=1e-5, atol=1e-6)


def test_grey_pixels_become_the_bands_of_the_network(gallery: Gallery, embedder: Embedder) -> None:
    grey = some_pixels(bands=1)
    wanted = expected(embedder, grey.repeat(3, axis=2))
    for form in (grey, grey[:, :, 0], image_bytes(grey[:, :, 0], "PNG"), image_bytes(grey[:, :, 0], "TIFF")):
        found = as_examples(form, gallery.snapshot, lambda: embedder).embeddings
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert fit_bands(grey, 5, "x").shape == (25, 40, 5)


def test_pixels_of_a_chip_that_is_there_find_it(gallery: Gallery) -> None:
    chips = sorted((gallery.path.parent / "a").iterdir())
    for chip in chips:
        for query in (chip, chip.read_bytes(), read_chip(chip)):
            hit = gallery.search(query, k=1).hits[0]
            assert hit.id == f"a/{chip.name}"
            assert hit.score == pytest.approx(1, abs=1e-5)


def test_no_file_of_the_bytes_is_left(
    gallery: Gallery, embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    as_examples(image_bytes(some_pixels(), "TIFF"), gallery.snapshot, lambda: embedder)
    with pytest.raises(ImageError):
        as_examples(b"no image", gallery.snapshot, lambda: embedder)
    assert not list(tmp_path.iterdir())


# Embeddings and chips of the gallery


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int64, np.uint8])
def test_an_embedding_is_taken_as_it_is(vectors: Snapshot, kind: type[np.generic]) -> None:
    found = as_examples(np.arange(8).astype(kind), vectors, lambda: None)
    np.testing.assert_array_equal(found.embeddings, np.arange(8, dtype=np.float32)[None])
    assert found.embeddings.dtype == np.float32
    assert (found.description, len(found.rows)) == ("an embedding", 0)


def test_views_of_one_object_share_its_weight(vectors: Snapshot) -> None:
    views = np.arange(24.0).reshape(3, 8)
    found = as_examples([views, np.arange(8)], vectors, lambda: None)
    np.testing.assert_array_equal(found.embeddings, [*views, np.arange(8)])
    np.testing.assert_allclose(found.weights, [1 / 3, 1 / 3, 1 / 3, 1])
    assert (found.objects, found.description) == (2, "2 examples")
    assert as_examples(views, vectors, lambda: None).description == "an embedding"


def test_a_turned_image_is_seen_in_its_quarter_turns(gallery: Gallery, embedder: Embedder) -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (32, 32, 3), dtype=np.uint8)  # no size to change
    found = as_examples(pixels, gallery.snapshot, lambda: embedder, turned=True)
    turns = [expected(embedder, np.rot90(pixels, turn).copy())[0] for turn in range(4)]
    np.testing.assert_allclose(found.embeddings, turns, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.weights, 0.25)
    assert found.objects == 1
    plain = gallery.search(pixels, k=6, turned=True)
    for turn in range(1, 4):
        again = gallery.search(np.rot90(pixels, turn).copy(), k=6, turned=True)
        assert [hit.id for hit in again.hits] == [hit.id for hit in plain.hits]
        np.testing.assert_allclose([hit.score for hit in again.hits], [hit.score for hit in plain.hits], atol=1e-5)


def test_an_id_is_the_stored_embedding_and_needs_no_network(gallery: Gallery) -> None:
    found = as_examples("a/3.png", gallery.snapshot, lambda: None)
    assert found.rows.tolist() == [3]
    np.testing.assert_array_equal(found.embeddings, gallery.snapshot.embeddings(np.array([3])))
    assert found.description == "a/3.png"


def test_a_text_that_is_a_chip_and_a_file_is_the_chip(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(gallery.path.parent)
    assert Path("a/3.png").is_file()
    assert as_examples("a/3.png", gallery.snapshot, lambda: None).rows.tolist() == [3]
    assert "a/3.png" not in {hit.id for hit in gallery.search("a/3.png").hits}
    assert gallery.search(Path("a/3.png")).hits[0].id == "a/3.png"  # a path is always a file


def test_several_examples_keep_their_order(gallery: Gallery, embedder: Embedder, tmp_path: Path) -> None:
    save_image(tmp_path / "x.png", 9)
    given: list[Example] = [np.arange(8.0), "a/4.png", some_pixels(), "a/1.png", tmp_path / "x.png"]
    for several in (given, tuple(given)):
        found = as_examples(several, gallery.snapshot, lambda: embedder)
        singly = [as_examples(one, gallery.snapshot, lambda: embedder).embeddings[0] for one in given]
        np.testing.assert_allclose(found.embeddings, singly, rtol=1e-6)
        assert found.rows.tolist() == [4, 1]
        assert found.description == "5 examples"
    none = as_examples([], gallery.snapshot, lambda: embedder)
    assert (none.embeddings.shape, len(none.rows)) == ((0, 8), 0)
    with pytest.raises(InputError, match="nothing to search for"):
        gallery.search([])


# What is no example


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        (np.ones(7), InputError, r"an embedding must be 8 finite numbers, got float64 \(7,\); embed with the network"),
        (np.full(8, np.nan), InputError, "8 finite numbers"),
        (np.array([1, 2, 3, 4, 5, 6, 7, np.inf]), InputError, "8 finite numbers"),
        (np.array(["a"] * 8), InputError, "8 finite numbers, got <U1"),
        (np.ones(8, bool), InputError, "8 finite numbers, got bool"),
        (np.array([None] * 8), InputError, "8 finite numbers, got object"),
        (np.ones((3, 7)), InputError, r"8 finite numbers, got float64 \(3, 7\)"),
        (np.ones((3, 8), np.int64), InputError, r"pixels must be uint8 \(h, w, bands\), got int64 \(3, 8\)"),
        (np.ones((9, 9, 3), np.uint16), InputError, "pixels must be uint8"),
        (np.zeros((1, 9, 9, 3), np.uint8), InputError, "pixels must be uint8"),
        (np.array(3), InputError, "pixels must be uint8"),
        (np.zeros((0, 9, 3), np.uint8), InputError, "with pixels"),
        (np.zeros((9, 9, 2), np.uint8), ImageError, "an image has 2 bands, this embedder takes 3"),
        (np.zeros((9, 9, 0), np.uint8), ImageError, "has 0 bands"),
        ("nobody.png", GalleryError, "nobody.png is neither a chip of .* nor a file; check the name"),
        ("", GalleryError, "is neither a chip of"),
        ("a\0b", GalleryError, "is neither a chip of"),
        (Path("nobody.png"), ImageError, "nobody.png: there is no such file"),
        (None, InputError, "an example is a file, bytes of an image, pixels, an embedding or an id, not NoneType"),
        (3, InputError, "not int"),
        ([1.0] * 8, InputError, "not float"),
        (Image.new("L", (9, 9)), InputError, "not Image"),
    ],
)
def test_what_is_no_example_is_told(
    gallery: Gallery, embedder: Embedder, wrong: Any, kind: type[LookdownError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        as_examples(wrong, gallery.snapshot, lambda: embedder)
    with pytest.raises(kind, match=words):
        gallery.search(wrong)


def test_a_folder_is_no_example(gallery: Gallery, embedder: Embedder, tmp_path: Path) -> None:
    with pytest.raises(GalleryError, match="nor a file"):
        as_examples(str(tmp_path), gallery.snapshot, lambda: embedder)
    with pytest.raises(ImageError, match="cannot be read"):
        as_examples(tmp_path, gallery.snapshot, lambda: embedder)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the image: the file is empty"),
        (b"hello", "the image: not an image of a known kind"),
        (image_bytes(some_pixels(), "PNG")[:900], "the image: cannot be read"),
        (image_bytes(some_pixels(), "JPEG")[:400], "the image: cannot be read"),
        (image_bytes(some_pixels(), "TIFF")[:900], "the image is damaged or truncated"),
        (b"II*\0nonsense", "the image is not a GeoTIFF, or is truncated"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n", "not an image of a known kind"),
    ],
)
def test_bytes_that_are_broken_are_told_without_the_file_that_they_were_put_into(
    gallery: Gallery, embedder: Embedder, content: bytes, words: str
) -> None:
    with pytest.raises(ImageError, match=words) as error:
        as_examples(content, gallery.snapshot, lambda: embedder)
    assert tempfile.gettempdir() not in str(error.value)
    assert error.value.__cause__ is None  # nor in a traceback that a service would log


def test_bytes_with_other_bands_are_told(gallery: Gallery, embedder: Embedder, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="an image has 5 bands, this embedder takes 3"):
        as_examples(tiff_bytes(tmp_path / "a.tif", 5), gallery.snapshot, lambda: embedder)


def test_bytes_of_a_small_tiff_that_is_large_when_unpacked_are_refused(
    gallery: Gallery, embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (imagery, photographs, pixels):
        monkeypatch.setattr(module, "MAX_PIXELS", 10_000)
    with pytest.raises(ImageError, match=r"megapixels|too large"):
        as_examples(image_bytes(some_pixels(150, 150), "PNG"), gallery.snapshot, lambda: embedder)
    with pytest.raises(ImageError, match=r"megapixels|too large"):
        as_examples(tiff_bytes(tmp_path / "a.tif", 3, side=150), gallery.snapshot, lambda: embedder)


@pytest.mark.parametrize("text", ["x" * 300, "caf\udce9.png"])
def test_a_text_that_can_be_no_name_is_told(gallery: Gallery, embedder: Embedder, text: str) -> None:
    with pytest.raises(GalleryError, match="is neither a chip of"):
        as_examples(text, gallery.snapshot, lambda: embedder)


# Without a network


def test_without_a_network_images_are_refused_and_the_rest_is_not(vectors: Snapshot, tmp_path: Path) -> None:
    save_image(tmp_path / "x.png", 0)
    images: list[Example] = [tmp_path / "x.png", str(tmp_path / "x.png"), image_bytes(some_pixels(), "PNG")]
    for example in [*images, some_pixels()]:
        with pytest.raises(GalleryError, match="has no embedder, so it cannot be asked for images; give an embedding"):
            as_examples(example, vectors, lambda: None)
    found = as_examples(["two", np.ones(8)], vectors, lambda: None)
    np.testing.assert_array_equal(found.embeddings, np.stack([np.eye(8)[1], np.ones(8)]).astype(np.float32))
    assert found.rows.tolist() == [1]


def test_without_a_network_an_id_that_is_not_there_is_told_as_such(vectors: Snapshot) -> None:
    with pytest.raises(GalleryError, match="thre"):
        as_examples("thre", vectors, lambda: None)


# Pictures


def test_the_picture_of_an_example_is_a_small_jpeg(gallery: Gallery, vectors: Snapshot, tmp_path: Path) -> None:
    save_image(tmp_path / "x.png", 9, (300, 200))
    pixels = read_chip(tmp_path / "x.png")
    forms: list[Example] = [tmp_path / "x.png", str(tmp_path / "x.png"), (tmp_path / "x.png").read_bytes(), pixels]
    for form in forms:
        shown = Image.open(io.BytesIO(picture(form, gallery.snapshot) or b""))
        assert (shown.format, shown.size) == ("JPEG", (96, 64))
    stored = gallery.snapshot.read(np.array([2]), ["thumbnail"])[0]["thumbnail"]
    assert gallery.picture("a/2.png") == stored
    assert Image.open(io.BytesIO(stored)).size == (32, 40)
    assert picture(np.ones(8), gallery.snapshot) is None
    with pytest.raises(GalleryError, match="neither a chip"):
        picture("nobody", gallery.snapshot)


def test_a_chip_without_a_thumbnail_has_no_picture(vectors: Snapshot) -> None:
    assert picture("one", vectors) is None


def test_chips_are_looked_up_together_in_their_order(vectors: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for name in ("find", "embeddings"):
        real = getattr(Snapshot, name)

        def counted(self: Snapshot, given: Any, name: str = name, real: Any = real) -> Any:
            calls.append(name)
            return real(self, given)

        monkeypatch.setattr(Snapshot, name, counted)
    found = as_examples(["two", np.full(8, 0.5), "one", "two"], vectors, lambda: None)
    wanted = np.stack([np.eye(8)[1], np.full(8, 0.5), np.eye(8)[0], np.eye(8)[1]])
    np.testing.assert_allclose(found.embeddings, wanted)
    assert (found.rows.tolist(), found.objects) == ([1, 0, 1], 4)
    assert calls == ["find", "embeddings"]
