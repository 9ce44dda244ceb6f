"""POST /v1/search and GET /v1/thresholds; and from what was sent to one question to the gallery."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.service.galleries import CHIPS, KINDS, client_of, encoded, pixels, use_kinds

from lookdown import Gallery, SearchRequest, Where
from lookdown.errors import GalleryError, InputError
from lookdown.service.answers import search_answer
from lookdown.service.problems import Problem
from lookdown.service.routes.search import search
from lookdown.service.schemas import SearchBody
from lookdown.service.served_gallery import ServedGallery
from lookdown.service.service_settings import ServiceSettings


def ids(gallery: Gallery) -> list[str]:
    return [str(name) for name in gallery.snapshot.ids.to_pylist()]


def ask(client: TestClient, **asked: Any) -> Any:
    answer = client.post("/v1/search", json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_chip_is_searched_for_as_the_gallery_does(reader: TestClient, made: Path) -> None:
    gallery = Gallery.open(made)
    name = ids(gallery)[5]
    found = ask(reader, examples=[name], k=7)
    wanted = gallery.search(name, k=7)
    assert [hit["id"] for hit in found["hits"]] == [hit.id for hit in wanted.hits]
    np.testing.assert_allclose([hit["score"] for hit in found["hits"]], [hit.score for hit in wanted.hits])
    assert name not in [hit["id"] for hit in found["hits"]]
    assert (found["example"]["chip"], found["query"]) == (name, name)
    assert found["example"]["thumbnail"].startswith("data:image/jpeg;base64,")
    assert (found["rows_searched"], found["metric"], found["engine"]) == (CHIPS - 1, "1-trained", "exact")
    assert (found["accepted"], found["truncated"]) == (7, False)
    hit = found["hits"][0]
    assert hit["source"] == Path(hit["source"]).name
    assert hit["false_alarm_rate"]["method"] == "empirical"
    assert hit["thumbnail"].startswith("/v1/chips/bars%2F")
    assert reader.get(hit["thumbnail"]).status_code == 200


def test_a_hit_says_which_kind_it_is_taken_for(gallery: Gallery) -> None:
    use_kinds(gallery)
    with client_of(gallery) as client:
        hits = ask(client, examples=[ids(gallery)[0]], k=60)["hits"]
    wanted = gallery.search(ids(gallery)[0], k=60).hits
    assert [(hit["kind"], hit["kind_probability"]) for hit in hits] == [
        (hit.kind, pytest.approx(hit.kind_probability)) for hit in wanted
    ]
    assert {hit["kind"] for hit in hits} > {KINDS[0], None}


def test_a_kind_is_searched_for_without_an_example(gallery: Gallery) -> None:
    use_kinds(gallery)
    wanted = gallery.search(kind=KINDS[1], k=9, where=Where(labelled=True))
    with client_of(gallery) as client:
        found = ask(client, kind=KINDS[1], k=9, where={"labelled": True})
        unknown = client.post("/v1/search", json={"kind": "fery"})
        both = client.post("/v1/search", json={"kind": KINDS[1], "examples": [ids(gallery)[0]]})
        nameless = client.post("/v1/search", json={"kind": KINDS[1], "metric": "1-trained"})
    assert [hit["id"] for hit in found["hits"]] == [hit.id for hit in wanted.hits]
    assert (found["query"], found["example"]) == (wanted.query, None)
    assert {hit["kind"] for hit in found["hits"]} == {KINDS[1]}
    assert (unknown.status_code, both.status_code) == (422, 422)
    assert "knows no kind 'fery'; did you mean ferry?" in unknown.json()["detail"]
    assert "not both" in both.json()["detail"]
    assert nameless.status_code == 422
    assert "1-trained knows no kinds by name" in nameless.json()["detail"]


def test_an_image_is_found_however_it_lies_and_its_embedding_does_instead(reader: TestClient) -> None:
    picture = pixels(1, 1)
    found = []
    for turn in range(4):
        files = {"image": ("../../x.svg", encoded(np.rot90(picture, turn).copy()), "text/html")}
        answer = reader.post("/v1/search", files=files, data={"request": '{"k": 20, "turned": true}'})
        assert answer.status_code == 200
        found.append(answer.json())
    first, *others = found
    assert first["query"] == "an image"
    assert len(first["example"]["embedding"]) == 4
    for other in others:
        assert [hit["id"] for hit in other["hits"]] == [hit["id"] for hit in first["hits"]]
    again = ask(reader, examples=[first["example"]["embedding"]], k=20)
    assert [hit["id"] for hit in again["hits"]] == [hit["id"] for hit in first["hits"]]
    assert again["query"] == "an embedding"
    answer = reader.post("/v1/search", files={"image": encoded(picture)}, data={"request": "{}"})
    assert len(answer.json()["example"]["embedding"]) == 8
    assert len(answer.json()["hits"]) == 50


def test_marks_filters_metric_and_prior_reach_the_gallery(reader: TestClient, made: Path) -> None:
    gallery = Gallery.open(made)
    names = ids(gallery)
    where = {"label": [KINDS[0]], "since": "2025-02-01", "until": "2025-11", "box": [3, 50, 6, 60], "labelled": True}
    found = ask(
        reader, examples=[names[0], names[5]], counter_examples=[names[1]], k=5, where=where, metric="cosine", prior=0.2
    )
    wanted = gallery.search(
        [names[0], names[5]],
        5,
        counter_examples=[names[1]],
        where=Where(label=KINDS[0], since="2025-02-01", until="2025-11", box=(3, 50, 6, 60), labelled=True),
        metric="cosine",
        prior=0.2,
    )
    assert [hit["id"] for hit in found["hits"]] == [hit.id for hit in wanted.hits]
    assert (found["metric"], found["prior"], found["query"]) == ("cosine", 0.2, wanted.query)
    assert {hit["label"] for hit in found["hits"]} == {KINDS[0]}


def test_a_rate_accepts_what_the_gallery_accepts_and_a_long_answer_is_cut(made: Path) -> None:
    gallery = Gallery.open(made)
    name = ids(gallery)[0]
    wanted = gallery.search(name, false_alarm_rate=0.3)
    assert len(wanted) > 5
    asked = {"examples": [name], "false_alarm_rate": 0.3}
    with client_of(gallery, hits=5) as client:
        found = ask(client, **asked)
        lines = client.post(
            "/v1/search", json={"examples": [name], "false_alarm_rate": 0.3}, headers={"accept": "text/csv"}
        )
    assert (found["accepted"], found["truncated"], len(found["hits"])) == (len(wanted), True, 5)
    assert found["requested_false_alarm_rate"] == 0.3
    assert found["threshold"]["value"] == pytest.approx(float(wanted.threshold or 0))
    assert found["expected_false_hits"]["value"] == pytest.approx(float(wanted.expected_false_hits or 0))
    assert len(lines.text.strip().splitlines()) == 1 + len(wanted)
    assert lines.headers["x-lookdown-accepted"] == str(len(wanted))
    assert lines.headers["x-lookdown-truncated"] == "false"
    with client_of(gallery, exported_hits=5) as client:
        cut = client.post(
            "/v1/search", json={"examples": [name], "false_alarm_rate": 0.3}, headers={"accept": "text/csv"}
        )
    assert (cut.headers["x-lookdown-accepted"], cut.headers["x-lookdown-truncated"]) == (str(len(wanted)), "true")


def test_hits_are_also_a_map_layer_and_a_table(reader: TestClient, made: Path) -> None:
    name = ids(Gallery.open(made))[0]
    layer = reader.post(
        "/v1/search", json={"examples": [name], "k": 30}, headers={"accept": "text/html, application/geo+json;q=0.9"}
    )
    assert layer.headers["content-type"] == "application/geo+json"
    assert layer.headers["content-disposition"] == 'attachment; filename="hits.geojson"'
    assert layer.json()["type"] == "FeatureCollection"
    assert len(layer.json()["features"]) + layer.json()["without_footprint"] == 30
    table = reader.post(
        "/v1/search", json={"examples": [name], "k": 3}, headers={"accept": "application/json;q=0, text/csv"}
    )
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert len(rows) == 3
    assert "secret" not in layer.text + table.text


@pytest.mark.parametrize(
    ("asked", "status", "told"),
    [
        ({}, 422, "say what to find"),
        ({"examples": []}, 422, "say what to find"),
        ({"examples": ["nothing"]}, 404, "no chip 'nothing'"),
        ({"examples": ["/etc/passwd"]}, 404, "no chip"),
        ({"examples": [[1, 2]]}, 422, "an embedding must be 8 finite numbers"),
        ({"examples": [[[1] * 8, [1, 2]]]}, 422, "the same number of values"),
        ({"examples": [[0] * 8]}, 422, ""),
        ({"examples": [[1e300] * 8]}, 422, "less than or equal"),
        ({"examples": [[1] * 8, "/etc/hostname"]}, 404, "no chip"),
        ({"examples": [[1] * 8], "counter_examples": ["/etc/hostname"]}, 404, "no chip"),
        ({"examples": [[1] * 8], "k": 5, "false_alarm_rate": 0.1}, 422, "not both"),
        ({"examples": [[1] * 8], "k": 0}, 422, "k: "),
        ({"examples": [[1] * 8], "metric": "9-none"}, 404, "no metric '9-none'"),
        ({"examples": [[1] * 8], "false_alarm_rate": 0.1, "metric": "cosine"}, 409, "knows no false-alarm rates"),
        ({"examples": [[1] * 8], "where": {"since": "yesterday"}}, 422, "not a time"),
        ({"examples": [[1] * 8], "where": {"box": [0, 80, 1, 10]}}, 422, "box"),
        ({"examples": [[1] * 8], "where": {"polygon": "POINT (1 1)"}}, 422, "polygon"),
        ({"examples": [[1] * 8], "overlap": 2}, 422, "overlap: "),
        ({"examples": [[1] * 8], "expand": 1000}, 422, "expand: "),
        ({"examples": [[1] * 8], "wher": {}}, 422, "wher: Extra inputs"),
    ],
)
def test_what_cannot_be_asked_is_told_in_a_sentence(
    reader: TestClient, made: Path, asked: dict[str, Any], status: int, told: str
) -> None:
    answer = reader.post("/v1/search", json=asked)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    problem = answer.json()
    assert set(problem) == {"type", "title", "status", "detail"}
    assert told in problem["detail"]
    assert str(made.parent) not in answer.text


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1]", b'{"examples": [[NaN]]}', b'{"examples": ["\\ud800"]}', b"\xff", b"[" * 9999]
)
def test_what_is_no_json_is_refused(reader: TestClient, body: bytes) -> None:
    answer = reader.post("/v1/search", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422, answer.text


def test_other_bodies_and_broken_forms_are_refused(reader: TestClient) -> None:
    assert reader.post("/v1/search", content=b"chip=a").status_code == 415
    assert reader.post("/v1/search", content=b"x", headers={"content-type": "text/plain"}).status_code == 415
    torn = {"content-type": "multipart/form-data; boundary=b"}
    for content in (b"", b"--b\r\n", b"--b--", b"\0" * 100, b'--b\r\nContent-Disposition: form-data; name="image"\r\n'):
        assert reader.post("/v1/search", content=content, headers=torn).status_code in (400, 422)
    no_boundary = reader.post("/v1/search", content=b"x", headers={"content-type": "multipart/form-data"})
    assert no_boundary.status_code == 400
    image = encoded(pixels(0, 0))
    assert reader.post("/v1/search", files={"image": image}, data={"request": "{"}).status_code == 422
    assert reader.post("/v1/search", data={"image": "text", "request": "{}"}, files={"b": b""}).status_code == 422
    two_files = reader.post("/v1/search", files={"image": image, "request": ("request.json", b"{}")})
    assert two_files.status_code == 400
    both = reader.post("/v1/search", files={"image": image}, data={"request": json.dumps({"examples": ["a"]})})
    assert both.status_code == 404  # there is no such chip


def test_thresholds_fall_with_the_rate_and_densities_have_the_area_of_one(reader: TestClient, made: Path) -> None:
    told = reader.get("/v1/thresholds").json()
    assert (told["metric"], told["calibrated"], told["reason"]) == ("1-trained", True, None)
    rates = [one["rate"] for one in told["rates"]]
    assert (rates[0], len(rates)) == (0.5, 60)
    assert rates[-1] == pytest.approx(1 / CHIPS)
    scores = [one["threshold"]["value"] for one in told["rates"]]
    assert scores == sorted(scores)
    metric = Gallery.open(made).read_metric("1-trained")
    assert scores[0] == pytest.approx(float(metric.threshold(0.5)))
    assert reader.get("/v1/thresholds", params={"metric": "9-none"}).status_code == 404
    none = reader.get("/v1/thresholds", params={"metric": "cosine"}).json()
    assert (none["rates"], none["distributions"]) == ([], None)
    assert "calibrate" in none["reason"]


def answered(gallery: Gallery, body: SearchBody, image: bytes | None = None) -> dict[str, Any]:
    served = ServedGallery(gallery, ServiceSettings())

    async def main() -> dict[str, Any]:
        async with served.running():
            results, example = await search(served, body, image, 10)
            assert example is not None
            return search_answer(results, *example)

    return asyncio.run(main())


def test_nothing_cannot_be_searched_for(made: Path) -> None:
    with pytest.raises(Problem, match="say what to find"):
        answered(Gallery.open(made), SearchBody(counter_examples=["a"]))


def test_an_image_is_one_more_example_and_the_first(made: Path) -> None:
    gallery = Gallery.open(made)
    image, chip = encoded(pixels(0, 0)), gallery.snapshot.ids[3].as_py()
    answer = answered(gallery, SearchBody(examples=[chip], k=5), image)
    wanted = gallery.search([image, chip], k=5)
    assert [hit["id"] for hit in answer["hits"]] == [hit.id for hit in wanted.hits]
    assert answer["query"] == wanted.query == "2 examples"
    assert answer["example"]["chip"] is None
    assert len(answer["example"]["embedding"]) == 8
    assert answer["example"]["thumbnail"].startswith("data:image/jpeg;base64,")


def test_a_file_is_never_opened_even_if_its_name_was_a_chip_a_moment_ago(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(encoded(pixels(0, 0)))
    monkeypatch.setattr(
        ServedGallery, "check_chips", lambda self, names: None
    )  # as if it had gone right after the check
    for body in (
        SearchBody(examples=[str(secret)]),
        SearchBody(examples=[[1.0] * 8, str(secret)]),
        SearchBody(examples=[[1.0] * 8], counter_examples=[str(secret)]),
    ):
        with pytest.raises(GalleryError, match="has no chip"):
            answered(gallery, body)
    with pytest.raises(InputError, match="not a path"):
        gallery.answer(SearchRequest(examples=secret), files=False)
    assert len(gallery.search(str(secret), k=3)) == 3


def test_embeddings_of_one_object_are_one_example_and_returned(made: Path) -> None:
    views = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
    answer = answered(Gallery.open(made), SearchBody(examples=[views.tolist()], k=2))
    np.testing.assert_allclose(answer["example"]["embedding"], views)
    assert (answer["query"], answer["example"]["thumbnail"]) == ("an embedding", None)
