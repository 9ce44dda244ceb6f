"""A gallery at work."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.service.galleries import CHIPS, client_of

from lookdown import Gallery
from lookdown.errors import GalleryError
from lookdown.gallery import MetricUpdate
from lookdown.progress import Progress
from lookdown.service.problems import Problem
from lookdown.service.served_gallery import ServedGallery
from lookdown.service.service_settings import ServiceSettings


def test_what_others_change_is_seen_soon(writer: TestClient, gallery: Gallery) -> None:
    other = Gallery.open(gallery.path)
    other.remove(other.snapshot.ids.to_pylist()[:6])
    deadline = time.monotonic() + 10
    while writer.get("/v1/stats").json()["chips"] != CHIPS - 6:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_look_that_fails_is_not_the_last(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def refresh() -> bool:
        looks.append(1)
        if len(looks) == 1:
            raise GalleryError("the disk is gone for a moment")
        if len(looks) == 2:
            raise MemoryError
        return False

    monkeypatch.setattr(gallery, "refresh", refresh)
    with client_of(gallery, refresh_seconds=0.01) as client:
        deadline = time.monotonic() + 10
        while len(looks) < 4:
            assert time.monotonic() < deadline
            assert client.get("/healthz").status_code == 200


def test_names_are_checked_against_what_is_there(made: Path) -> None:
    served = ServedGallery(Gallery.open(made), ServiceSettings())
    served.check_chips([])
    with pytest.raises(Problem, match="no chip '/etc/passwd'"):
        served.check_chips([served.gallery.snapshot.ids[0].as_py(), "/etc/passwd"])
    served.check_metric("cosine")
    with pytest.raises(Problem, match=r"no metric '\.\./x'"):
        served.check_metric("../x")


def test_thresholds_and_the_plane_are_worked_out_once(gallery: Gallery) -> None:
    served = ServedGallery(gallery, ServiceSettings())
    assert served.thresholds("1-trained") is served.thresholds("1-trained")
    first = served.plane()
    assert served.plane() is first
    gallery.remove(gallery.snapshot.ids.to_pylist()[:1])
    assert served.plane() is not first
    for number in range(40):
        served._thresholds["x", number] = {}
    served.thresholds("1-trained")
    assert [*served._thresholds] == [("1-trained", CHIPS - 1)], "what is too much is dropped"


def test_thresholds_that_are_dropped_meanwhile_are_still_told(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dropping(dict[Any, Any]):
        """Stands for another thread that drops everything as soon as something is there."""

        def __setitem__(self, key: Any, value: Any) -> None:
            pass

    served = ServedGallery(gallery, ServiceSettings())
    monkeypatch.setattr(served, "_thresholds", Dropping())
    assert served.thresholds("1-trained")["metric"] == "1-trained"


def test_a_job_waits_for_a_change_and_a_change_is_told_of_a_job(gallery: Gallery) -> None:
    name = gallery.snapshot.ids[0].as_py()
    entered, gate = threading.Event(), threading.Event()

    def slow() -> None:
        with gallery._folder.writing():
            entered.set()
            gate.wait(20)

    def learn(progress: Progress) -> MetricUpdate:
        with gallery._folder.writing():
            entered.set()
            gate.wait(20)
        return MetricUpdate(metric="1-trained", changed=False, helped=False, reason="waited")

    with client_of(gallery) as client, ThreadPoolExecutor(1) as threads:
        served: ServedGallery = client.app.state.served  # type: ignore[attr-defined]
        changing = threads.submit(lambda: client.portal.call(served.change, slow))  # type: ignore[union-attr]
        entered.wait(20)
        job = served.start("adapt", learn)
        time.sleep(0.1)
        assert job.error is None
        entered.clear()
        gate.set()
        changing.result()
        deadline = time.monotonic() + 20
        while job.result is None:
            assert job.error is None, job.message
            assert time.monotonic() < deadline
        gate.clear()
        entered.clear()
        served.start("adapt", learn)
        entered.wait(20)
        refused = client.put("/v1/labels", json={"labels": {name: "x"}})
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:lookdown:busy")
        gate.set()
