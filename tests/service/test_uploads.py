"""Images from strangers: what is good is read, and of two thousand that are not none does harm."""

from __future__ import annotations

import io
import resource
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import rasterio
from PIL import Image
from starlette.testclient import TestClient
from tests.service.galleries import encoded, pixels

from lookdown.chips.photographs import quietly
from lookdown.errors import ImageError
from lookdown.service.problems import Problem
from lookdown.service.uploads import Upload, kind_of, read_upload

PICTURE = pixels(1, 5)
SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(2)</script></svg>'
FORMATS = ("JPEG", "PNG", "TIFF", "WEBP")


def read(content: bytes, limit: int = 1_000_000, *, turned: bool = False) -> Upload:
    return read_upload(content, pixels=limit, bands=3, size=32, turned=turned)


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png_of(width: int, height: int, rows: bytes = b"", *, bits: int = 8, kind: int = 2) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def webp_of(kind: bytes, head: bytes) -> bytes:
    body = b"WEBP" + kind + struct.pack("<I", len(head)) + head
    return b"RIFF" + struct.pack("<I", len(body)) + body


def jpeg_of(width: int, height: int) -> bytes:
    """Return a small JPEG whose header tells another size."""
    content = bytearray(encoded(PICTURE, "JPEG"))
    place = content.index(b"\xff\xc0")
    content[place + 5 : place + 9] = struct.pack(">HH", height, width)
    return bytes(content)


def tiff_of(path: Path, **profile: object) -> bytes:
    """Return a GeoTIFF without pixels, which a reader takes for black."""
    with quietly(), rasterio.open(path, "w", driver="GTiff", SPARSE_OK=True, **({"dtype": "uint8"} | profile)):
        pass
    return path.read_bytes()


@pytest.mark.parametrize("kind", FORMATS)
def test_each_format_is_known_by_its_bytes_and_read(kind: str) -> None:
    options = {"lossless": True} if kind == "WEBP" else {}
    content = encoded(PICTURE, kind, **options)
    assert kind_of(content) == {"JPEG": "jpeg", "PNG": "png", "TIFF": "tif", "WEBP": "webp"}[kind]
    upload = read(content, turned=True)
    assert upload.squares.shape == (4, 3, 32, 32)
    if kind != "JPEG":
        np.testing.assert_array_equal(upload.squares[0], PICTURE.transpose(2, 0, 1))
    np.testing.assert_array_equal(upload.squares[1], np.rot90(upload.squares[0], 1, (1, 2)))
    with Image.open(io.BytesIO(upload.thumbnail)) as image:
        assert image.format == "JPEG"


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA", "I;16", "1"])
def test_other_modes_are_read_as_colours(mode: str) -> None:
    image = Image.fromarray(PICTURE)
    image = Image.fromarray(PICTURE[:, :, 0].astype(np.uint16) * 200) if mode == "I;16" else image.convert(mode)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    assert read(stream.getvalue()).squares.shape == (1, 3, 32, 32)


@pytest.mark.parametrize(
    "content", [SVG, b"GIF89a" + bytes(50), b"BM" + bytes(50), b"%!PS-Adobe", b"<html>", b"\0" * 99]
)
def test_other_kinds_are_refused_whatever_they_are_called(content: bytes) -> None:
    with pytest.raises(Problem) as refused:
        read(content)
    assert refused.value.status_code == 415


def test_an_empty_image_is_refused() -> None:
    with pytest.raises(Problem) as refused:
        read(b"")
    assert refused.value.status_code == 422


def test_a_bomb_is_refused_by_its_header(tmp_path: Path) -> None:
    bombs = [
        png_of(60_000, 60_000),
        png_of(1_001, 1_000),
        jpeg_of(65_000, 65_000),
        webp_of(b"VP8X", bytes(4) + b"\xff\x3f\x00\xff\x3f\x00"),
        webp_of(b"VP8L", b"\x2f" + struct.pack("<I", 0x3FFF | 0x3FFF << 14) + bytes(5)),
        webp_of(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 0x3FFF, 0x3FFF)),
        tiff_of(tmp_path / "wide.tif", width=60_000, height=60_000, count=1),
        tiff_of(tmp_path / "deep.tif", width=100, height=100, count=200),
        tiff_of(tmp_path / "numbers.tif", width=400, height=400, count=1, dtype="float64"),
        tiff_of(tmp_path / "words.tif", width=800, height=800, count=1, dtype="uint16"),
        tiff_of(tmp_path / "odd.tif", width=500, height=500, count=1, dtype="complex_int16"),
        png_of(800, 800, bits=16, kind=0),
        tiff_of(tmp_path / "block.tif", width=16, height=16, count=3, tiled=True, blockxsize=16_384, blockysize=16_384),
    ]
    for bomb in bombs:
        with pytest.raises(Problem) as refused:
            read(bomb)
        assert refused.value.status_code == 413
    with pytest.raises(ImageError, match="too many scans"):
        read(encoded(PICTURE, "JPEG") + b"\xff\xda" * 100)


