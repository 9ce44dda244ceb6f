"""A real browser and the real service for the tests of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.service.page.actions import Opened, Serving
from tests.service.page_server import PageServer, Watched, chromium, watched

from lookdown import Gallery

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def reading(browser: Browser, made: Path) -> Iterator[PageServer]:
    """A service whose gallery nobody changes."""
    with PageServer(Gallery.open(made)) as server:
        yield server


@pytest.fixture
def serving(browser: Browser) -> Iterator[Callable[..., PageServer]]:
    """Start services of the test's own; they end after its pages, or these would complain."""
    with ExitStack() as stack:
        yield lambda gallery, **settings: stack.enter_context(PageServer(gallery, **settings))


@pytest.fixture
def learning(serving: Serving, gallery: Gallery) -> PageServer:
    """A service whose gallery is the test's own."""
    return serving(gallery)


@pytest.fixture
def opened(browser: Browser, serving: Serving) -> Iterator[Opened]:
    """Open the page; in the end its console must be empty but for what the test has expected."""
    pages: list[tuple[Watched, tuple[str, ...]]] = []

    def open_page(server: PageServer, *, expected: tuple[str, ...] = (), ready: str = ".card", **options: Any) -> Page:
        pages.append((watched(browser, **options), expected))
        page = pages[-1][0].page
        page.goto(server.url)
        page.wait_for_selector(ready)
        return page

    yield open_page
    for one, expected in pages:
        one.page.context.close()
        assert [text for text in one.troubles if not any(part in text for part in expected)] == []
