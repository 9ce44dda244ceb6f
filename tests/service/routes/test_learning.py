"""Labels, metrics and jobs over HTTP."""

from __future__ import annotations

import time
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.service.galleries import client_of

from lookdown import Gallery


def finished(client: TestClient, started: Any) -> Any:
    """Return a job once it has ended."""
    assert started.status_code == 202, started.text
    deadline = time.monotonic() + 60
    while True:
        job = client.get(f"/v1/jobs/{started.json()['id']}").json()
        if job["status"] in ("done", "failed"):
            return job
        assert time.monotonic() < deadline, job
        time.sleep(0.02)


def test_labels_are_given_and_taken_back(writer: TestClient, gallery: Gallery) -> None:
    names = gallery.snapshot.ids.to_pylist()
    told = {"labels": {names[0]: "lighter", names[1]: None}, "background": [names[2]]}
    answer = writer.put("/v1/labels", json=told).json()
    assert answer["changed"] == 3
    assert answer["before"][names[0]] == {"label": "tanker", "background": False, "marked": False}
    chip = writer.get("/v1/chips", params={"limit": 500}).json()["chips"]
    now = {one["id"]: one for one in chip}
    assert (now[names[0]]["label"], now[names[0]]["marked"]) == ("lighter", True)
    assert now[names[1]]["label"] is None
    assert now[names[2]]["background"] is True
    before = answer["before"]
    back = {
        "labels": {name: mark["label"] for name, mark in before.items() if not mark["background"]},
        "background": [name for name, mark in before.items() if mark["background"]],
        "marked": False,
    }
    assert writer.put("/v1/labels", json=back).status_code == 200
    gallery.refresh()
    row = int(gallery.snapshot.find([names[0]])[0])
    assert gallery.snapshot.columns.labels[row] == "tanker"
    assert gallery.stats().marked == 0, "what came with the chips is nobody's again"
    assert writer.put("/v1/labels", json={}).json() == {"changed": 0, "before": {}}


def test_what_another_process_said_meanwhile_is_what_undoing_puts_back(gallery: Gallery) -> None:
    name = gallery.snapshot.ids.to_pylist()[0]
    with client_of(gallery, refresh_seconds=60) as client:
        assert Gallery.open(gallery.path).label([name], ["barge"])[name] == ("tanker", False, False)
        answer = client.put("/v1/labels", json={"labels": {name: "lighter"}}).json()
    assert answer["before"] == {name: {"label": "barge", "background": False, "marked": True}}


def test_a_calibration_is_of_the_metric_that_was_in_use_when_it_was_asked_for(gallery: Gallery) -> None:
    gallery.adapt(clusters=5, labels="all", use=False)
    with client_of(gallery) as client:
        served = client.app.state.served  # type: ignore[attr-defined]
        with served._write_lock:
            started = client.post("/v1/calibrate", json={})
            gallery.use("2-adapted")
        job = finished(client, started)
    assert job["status"] == "done", job
    assert gallery.about_metric(job["result"]["metric"]).base == "1-trained"


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({"labels": {"none": "x"}}, 404),
        ({"labels": {"none": ""}}, 422),
        ({"labels": ["a"]}, 422),
        ({"background": ["/etc/passwd"]}, 404),
        ({"label": {}}, 422),
    ],
)
def test_labels_for_what_is_not_there_are_refused(writer: TestClient, told: Any, status: int) -> None:
    assert writer.put("/v1/labels", json=told).status_code == status


def test_a_chip_named_twice_is_refused(writer: TestClient, gallery: Gallery) -> None:
    name = gallery.snapshot.ids.to_pylist()[0]
    answer = writer.put("/v1/labels", json={"labels": {name: "a"}, "background": [name]})
    assert (answer.status_code, "named twice" in answer.json()["detail"]) == (422, True)


