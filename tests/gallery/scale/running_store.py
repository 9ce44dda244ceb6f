"""A real S3 server on loopback for tests: moto's, in a process of its own, with its data in memory."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import obstore
from obstore.store import S3Store
from tests.gallery.scale.running_milvus import _TIED, free_ports

__all__ = ["BUCKET", "RunningStore"]

BUCKET = "lake"
KEY, SECRET = "AKIDLOOKDOWNTESTS", "not-so-secret-of-the-tests"
_CLOCK = "/clock-of-the-tests"  # takes the seconds by which it shall be ahead
_PATIENCE = 120.0  # seconds, for a machine that is busy with other things


class RunningStore:
    """One server, with one bucket."""

    def __init__(self, folder: Path) -> None:
        self.port = free_ports(1)[0]
        self.uri = f"http://127.0.0.1:{self.port}"
        command = [
            sys.executable,
            "-c",
            _TIED,
            sys.executable,
            "-m",
            "tests.gallery.scale.running_store",
            str(self.port),
        ]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._ahead = 0.0  # seconds
        self._log = folder / "store.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._until_well()
        self.ask("PUT", f"/{BUCKET}")

    @property
    def environment(self) -> dict[str, str]:
        """What a user sets to get there."""
        known = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
        nothing = {"AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_CONFIG_FILE": os.devnull}
        return known | nothing | {"AWS_ENDPOINT_URL": self.uri, "AWS_REGION": "us-east-1"}

    @property
    def objects(self) -> S3Store:
        """The bucket, to look into and to damage."""
        config: Any = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "aws_endpoint": self.uri}
        return S3Store(BUCKET, config=config, client_options={"allow_http": True})

    def names(self, prefix: str) -> list[str]:
        """Return the objects below an address of the bucket."""
        found: list[Any] = obstore.list(self.objects, prefix).collect()  # type: ignore[assignment]
        return sorted(one["path"] for one in found)

    def read(self) -> list[tuple[str, str, int]]:
        """Return method, path and bytes of the answer of each request so far."""
        lines = [line.split() for line in self._log.read_text().splitlines() if line.startswith("REQUEST ")]
        return [(method, path, int(size)) for _, method, path, size in lines]

    def ask(self, method: str, path: str, body: bytes = b"") -> None:
        """Send a request without a signature."""
        request = urllib.request.Request(
            self.uri + path, data=body, method=method, headers={"Content-Type": "text/plain"}
        )
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            answer.read()

    def let_in(self, everybody: bool) -> None:
        """Let everybody in, or nobody: no key is known to the server."""
        self.ask("POST", "/moto-api/reset-auth", b"1e18" if everybody else b"0")

    def advance(self, seconds: float) -> None:
        """Set its clock forward."""
        self._ahead += seconds
        self.ask("POST", _CLOCK, str(self._ahead).encode())

    def set_right(self) -> None:
        """Set its clock back to the true time."""
        if self._ahead:
            self.advance(-self._ahead)

    def pause(self) -> None:
        """Make it stand still: connections are taken, and nobody answers."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer what has come in meanwhile."""
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def _until_well(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"the store ended with {self._process.returncode}: {self._log.read_text()[-2000:]}")
            try:
                self.ask("GET", "/moto-api/data.json")
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"the store was not well after {_PATIENCE:.0f} s; see {self._log}")


def serve(port: int) -> None:
    """Answer one request after another, so that a condition and what it decides are one step, as S3 promises."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, run_simple

    moto, one = DomainDispatcherApplication(create_backend_app), threading.Lock()
    models: Any = importlib.import_module("moto.s3.models")
    real, ahead = models.utcnow, timedelta()
    models.utcnow = lambda: real() + ahead

    class Quiet(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: Any) -> None: ...

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        nonlocal ahead
        with one:
            if environ["PATH_INFO"] == _CLOCK:
                ahead = timedelta(seconds=float(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))))
                start("200 OK", [])
                return []
            body = b"".join(moto(environ, start))
            print("REQUEST", environ["REQUEST_METHOD"], environ["PATH_INFO"].replace(" ", "+"), len(body), flush=True)
        return [body]

    run_simple("127.0.0.1", port, answer, threaded=True, request_handler=Quiet)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
