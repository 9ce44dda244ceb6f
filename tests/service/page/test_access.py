"""The page by keys, on small screens, and by ear."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.service.galleries import KINDS
from tests.service.page.actions import (
    Opened,
    a_scene,
    mark,
    search_tanker,
    settled,
    slide,
    text,
    until,
)
from tests.service.page_server import PageServer

pytestmark = pytest.mark.browser


def test_a_small_screen_does_not_scroll_sideways(opened: Opened, reading: PageServer, tmp_path: Path) -> None:
    page = opened(reading, viewport={"width": 360, "height": 740}, has_touch=True)

    def width() -> int:
        return int(page.evaluate("document.documentElement.scrollWidth"))

    assert width() <= 360
    search_tanker(page)
    mark(page, 0, "right")
    page.click("#filters summary")
    page.click("#embeddings summary")
    assert width() <= 360
    page.set_input_files("#file", a_scene(tmp_path))
    page.wait_for_selector("#crop[open]")
    assert width() <= 360
    page.locator("#crop-search").tap()
    until(page, "document.querySelectorAll('#searches .search').length === 2")


def test_one_region_speaks_once_the_slider_rests(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    search_tanker(page)
    live = "main :is([aria-live=polite], [role=status], output:not([aria-live=off]))"
    assert page.locator(f"{live}:visible").evaluate_all("all => all.map((one) => one.id)") == ["job-told"]
    page.wait_for_timeout(800)
    page.evaluate(
        """() => {
            const place = document.querySelector("#spoken");
            window.spoken = [];
            new MutationObserver(() => window.spoken.push(place.textContent)).observe(place, { childList: true });
        }"""
    )
    for rate in (0.4, 0.3, 0.2):
        slide(page, rate, let_go=rate == 0.2)
    settled(page)
    until(page, "window.spoken.length > 0")
    page.wait_for_timeout(800)
    assert page.evaluate("window.spoken") == [f"{text(page, '#found-told')}. {text(page, '#expected')}"]
    search_again = page.locator("article.card").nth(1)
    search_again.locator(".right").click()
    page.click("#again")
    until(page, "document.querySelectorAll('#searches .search').length === 2")
    assert "not supported" in str(page.locator("#slider").get_attribute("aria-valuetext"))


def test_keys_alone_do(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)

    def tab_to(place: str) -> None:
        for _ in range(80):
            if page.evaluate("place => document.activeElement?.matches(place) ?? false", place):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{place} is not reached")

    tab_to("a.skip")
    tab_to(".card")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("article.card:focus")
    settled(page)
    page.keyboard.press("r")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("w")
    assert "is-right" in str(page.locator("article.card").nth(0).get_attribute("class"))
    assert "is-wrong" in str(page.locator("article.card").nth(1).get_attribute("class"))
    page.keyboard.press("w")  # once more takes it away
    assert page.locator("article.is-wrong").count() == 0
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "right"
    tab_to("#slider")
    before = text(page, "#rate")
    page.keyboard.press("ArrowLeft")
    assert text(page, "#rate") != before
    tab_to("#again")
    page.keyboard.press("Enter")
    until(page, "document.querySelectorAll('#searches .search').length === 2")
    page.keyboard.press("Control+z")
    until(page, "document.querySelectorAll('#steps li').length === 4")


def test_places_are_kept_while_results_come_in(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    page.evaluate(
        """() => {
            window.shifted = 0;
            new PerformanceObserver((list) => { for (const one of list.getEntries()) window.shifted += one.value; })
                .observe({ type: "layout-shift", buffered: true });
        }"""
    )
    search_tanker(page)
    slide(page, 0.1)
    page.wait_for_timeout(300)
    assert page.evaluate("window.shifted") < 0.1


def test_kinds_of_the_gallery_can_be_chosen(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    assert sorted(page.locator("#labels .name").all_inner_texts()) == sorted(KINDS)