def test_what_is_wrong_is_told_without_the_place_of_the_file() -> None:
    for kind in FORMATS:
        with pytest.raises((ImageError, Problem)) as refused:
            read(encoded(PICTURE, kind)[:60])
        assert "/tmp" not in str(refused.value)
        assert "lookdown-" not in str(refused.value)


def test_a_polyglot_is_only_its_pixels(reader: TestClient) -> None:
    for kind in ("JPEG", "PNG"):
        answer = reader.post("/v1/search", files={"image": encoded(PICTURE, kind) + SVG})
        assert answer.status_code == 200
        assert "script" not in answer.text


def malformed(count: int, seed: int, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield things that call themselves images, drawn from a seed."""
    rng = np.random.default_rng(seed)
    good = [encoded(PICTURE, kind) for kind in FORMATS]
    good += [encoded(PICTURE, "JPEG", progressive=True), encoded(PICTURE, "TIFF", compression="tiff_lzw")]
    heads = [content[:12] for content in good]
    sparse = tiff_of(folder / "sparse.tif", width=50_000, height=50_000, count=3, tiled=True)
    deep = tiff_of(folder / "deep.tif", width=4_900, height=4_900, count=1, tiled=True, dtype="float64")
    for number in range(count):
        content = good[rng.integers(len(good))]
        noise = rng.bytes(int(rng.integers(1, 3_000)))
        match number % 10:
            case 0:  # truncated
                content = content[: int(rng.integers(0, len(content)))]
            case 1 | 2:  # bytes changed
                changed = bytearray(content)
                for place in rng.integers(4, len(content), int(rng.integers(1, 40))):
                    changed[place] = int(rng.integers(256))
                content = bytes(changed)
            case 3:  # a head and noise
                content = heads[rng.integers(len(heads))] + noise
            case 4:  # bombs
                side = int(rng.integers(6_000, 65_000))
                content = [
                    png_of(side, side, bytes(100)), jpeg_of(side, side), sparse,
                    webp_of(b"VP8X", bytes(4) + rng.bytes(6)), png_of(4_000, 4_000, bytes(3 * 4_000 * 50)), deep,
                    png_of(4_900, 4_900, bytes(2 * 4_900 * 50), bits=16, kind=0),
                ][rng.integers(7)]  # fmt: skip
            case 5:  # polyglots
                content = [content + SVG, SVG + content, b"GIF89a" + content, content + content, b"PK\3\4" + content][
                    rng.integers(5)
                ]
            case 6:
                content = SVG.replace(b"2", str(number).encode())
            case 7:
                content = [b"", noise, b"MZ" + noise, b"%PDF-1.7" + noise, b"\x1f\x8b" + noise][rng.integers(5)]
            case 8:  # two halves
                other = good[rng.integers(len(good))]
                content = content[: len(content) // 2] + other[len(other) // 2 :]
            case 9:  # bytes left out
                place = int(rng.integers(8, len(content)))
                content = content[:place] + content[place + int(rng.integers(1, 20)) :]
        yield ("photo.jpg", "x.svg", "../../etc/passwd", "a.php\0.png", "")[number % 5], content


def resident() -> int:
    """Return the memory of this process now, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20


@pytest.mark.kill
def test_two_thousand_malformed_uploads_do_no_harm(reader: TestClient, tmp_path: Path) -> None:
    count = 2_000
    statuses: dict[int, int] = {}
    grown = []
    for number, (name, content) in enumerate(malformed(count, 7, tmp_path)):
        answer = reader.post("/v1/search", files={"image": (name or "x", content, "image/svg+xml")})
        statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
        assert answer.status_code < 500, (number, answer.text)
        assert answer.status_code in (200, 413, 415, 422), (number, answer.text)
        assert "/tmp" not in answer.text
        if number in (count // 4, count - 1):
            grown.append(resident())
    assert all(statuses[status] > count // 40 for status in (200, 413, 415, 422)), statuses
    assert grown[1] - grown[0] < 60, grown
    assert reader.get("/healthz").status_code == 200


def test_a_tiff_keeps_its_pixels_and_too_many_bands_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "bands.tif"
    with (
        quietly(),
        rasterio.open(file, "w", driver="GTiff", dtype="uint16", count=5, width=8, height=8) as image,
    ):
        image.write(np.ones((5, 8, 8), np.uint16))
    with pytest.raises(ImageError, match="has 5 bands, this embedder takes 3"):
        read(file.read_bytes())
