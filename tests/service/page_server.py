"""A service on a free port of this machine, and a browser whose troubles are noted, for the tests of the page."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.request import Request, urlopen

import pytest
import uvicorn

from lookdown import Gallery
from lookdown.service import ServiceSettings, create_app
from lookdown.service.server import address, listen

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE = 30.0  # seconds for a server to begin or to end


class PageServer:
    """A service in a thread of this process; it can be ended and begun again at the same address."""

    def __init__(self, gallery: Gallery, **settings: Any) -> None:
        self.gallery = gallery
        self._settings: dict[str, Any] = {"port": 0, "refresh_seconds": 0.05, "access": "learn", **settings}
        self.begin()

    def begin(self) -> None:
        settings = ServiceSettings(**self._settings)
        socket = listen(settings)
        self.url = address(settings, socket)
        self._settings["port"] = socket.getsockname()[1]
        app = create_app(self.gallery, settings)
        config = uvicorn.Config(app, lifespan="on", ws="none", log_level="error", timeout_graceful_shutdown=2)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [socket]}, daemon=True)
        self._thread.start()
        limit = time.monotonic() + _PATIENCE
        while not self._server.started:
            assert time.monotonic() < limit, "the service did not start"
            time.sleep(0.02)

    def end(self) -> None:
        self._server.should_exit = True
        self._thread.join(_PATIENCE)
        assert not self._thread.is_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._thread.is_alive():
            self.end()

    def get(self, path: str) -> Any:
        """Return what a route answers."""
        with urlopen(f"{self.url}{path}") as answer:
            return json.load(answer)

    def search(self, **asked: Any) -> Any:
        """Return what the service itself answers, to compare the page with."""
        return self._post(json.dumps(asked).encode(), "application/json")

    def search_image(self, image: bytes, **asked: Any) -> Any:
        """Return what it answers to an image."""
        parts = (
            b'--part\r\nContent-Disposition: form-data; name="image"; filename="image.png"\r\n\r\n' + image,
            b'\r\n--part\r\nContent-Disposition: form-data; name="request"\r\n\r\n' + json.dumps(asked).encode(),
            b"\r\n--part--\r\n",
        )
        return self._post(b"".join(parts), "multipart/form-data; boundary=part")

    def _post(self, body: bytes, kind: str) -> Any:
        with urlopen(Request(f"{self.url}/v1/search", body, {"Content-Type": kind})) as answer:
            return json.load(answer)


@dataclass
class Watched:
    """A page and what its console has complained about."""

    page: Page
    troubles: list[str] = field(default_factory=list)

    def hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(message.text)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield a headless browser; the test is skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    with api.sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
        path = next(filter(None, map(shutil.which, _BROWSERS)), str(own) if own.exists() else None)
        if path is None:
            pytest.skip("no chromium on this machine: install Debian's, or run `playwright install chromium`")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def watched(browser: Browser, **options: Any) -> Watched:
    """Return a new page in a context of its own."""
    page = browser.new_context(**{"viewport": {"width": 1440, "height": 1000}, **options}).new_page()
    page.set_default_timeout(20_000)
    found = Watched(page)
    page.on("console", found.hear)
    page.on("pageerror", lambda error: found.troubles.append(str(error)))
    return found
