"""A gallery at work."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.service.galleries import CHIPS, client_of

from lookdown import Gallery
from lookdown.errors import GalleryError
from lookdown.service.problems import Problem
from lookdown.service.served import Served
from lookdown.service.settings import Settings


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
        return False

    monkeypatch.setattr(gallery, "refresh", refresh)
    with client_of(gallery, refresh_seconds=0.01) as client:
        deadline = time.monotonic() + 10
        while len(looks) < 3:
            assert time.monotonic() < deadline
            assert client.get("/healthz").status_code == 200


def test_names_are_checked_against_what_is_there(made: Path) -> None:
    served = Served(Gallery.open(made), Settings())
    served.check_chips([])
    with pytest.raises(Problem, match="no chip '/etc/passwd'"):
        served.check_chips([served.gallery.snapshot.ids[0].as_py(), "/etc/passwd"])
    served.check_metric("cosine")
    with pytest.raises(Problem, match=r"no metric '\.\./x'"):
        served.check_metric("../x")


def test_thresholds_and_the_plane_are_worked_out_once(gallery: Gallery) -> None:
    served = Served(gallery, Settings())
    assert served.thresholds("1-trained") is served.thresholds("1-trained")
    first = served.plane()
    assert served.plane() is first
    gallery.remove(gallery.snapshot.ids.to_pylist()[:1])
    assert served.plane() is not first
    for number in range(40):
        served._thresholds["x", number] = {}
    served.thresholds("1-trained")
    assert len(served._thresholds) <= 41
