"""The service as a process of its own on a free port."""

from __future__ import annotations

import http.client
import re
import resource
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.service.galleries import encoded, pixels
from tests.service.processes import process
from typer.testing import CliRunner

from lookdown import Gallery
from lookdown.cli import app
from lookdown.errors import InputError, LookdownError
from lookdown.service.server import _config, address, listen
from lookdown.service.service_settings import ServiceSettings

SLOW = (
    "import sys, time; from pathlib import Path; from lookdown.gallery import Gallery;"
    "from lookdown.service import ServiceSettings; from lookdown.service.server import serve;"
    "gallery = Gallery.open(sys.argv[1]); real = gallery.answer;"
    "gallery.answer = lambda *a, **k: (Path(sys.argv[2]).touch(), time.sleep(1), real(*a, **k))[-1];"
    "serve(gallery, ServiceSettings(port=0), lambda told: print(told, flush=True))"
)


def ask(port: int, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def form(image: bytes) -> tuple[bytes, str]:
    body = b'--b\r\nContent-Disposition: form-data; name="image"; filename="x"\r\n\r\n' + image + b"\r\n--b--\r\n"
    return body, "multipart/form-data; boundary=b"


def test_it_serves_and_a_signal_ends_it_in_good_order(made: Path) -> None:
    with process("-m", "lookdown", "serve", str(made), "--port", "0") as (started, port):
        assert ask(port, "GET", "/healthz") == (200, b'{"status":"ok"}')
        body, kind = form(encoded(pixels(1, 1)))
        assert ask(port, "POST", "/v1/search", body, content_type=kind)[0] == 200
        assert ask(port, "GET", "/v1/stats", host="evil.example")[0] == 421
        assert ask(port, "POST", "/v1/teach", b"", origin="http://evil.example")[0] == 403
        for path in (
            "/page/../app.py",
            "/page/%2e%2e/app.py",
            "/../../../etc/passwd",
            "/v1/chips/..%2f..%2fetc%2fpasswd",
        ):
            status, content = ask(port, "GET", path)
            assert status == 404
            assert b"import" not in content
        raw = _raw(
            port, b"GET /page/../../../../../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        )
        assert raw.startswith(b"HTTP/1.1 404")
        assert b"server:" not in raw.lower()
        assert _raw(port, b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 4")
        started.send_signal(signal.SIGTERM)
        assert started.wait(20) == 0
        assert started.stderr is not None
        assert "Traceback" not in started.stderr.read()


@pytest.mark.kill
def test_a_running_request_is_finished_before_the_end(made: Path, tmp_path: Path) -> None:
    entered = tmp_path / "entered"
    with process("-c", SLOW, str(made), str(entered)) as (started, port):
        entered.unlink()  # the service has searched to be warm
        answers: list[tuple[int, bytes]] = []
        asked = b'{"examples": [[1, 1, 1, 1, 1, 1, 1, 1]], "k": 3}'
        asking = threading.Thread(
            target=lambda: answers.append(ask(port, "POST", "/v1/search", asked, content_type="application/json"))
        )
        asking.start()
        deadline = time.monotonic() + 20
        while not entered.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        started.send_signal(signal.SIGINT)
        asking.join(20)
        assert answers[0][0] == 200
        assert started.wait(20) == 0
        with pytest.raises(OSError, match="refused"):
            ask(port, "GET", "/healthz")


STUCK = (
    "import sys, time; from pathlib import Path; from lookdown.gallery import Gallery;"
    "from lookdown.service import ServiceSettings, served_gallery as served; from lookdown.service.server import serve;"
    "served.read_upload = lambda *a, **k: (Path(sys.argv[2]).touch(), time.sleep(300));"
    "settings = ServiceSettings(port=0, shutdown_seconds=1, header_seconds=0.5);"
    "serve(Gallery.open(sys.argv[1]), settings, lambda told: print(told, flush=True))"
)


@pytest.mark.kill
def test_an_image_that_is_decoded_for_ever_does_not_hold_up_the_end(made: Path, tmp_path: Path) -> None:
    with process("-c", STUCK, str(made), str(tmp_path / "begun")) as (started, port):
        body, kind = form(encoded(pixels(1, 1)))

        def upload() -> None:
            with suppress(OSError, http.client.HTTPException):
                ask(port, "POST", "/v1/search", body, content_type=kind)

        asking = threading.Thread(target=upload)
        asking.start()
        deadline = time.monotonic() + 20
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        started.send_signal(signal.SIGTERM)
        assert started.wait(15) == 0
        asking.join()


def test_a_damaged_network_is_one_sentence(gallery: Gallery) -> None:
    for file in (gallery.path / "embedder").rglob("*"):
        if file.is_file():
            file.write_bytes(b"damaged")
    refused = CliRunner().invoke(app, ["serve", str(gallery.path), "--port", "0"])
    assert isinstance(refused.exception, LookdownError), refused.exception


def test_connections_leave_room_for_files(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, most in ((100, 50), (resource.RLIM_INFINITY, 1_024)):
        monkeypatch.setattr(resource, "getrlimit", lambda which, soft=soft: (soft, soft))
        assert _config(gallery, ServiceSettings()).limit_concurrency == most


def test_a_taken_port_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen at 127.0.0.1 port {port}: .*; choose another"):
            listen(ServiceSettings(port=port))


def test_the_address_can_be_clicked() -> None:
    with listen(ServiceSettings(port=0)) as listening:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", address(ServiceSettings(port=0), listening))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert address(ServiceSettings(host="::1"), listening).startswith("http://[::1]:")


def _raw(port: int, content: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(content)
        answer = b""
        while part := connection.recv(65_536):
            answer += part
        return answer


IMPATIENT = (
    "import sys; from lookdown.gallery import Gallery;"
    "from lookdown.service import ServiceSettings; from lookdown.service.server import serve;"
    "settings = ServiceSettings(port=0, header_seconds=0.5);"
    "serve(Gallery.open(sys.argv[1]), settings, lambda told: print(told, flush=True))"
)


@pytest.mark.kill
def test_a_header_that_does_not_arrive_is_not_waited_for(made: Path) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with process("-c", IMPATIENT, str(made)) as (_, port):
        for begun in (b"", whole[:20], whole + whole[:20]):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                connection.sendall(begun)
                begin = time.monotonic()
                answer = b""
                while part := connection.recv(65_536):
                    answer += part
                assert 0.3 < time.monotonic() - begin < 10
                assert answer.count(b"200 OK") == (len(begun) > len(whole))
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            for _ in range(2):  # what is kept waits longer than a header may take
                connection.sendall(whole)
                time.sleep(0.8)
                assert b"200 OK" in connection.recv(65_536)
