"""What the gallery holds, over HTTP."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.service.galleries import CHIPS, client_of

from lookdown import Gallery


def test_the_service_says_that_it_is_up(reader: TestClient) -> None:
    assert reader.get("/healthz").json() == {"status": "ok"}
    for path in ("/", "/healthz"):
        assert reader.head(path).status_code == 200


def test_stats_count_what_is_there(reader: TestClient, made: Path) -> None:
    told = reader.get("/v1/stats").json()
    stats = Gallery.open(made).stats()
    assert (told["name"], told["chips"], told["with_place"]) == ("bars", CHIPS, stats.placed)
    assert sum(told["labels"].values()) == stats.labelled
    assert told["background"] + told["unlabelled"] + stats.labelled == CHIPS
    assert told["times"] == {"first": "2025-01-03T10:00:00Z", "last": "2025-12-03T10:00:00Z"}
    assert told["bounds"][0] == 4.0
    assert told["sensors"] == ["S2A"]
    assert told["metric"] == {"name": "1-trained", "about": "fitted to bars", "calibrated": True}
    assert (told["can_embed"], told["access"], told["tile_url"]) == (True, "learn", None)
    assert told["lowest_rate"] == 1 / CHIPS


def test_the_map_is_the_plane_of_most_variance(reader: TestClient, made: Path) -> None:
    points = reader.get("/v1/embedding-map").json()["points"]
    assert len(points) == CHIPS
    snapshot = Gallery.open(made).snapshot
    x = snapshot.embeddings().astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    largest = np.linalg.svd(x - x.mean(axis=0))[1]
    found = np.array([[point["x"], point["y"]] for point in points])
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), largest[:2], rtol=1e-6)
    some = [points[3]["id"], points[50]["id"]]
    assert reader.get("/v1/embedding-map", params={"ids": some}).json()["points"] == [points[3], points[50]]
    assert len(reader.get("/v1/embedding-map", params={"limit": 7}).json()["points"]) == 7
    assert reader.get("/v1/embedding-map", params={"ids": ["none"]}).status_code == 404
    assert reader.get("/v1/embedding-map", params={"limit": 5001}).status_code == 422


def test_what_metrics_were_taught_by_is_not_read_to_check_a_name(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never() -> None:
        raise AssertionError("every note was read")

    monkeypatch.setattr(gallery, "metrics", never)
    with client_of(gallery) as client:
        assert client.get("/v1/stats").status_code == 200
        assert client.get("/v1/thresholds", params={"metric": "1-trained"}).status_code == 200
        assert client.get("/v1/thresholds", params={"metric": "9-none"}).status_code == 404
        assert client.delete("/v1/metrics/9-none").status_code == 404


def test_counters_go_by_the_route_and_not_by_the_path(gallery: Gallery) -> None:
    with client_of(gallery) as client:
        client.get("/v1/chips/one-of-many")
        client.get("/one-of-many")
        told = client.get("/metrics").text
    assert 'lookdown_requests_total{method="GET",route="/v1/chips/{id}",status="404"} 1.0' in told
    assert "one-of-many" not in told
    assert f"lookdown_gallery_chips {float(CHIPS)}" in told
