"""The service as a whole: the loop stays free, and what is too much is refused."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.service.galleries import client_of, encoded, pixels

from lookdown import Gallery
from lookdown.gallery import MetricUpdate
from lookdown.service import create_app


def test_the_loop_answers_while_a_job_and_a_search_run(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def slow_adapt(*_: object, **__: object) -> MetricUpdate:
        gate.wait(20)
        return MetricUpdate(metric="1-trained", changed=False, helped=False, reason="slept")

    real = gallery.answer

    def slow_search(*arguments: object, **options: object) -> object:
        gate.wait(20)
        return real(*arguments, **options)  # type: ignore[arg-type]

    name = gallery.snapshot.ids[0].as_py()
    with client_of(gallery) as client, ThreadPoolExecutor(4) as threads:
        monkeypatch.setattr(gallery, "adapt", slow_adapt)
        monkeypatch.setattr(gallery, "answer", slow_search)  # now that the service has searched to be warm
        job = client.post("/v1/adapt", json={}).json()
        searches = [threads.submit(client.post, "/v1/search", json={"examples": [name]}) for _ in range(3)]
        begin = time.monotonic()
        for _ in range(20):
            assert client.get("/healthz").status_code == 200
            assert client.get("/v1/stats").status_code == 200
        assert time.monotonic() - begin < 5
        assert client.get(f"/v1/jobs/{job['id']}").json()["status"] == "running"
        assert not any(search.done() for search in searches)
        gate.set()
        assert [search.result().status_code for search in searches] == [200] * 3


def test_searches_that_would_wait_too_long_are_refused(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    real = gallery.answer

    def slow(*arguments: object, **options: object) -> object:
        gate.wait(20)
        return real(*arguments, **options)  # type: ignore[arg-type]

    asked = {"examples": [[1.0] * 8]}
    with client_of(gallery, searchers=1, waiting=2) as client, ThreadPoolExecutor(8) as threads:
        monkeypatch.setattr(gallery, "answer", slow)
        answers = [threads.submit(client.post, "/v1/search", json=asked) for _ in range(8)]
        deadline = time.monotonic() + 20
        while sum(answer.done() for answer in answers) < 5:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        gate.set()
        statuses = sorted(answer.result().status_code for answer in answers)
        refused = next(answer.result() for answer in answers if answer.result().status_code == 429)
    assert statuses == [200] * 3 + [429] * 5
    assert (refused.headers["retry-after"], refused.json()["type"]) == ("1", "urn:lookdown:limit")


def test_a_search_that_takes_too_long_is_given_up(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def stuck(*_: object, **__: object) -> None:
        gate.wait(20)

    with client_of(gallery, answer_seconds=0.1) as client:
        monkeypatch.setattr(gallery, "answer", stuck)
        answer = client.post("/v1/search", json={"examples": [[1.0] * 8]})
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:lookdown:slow")
        gate.set()


def test_two_services_in_one_process_do_not_mix(made: Path) -> None:
    with client_of(Gallery.open(made)) as one, client_of(Gallery.open(made), access="read") as other:
        assert one.get("/v1/stats").json()["access"] == "learn"
        assert other.get("/v1/stats").json()["access"] == "read"
        assert one.post("/v1/search", files={"image": encoded(pixels(0, 1))}).status_code == 200
    app = create_app(Gallery.open(made))
    assert TestClient(app, base_url="http://127.0.0.1").get("/healthz").status_code == 200
