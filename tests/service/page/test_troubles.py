"""What the page says when something goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.service.page.actions import (
    TANKER,
    Opened,
    Serving,
    search_tanker,
    text,
    until,
)
from tests.service.page_server import PageServer

from lookdown import Gallery

pytestmark = pytest.mark.browser


def test_what_is_no_image_says_what_to_do(opened: Opened, reading: PageServer, tmp_path: Path) -> None:
    page = opened(reading, expected=("415",))
    bad = tmp_path / "notes.png"
    bad.write_text("not an image")
    page.set_input_files("#file", bad)
    page.wait_for_selector("#banner:not([hidden])")
    assert "not taken" in text(page, "#banner")
    page.click("#banner button")
    assert page.locator("#banner").is_hidden()


def test_an_image_that_is_too_large_can_be_cut(opened: Opened, serving: Serving, made: Path, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (200, 200, 3), dtype=np.uint8)
    large = tmp_path / "large.png"
    Image.fromarray(noise).save(large)
    server = serving(Gallery.open(made), upload_bytes=60_000)
    page = opened(server)
    page.set_input_files("#file", large)
    page.wait_for_selector("#crop[open]")
    assert "60 kB" in text(page, "#crop-problem")
    assert page.locator("#crop-search").is_disabled()
    page.locator("#crop canvas").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_selector("article.card")


@pytest.mark.parametrize(("status", "told"), [(413, "too large"), (429, "too much to do")])
def test_a_refusal_is_explained(opened: Opened, reading: PageServer, status: int, told: str) -> None:
    page = opened(reading, expected=(str(status),))
    problem = json.dumps({"type": "about:blank", "title": "no", "status": status, "detail": "do something else"})
    answer = {
        "status": status,
        "content_type": "application/problem+json",
        "body": problem,
        "headers": {"Retry-After": "3"},
    }
    page.route("**/v1/search", lambda route: route.fulfill(**answer))
    page.locator(TANKER).first.click()
    page.wait_for_selector("#banner:not([hidden])")
    assert told in text(page, "#banner")
    assert "Do something else." in text(page, "#banner")
    page.unroute("**/v1/search")
    if status == 429:
        page.click("#banner button:text('Try again')")
        page.wait_for_selector("article.card")
        assert page.locator("#banner").is_hidden()


def test_a_lost_server_is_waited_for(opened: Opened, learning: PageServer) -> None:
    page = opened(learning, expected=("ERR_CONNECTION", "ERR_EMPTY_RESPONSE"))
    learning.end()
    page.locator(TANKER).first.click()
    page.wait_for_selector("#banner:not([hidden])")
    assert "does not answer" in text(page, "#banner")
    page.click("#banner button:text('Try again now')")
    page.wait_for_timeout(300)
    assert page.locator("#banner").is_visible()
    learning.begin()
    page.wait_for_selector("article.card")  # by itself
    assert page.locator("#banner").is_hidden()


def test_a_token_is_asked_for(opened: Opened, serving: Serving, made: Path) -> None:
    server = serving(Gallery.open(made), token="letmein-letmein-letmein")
    page = opened(server, expected=("401",), ready="#token[open]")
    for _ in range(4):
        page.keyboard.press("Escape")  # nothing works without it, so it stays
    page.wait_for_selector("#token[open]")
    page.fill("#token-text", "wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("#token-told:has-text('refused')")
    page.fill("#token-text", "letmein-letmein-letmein")
    page.keyboard.press("Enter")
    page.wait_for_selector(".card")
    until(page, "document.querySelector('.card img').naturalWidth > 0")
    assert str(page.locator(".card img").first.get_attribute("src")).startswith("blob:")
    page.reload()
    page.wait_for_selector(".card")
    assert page.locator("#token[open]").count() == 0


def test_an_empty_gallery_says_what_to_do(opened: Opened, serving: Serving, tmp_path: Path) -> None:
    server = serving(Gallery.create(tmp_path / "nothing", dimension=8))
    page = opened(server, ready=".empty")
    assert text(page, "#found-title") == "This gallery is empty"
    assert "lookdown index nothing" in text(page, ".empty")
    assert page.locator("#choose").is_disabled()


def test_where_that_nothing_meets_say_so(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    search_tanker(page)
    page.fill("[name=since]", "2031-01-01")
    until(page, "document.querySelector('#found-title').textContent === 'No chip was found'")
    assert "Widen or clear" in text(page, "#notes")
    assert page.locator("#csv").is_disabled()
