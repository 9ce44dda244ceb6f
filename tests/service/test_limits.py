"""How much may be asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send
from tests.service.galleries import client_of, encoded, pixels

from lookdown import Gallery
from lookdown.service.limits import LimitsMiddleware, RateLimit
from lookdown.service.problems import Problem
from lookdown.service.service_settings import ServiceSettings


def test_a_bucket_runs_empty_and_fills_again() -> None:
    now = [0.0]
    limit = RateLimit(2.0, 3, lambda: now[0])
    assert [limit.wait("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert limit.wait("b") == 0
    now[0] = 0.5
    assert limit.wait("a") == 0
    assert limit.wait("a") > 0
    now[0] = 1_000.0
    assert [limit.wait("a") for _ in range(4)][-1] == 0.5
    assert not any(RateLimit(0, 1).wait("a") for _ in range(100))


def test_few_clients_are_remembered() -> None:
    limit = RateLimit(1.0, 1)
    for number in range(10_000):
        limit.wait(str(number))
    assert len(limit._buckets) == 4_096


def test_too_many_requests_are_told_when_to_come_again(made: Path) -> None:
    with client_of(Gallery.open(made), requests_a_second=0.1, burst=3) as client:
        assert [client.get("/v1/metrics").status_code for _ in range(4)] == [200, 200, 200, 429]
        refused = client.get("/v1/metrics")
        assert (refused.json()["type"], int(refused.headers["retry-after"])) == ("urn:lookdown:limit", 10)
        assert refused.headers["x-content-type-options"] == "nosniff"
        assert client.get("/healthz").status_code == 200


def test_a_body_is_refused_by_its_announced_size_and_while_it_arrives(made: Path) -> None:
    with client_of(Gallery.open(made), upload_bytes=10_000, json_bytes=5_000) as client:
        large = {"image": b"\xff\xd8\xff" + bytes(200_000)}
        assert client.post("/v1/search", files=large).status_code == 413
        assert client.post("/v1/search", json={"examples": ["x" * 6_000]}).status_code == 413
        drawn = 0

        def endless() -> Iterator[bytes]:
            nonlocal drawn
            for _ in range(10_000):
                drawn += 1
                yield bytes(1_000)

        answer = client.put("/v1/labels", content=endless(), headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["type"]) == (413, "urn:lookdown:too-large")
        assert client.post("/v1/search", files={"image": encoded(pixels(0, 0))}).status_code == 200


def run(app: LimitsMiddleware, messages: list[Message | None], **headers: str) -> None:
    """Ask with a body that comes in these messages; after None it does not come on."""
    scope: Scope = {
        "type": "http", "path": "/x", "method": "POST", "client": ("1.2.3.4", 5),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    rest = iter(messages)

    async def receive() -> Message:
        message = next(rest)
        if message is None:
            await asyncio.sleep(60)
            raise AssertionError
        return message

    async def send(message: Message) -> None:
        pass

    asyncio.run(app(scope, receive, send))


async def reading(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass


def test_bytes_are_counted_as_they_come_and_one_that_stalls_is_let_go() -> None:
    app = LimitsMiddleware(reading, ServiceSettings(json_bytes=10, body_seconds=0.05))
    part: Message = {"type": "http.request", "body": b"12345", "more_body": True}
    last: Message = {"type": "http.request", "body": b"", "more_body": False}
    run(app, [part, part, last])
    with pytest.raises(Problem) as refused:
        run(app, [part, part, part, None])
    assert refused.value.status_code == 413
    with pytest.raises(Problem) as slow:
        run(app, [part, None])
    assert slow.value.status_code == 408
    with pytest.raises(Problem, match="413"):
        run(app, [], content_length="11")


def test_requests_at_work_are_bounded() -> None:
    async def nested(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)

    app = LimitsMiddleware(nested, ServiceSettings(in_flight=3))
    with pytest.raises(Problem) as refused:
        run(app, [])
    assert (refused.value.status_code, refused.value.headers) == (429, {"Retry-After": "1"})
    assert app._requests == 0


def test_bytes_are_bounded_and_given_back() -> None:
    part: Message = {"type": "http.request", "body": b"12345", "more_body": True}
    last: Message = {"type": "http.request", "body": b"12345", "more_body": False}

    async def twice(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await app(scope, receive, send)

    app = LimitsMiddleware(twice, ServiceSettings(bytes_at_work=14))
    with pytest.raises(Problem) as refused:
        run(app, [part, last])  # the second counts once for each of the two requests
    assert (refused.value.status_code, refused.value.headers) == (429, {"Retry-After": "1"})
    assert (app._requests, app._bytes) == (0, 0)


def test_a_client_of_starlette_has_an_address(reader: TestClient) -> None:
    assert reader.get("/healthz").status_code == 200
