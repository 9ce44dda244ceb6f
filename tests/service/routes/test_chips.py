"""Chips over HTTP: to look at, to add and to remove."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image
from starlette.testclient import TestClient
from tests.service.galleries import CHIPS, KINDS, client_of, encoded, pixels

from lookdown import Gallery
from lookdown.gallery.index.thumbnails import thumbnail


def address(name: str) -> str:
    return f"/v1/chips/{quote(name, safe='')}"


def test_chips_come_from_all_over_and_each_once(reader: TestClient) -> None:
    first = reader.get("/v1/chips", params={"limit": 10}).json()
    assert first["total"] == CHIPS
    assert len({chip["label"] for chip in first["chips"]}) >= 4
    every = [
        chip["id"]
        for offset in range(0, CHIPS + 50, 50)
        for chip in reader.get("/v1/chips", params={"limit": 50, "offset": offset}).json()["chips"]
    ]
    assert len(every) == len(set(every)) == CHIPS
    assert reader.get("/v1/chips", params={"limit": 501}).status_code == 422
    assert reader.get("/v1/chips", params={"offset": -1}).status_code == 422


def test_an_id_may_hold_slashes_and_signs_and_is_no_path(reader: TestClient, made: Path) -> None:
    for name in Gallery.open(made).snapshot.ids.to_pylist()[:3]:
        found = reader.get(address(name))
        assert found.status_code == 200
        chip = found.json()
        assert chip["id"] == name
        assert chip["source"].count("/") == 0
        assert chip["marked"] is False
        assert reader.get(chip["thumbnail"]).status_code == 200
    for name in (
        "..",
        "../../../etc/passwd",
        "/etc/passwd",
        "%2e%2e",
        "a\0b",
        "\ud800",
        "C:\\x",
        "x/thumbnail",
        "💥" * 99,
    ):
        missing = reader.get(f"/v1/chips/{quote(name, safe='', errors='surrogatepass')}")
        assert missing.status_code == 404, name
        assert missing.headers["content-type"] == "application/problem+json"
    assert reader.get("/v1/chips/%ff%fe").status_code == 404


def test_a_picture_is_drawn_anew_and_known_again(reader: TestClient, made: Path) -> None:
    name = Gallery.open(made).snapshot.ids.to_pylist()[1]
    found = reader.get(f"{address(name)}/thumbnail")
    assert found.headers["content-type"] == "image/jpeg"
    assert found.headers["cache-control"] == "private, no-cache"
    with Image.open(io.BytesIO(found.content)) as image:
        assert (image.format, image.size) == ("JPEG", (32, 32))
    again = reader.get(f"{address(name)}/thumbnail", headers={"if-none-match": found.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert reader.get("/v1/chips/none/thumbnail").status_code == 404


def test_another_gallery_at_the_same_address_shows_its_own_pictures(tmp_path: Path) -> None:
    tags: list[str] = []
    for seed in (0, 1):
        gallery = Gallery.create(tmp_path / str(seed), dimension=2)
        gallery.add_embeddings([{"id": "a", "thumbnail": thumbnail(pixels(seed, seed))}], [[1, 0]])
        with client_of(gallery) as client:
            before = {"if-none-match": tags[0]} if tags else {}
            answer = client.get("/v1/chips/a/thumbnail", headers=before)
            assert answer.status_code == 200
            tags.append(answer.headers["etag"])
    assert tags[0] != tags[1]


def test_a_chip_without_a_picture_says_so(tmp_path: Path) -> None:
    gallery = Gallery.create(tmp_path / "g", dimension=2)
    gallery.add_embeddings([{"id": "bare"}, {"id": "odd", "thumbnail": b"<svg onload=alert(1)>"}], [[1, 0], [0, 1]])
    with client_of(gallery) as client:
        for name in ("bare", "odd"):
            answer = client.get(f"/v1/chips/{name}/thumbnail")
            assert (answer.status_code, answer.json()["type"]) == (404, "urn:lookdown:no-picture")
        refused = client.post("/v1/search", files={"image": encoded(pixels(0, 0))})
        assert (refused.status_code, "has no embedder" in refused.json()["detail"]) == (409, True)
        assert str(tmp_path) not in refused.text
        assert client.get("/v1/stats").json()["can_embed"] is False


def test_an_image_becomes_a_chip_and_goes_again(writer: TestClient) -> None:
    content = encoded(pixels(2, 999))
    told = {"label": "<b>new</b>", "scene": "here", "time": "2025-05-05"}
    added = writer.post("/v1/chips", files={"image": content}, data=told)
    assert added.status_code == 201
    name = added.json()["id"]
    assert name == f"upload-{hashlib.sha256(content).hexdigest()[:24]}"
    chip = writer.get(address(name)).json()
    assert (chip["label"], chip["scene"], chip["time"]) == ("<b>new</b>", "here", "2025-05-05")
    again = writer.post("/v1/chips", files={"image": content})
    assert (again.status_code, again.json()["id"]) == (200, name)
    found = writer.post("/v1/search", files={"image": content}, data={"request": '{"k": 1, "turned": false}'}).json()
    assert found["hits"][0]["id"] == name
    assert writer.delete(address(name)).status_code == 204
    assert writer.delete(address(name)).status_code == 404
    assert writer.get(address(name)).status_code == 404


@pytest.mark.parametrize(
    ("fields", "status"),
    [({"time": "soon"}, 422), ({"label": "x" * 201}, 422), ({"path": "/etc/passwd"}, 422), ({"label": ""}, 201)],
)
def test_what_is_said_of_a_new_chip_is_checked(writer: TestClient, fields: dict[str, str], status: int) -> None:
    assert writer.post("/v1/chips", files={"image": encoded(pixels(3, 77))}, data=fields).status_code == status


def test_writing_needs_access(reader: TestClient, made: Path) -> None:
    name = Gallery.open(made).snapshot.ids.to_pylist()[0]
    for answer in (reader.post("/v1/chips", files={"image": encoded(pixels(0, 0))}), reader.delete(address(name))):
        assert (answer.status_code, answer.json()["type"]) == (403, "urn:lookdown:access")
        assert "--access write" in answer.json()["detail"]


def test_a_form_without_an_image_is_refused(writer: TestClient) -> None:
    assert writer.post("/v1/chips", json={}).status_code == 415
    assert writer.post("/v1/chips", data={"image": "x"}, files={"other": b"x"}).status_code == 422
    assert KINDS[0] in writer.get("/v1/stats").json()["labels"]