def test_a_metric_is_adapted_compared_kept_and_dropped(writer: TestClient, gallery: Gallery) -> None:
    job = finished(writer, writer.post("/v1/adapt", json={"clusters": 5, "method": "auto", "labels": "all"}))
    assert (job["kind"], job["status"], job["progress"]) == ("adapt", "done", 1.0)
    name = job["result"]["metric"]
    assert name == "2-adapted"
    known = writer.get("/v1/metrics").json()
    assert (known["current"], [one["name"] for one in known["metrics"]]) == ("1-trained", ["1-trained", name])
    chip = gallery.snapshot.ids.to_pylist()[0]
    assert writer.post("/v1/search", json={"examples": [chip], "metric": name}).json()["metric"] == name
    assert writer.put("/v1/metrics/current", json={"name": name}).json()["current"] == name
    assert writer.post("/v1/search", json={"examples": [chip]}).json()["metric"] == name
    in_use = writer.delete(f"/v1/metrics/{name}")
    assert (in_use.status_code, "in use" in in_use.json()["detail"]) == (409, True)
    assert writer.put("/v1/metrics/current", json={"name": "1-trained"}).status_code == 200
    assert writer.delete("/v1/metrics/1-trained").status_code == 409
    assert writer.delete(f"/v1/metrics/{name}").status_code == 204
    assert writer.delete(f"/v1/metrics/{name}").status_code == 404
    assert writer.post("/v1/search", json={"examples": [chip], "metric": name}).status_code == 404
    assert writer.put("/v1/metrics/current", json={"name": name}).status_code == 404


def test_marks_teach_and_calibrate_without_being_put_into_use(writer: TestClient, gallery: Gallery) -> None:
    first = finished(writer, writer.post("/v1/teach", json={}))
    assert first["status"] == "done"
    names = gallery.snapshot.ids.to_pylist()
    labels = {name: f"kind {place % 5}" for place, name in enumerate(names[:40])}
    assert writer.put("/v1/labels", json={"labels": labels}).status_code == 200
    taught = finished(writer, writer.post("/v1/teach"))
    assert taught["result"]["changed"] is True
    measured = finished(writer, writer.post("/v1/calibrate", json={}))
    assert measured["result"]["metric"].endswith("-calibrated")
    assert "calibrated on" in measured["message"]
    assert writer.get("/v1/metrics").json()["current"] == "1-trained"


def test_a_job_that_fails_says_why_without_a_path(tmp_path: Any) -> None:
    empty = Gallery.create(tmp_path / "empty", dimension=3)
    with client_of(empty) as client:
        job = finished(client, client.post("/v1/adapt", json={}))
        assert (job["status"], job["result"]) == ("failed", None)
        assert (job["error"]["status"], job["error"]["type"]) == (409, "urn:lookdown:gallery")
        assert job["message"].startswith("empty holds no chips yet")
        assert str(tmp_path) not in str(job)
        assert client.get("/v1/stats").json()["chips"] == 0
        assert client.get("/v1/chips").json() == {"chips": [], "total": 0}
        assert client.get("/v1/embedding-map").json() == {"points": []}
        assert client.get("/v1/thresholds").status_code == 200
        assert client.post("/v1/search", json={"examples": [[1, 2, 3]]}).json()["hits"] == []


def test_an_unknown_job_and_a_wrong_request_are_refused(reader: TestClient) -> None:
    assert reader.get("/v1/jobs/none").status_code == 404
    told: Any
    for told in ({"clusters": 1}, {"clusters": "many"}, {"method": "magic"}, {"labels": "some"}, {"k": 3}, []):
        assert reader.post("/v1/adapt", json=told).status_code == 422
    assert reader.post("/v1/teach", json={"x": 1}).status_code == 422


def test_reading_alone_learns_nothing(gallery: Gallery) -> None:
    with client_of(gallery, access="read") as client:
        for method, path in (
            ("PUT", "/v1/labels"), ("PUT", "/v1/metrics/current"), ("DELETE", "/v1/metrics/x"), ("POST", "/v1/adapt"),
            ("POST", "/v1/teach"), ("POST", "/v1/calibrate"),
        ):  # fmt: skip
            body = {"name": "x"} if path.endswith("current") else {}
            answer = client.request(method, path, json=body)
            assert (answer.status_code, answer.json()["type"]) == (403, "urn:lookdown:access"), path
        assert client.get("/v1/metrics").status_code == 200


def test_another_writer_is_told_as_such(writer: TestClient, gallery: Gallery) -> None:
    name = gallery.snapshot.ids.to_pylist()[0]
    with gallery._folder.writing():
        answer = writer.put("/v1/labels", json={"labels": {name: "x"}})
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:lookdown:busy")
    assert answer.headers["retry-after"] == "2"
    assert str(gallery.path) not in answer.text
    assert writer.put("/v1/labels", json={"labels": {name: "x"}}).status_code == 200
