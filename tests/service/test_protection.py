"""Host, Origin, token and headers; and how much may be asked for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send
from tests.service.galleries import client_of, encoded, pixels

from lookdown import Gallery
from lookdown.service.problems import Problem
from lookdown.service.protection import LimitsMiddleware, RateLimit, SecurityMiddleware, _loggable, security_headers
from lookdown.service.service_settings import ServiceSettings

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "LOCALHOST:99", "[::1]:8000", "127.0.0.1"])
def test_a_name_of_this_machine_is_answered(reader: TestClient, host: str) -> None:
    assert reader.get("/v1/stats", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000", "10.0.0.1", "", "[::1", "a@127.0.0.1@b"],
)
def test_a_name_that_was_made_to_point_here_is_not(reader: TestClient, host: str) -> None:
    for path in ("/", "/healthz", "/v1/stats"):
        answer = reader.get(path, headers={"host": host})
        assert (answer.status_code, answer.headers["content-type"]) == (421, "application/problem+json")


def test_further_names_can_be_allowed_and_any_address_where_others_reach_it(made: Path) -> None:
    with client_of(Gallery.open(made), host="0.0.0.0", token=TOKEN, hosts=("Archive.Example",)) as client:
        for host, status in (
            ("archive.example:80", 200),
            ("192.168.0.9", 200),
            ("[fe80::1]", 200),
            ("evil.example", 421),
        ):
            headers = {"host": host, "authorization": f"Bearer {TOKEN}"}
            assert client.get("/v1/stats", headers=headers).status_code == status


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://127.0.0.1:8000.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ],
)
def test_what_a_page_of_another_site_sends_is_refused(reader: TestClient, method: str, headers: dict[str, str]) -> None:
    answer = reader.request(method, "/v1/metrics/current", headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:lookdown:origin")
    assert "access-control-allow-origin" not in answer.headers


def test_our_own_page_and_links_are_answered(reader: TestClient) -> None:
    own = {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}
    assert reader.post("/v1/search", json={"examples": [[1.0] * 8]}, headers=own).status_code == 200
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert reader.get("/", headers=link).status_code == 200
    assert reader.post("/v1/teach", headers=link).status_code == 403
    assert reader.options("/v1/search", headers={"origin": "https://evil.example"}).status_code == 403


def test_with_a_token_everything_but_the_page_and_health_wants_it(made: Path) -> None:
    with client_of(Gallery.open(made), token=TOKEN) as client:
        for path in ("/", "/page/api.js", "/healthz"):
            assert client.get(path).status_code == 200
        for path in ("/metrics", "/v1/stats", "/openapi.json", "/v1/chips", "/nothing", "/page", "/healthz/"):
            answer = client.get(path)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="lookdown"'), path
        for wrong in (
            "",
            "Bearer",
            "Bearer ",
            f"Basic {TOKEN}",
            f"Bearer {TOKEN}x",
            f"Bearer {TOKEN[:-1]}",
            "Bearer é",
        ):
            assert client.get("/v1/stats", headers={b"authorization": wrong.encode()}).status_code == 401
        for right in (f"Bearer {TOKEN}", f"bearer  {TOKEN}"):
            assert client.get("/v1/stats", headers={"authorization": right}).status_code == 200
        assert client.get("/openapi.json", headers={"authorization": f"Bearer {TOKEN}"}).json()["security"] == [
            {"token": []}
        ]
        assert client.delete("/v1/chips/x").status_code == 401


def test_who_is_refused_is_held_back_too(made: Path) -> None:
    with client_of(Gallery.open(made), token=TOKEN, requests_a_second=0.1, burst=3) as client:
        guesses = [client.get("/v1/stats", headers={"authorization": f"Bearer {n}"}).status_code for n in range(5)]
        assert guesses == [401, 401, 401, 429, 429]
        right = client.get("/v1/stats", headers={"authorization": f"Bearer {TOKEN}"})
        assert right.status_code == 429, "or a guess could still be tried"
        assert client.get("/v1/stats", headers={"host": "evil.example"}).status_code == 429
        assert client.get("/healthz").status_code == 200


def test_each_change_is_a_line_in_the_log(reader: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "lookdown.service"):
        reader.delete("/v1/chips/a%0Ab")
        reader.put("/v1/labels", json={"labels": {"none": "x"}})
        reader.post("/v1/search", json={"examples": [[1.0] * 8]})
        reader.get("/v1/stats")
        reader.post("/v1/teach", headers={"origin": "https://evil.example"})  # strangers do not fill the log
    assert [record.getMessage() for record in caplog.records if record.name == "lookdown.service"] == [
        "DELETE /v1/chips/a%0Ab from testclient: 403",
        "PUT /v1/labels from testclient: 404",
    ]


def test_a_path_is_one_short_line() -> None:
    assert _loggable("/a\nb\x1b[31m\x85" + "x" * 500) == "/a\\nb\\x1b[31m\\x85" + "x" * 190


def test_every_answer_carries_the_headers(reader: TestClient) -> None:
    for path, host in (
        ("/", "127.0.0.1"),
        ("/v1/stats", "127.0.0.1"),
        ("/nothing", "127.0.0.1"),
        ("/", "evil.example"),
    ):
        headers = reader.get(path, headers={"host": host}).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:;")
        assert "frame-ancestors 'none'; base-uri 'none'; form-action 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "cache-control" in headers
    tiles = security_headers(ServiceSettings(tile_url="https://tiles.example/{z}/{x}/{y}.png"))[
        "Content-Security-Policy"
    ]
    assert "img-src 'self' data: blob: https://tiles.example;" in tiles


def test_a_fault_of_ours_is_told_without_a_trace(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("secret /etc/passwd")

    client = TestClient(SecurityMiddleware(broken, ServiceSettings()), base_url="http://127.0.0.1")
    with caplog.at_level(logging.ERROR):
        answer = client.get("/v1/x")
    assert (answer.status_code, answer.json()["type"]) == (500, "urn:lookdown:fault")
    assert "secret" not in answer.text
    assert "secret" in caplog.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_fault_in_the_middle_of_an_answer_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    async def half(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("late")

    client = TestClient(SecurityMiddleware(half, ServiceSettings()), base_url="http://127.0.0.1")
    with pytest.raises(RuntimeError, match="late"):
        client.get("/")


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
