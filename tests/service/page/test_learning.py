"""Marks on the page, and what is learnt by them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.service.page.actions import (
    Opened,
    Serving,
    a_scene,
    cards,
    ids,
    mark,
    search_tanker,
    sent,
    settled,
    slide,
    text,
    until,
)
from tests.service.page_server import PageServer

from lookdown import Gallery

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def test_marks_change_the_ranking_and_can_be_undone(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    chip = search_tanker(page)
    before = cards(page)
    right, wrong = mark(page, 1, "right"), mark(page, 3, "wrong")
    assert page.locator("#examples li").count() == 2
    with page.expect_response("**/v1/search") as asked:
        page.click("#again")
    assert sent(asked.value.request)["examples"] == [chip, right]
    assert sent(asked.value.request)["counter_examples"] == [wrong]
    until(page, "document.querySelectorAll('#searches .search').length === 2")
    settled(page)
    answer = reading.search(examples=[chip, right], counter_examples=[wrong], k=60)
    assert cards(page)[:20] == ids(answer)[:20] != before[:20]
    assert "rough guide" in text(page, "#support")
    assert text(page, "#rate").endswith("?")
    page.click("#undo")  # the search
    until(page, "first => document.querySelector('article.card').dataset.id === first", before[0])
    assert cards(page) == before
    assert page.locator("article.is-right, article.is-wrong").count() == 2
    page.click("#undo")
    assert page.locator("article.is-wrong").count() == 0
    page.locator("#examples button").click()  # takes the last mark away
    assert page.locator("article.is-right").count() == 0
    page.click("#undo")
    assert page.locator("article.is-right").count() == 1


def teach(page: Page) -> None:
    """Mark hits by their labels and teach the metric."""
    slide(page, 0.5)
    settled(page)
    for place, label in enumerate(page.locator("article.card .label").all_inner_texts()[:24]):
        if label != "no label":
            mark(page, place, "right" if label == "tanker" else "wrong")
    page.click("#teach")
    page.wait_for_selector("#comparison[open]")


def test_the_metric_is_taught_and_recalibrated_and_each_step_undone(opened: Opened, learning: PageServer) -> None:
    page = opened(learning)
    search_tanker(page)
    slide(page, 0.5)
    settled(page)
    before = learning.get("/v1/stats")
    known = before["labels"]
    unlabelled = [
        place
        for place, label in enumerate(page.locator("article.card .label").all_inner_texts())
        if label == "no label"
    ]
    for place, how in zip(unlabelled, ("right", "empty", "wrong"), strict=False):
        mark(page, place, how)
    teach(page)
    assert page.locator("#before li").count() == page.locator("#after li").count() == 20
    page.click("#keep")
    page.wait_for_selector("#steps li:has-text('Taught the metric')")
    taught = learning.get("/v1/metrics")["current"]
    assert taught != "1-trained"
    after = learning.get("/v1/stats")  # the wrong one stays without a label: nobody knows what it is
    assert after["labels"] == {**known, "tanker": known["tanker"] + 1}
    assert after["background"] == before["background"] + 1
    assert after["unlabelled"] == before["unlabelled"] - 2
    until(page, "name => document.querySelector('#found-told').textContent.includes(name)", taught)
    page.wait_for_selector("#recalibrate:enabled")
    page.click("#recalibrate")
    page.wait_for_selector("#steps li:has-text('Recalibrated')")
    page.wait_for_selector("#recalibrate:enabled")
    assert learning.get("/v1/metrics")["current"] not in (taught, "1-trained")
    page.click("#undo")
    page.wait_for_selector("#steps li:first-child:has-text('Taught')")
    assert learning.get("/v1/metrics")["current"] == taught
    page.click("#undo")
    page.wait_for_selector("#steps li:first-child:has-text('Labelled')")
    assert learning.get("/v1/metrics")["current"] == "1-trained"
    page.click("#undo")
    page.wait_for_selector("#steps li:first-child:has-text('Marked')")
    assert learning.get("/v1/stats")["labels"] == known
    assert not any(chip["marked"] for chip in learning.get("/v1/chips?limit=500")["chips"])


def test_a_taught_metric_can_be_dropped(opened: Opened, learning: PageServer) -> None:
    page = opened(learning)
    search_tanker(page)
    teach(page)
    page.click("#drop")
    page.wait_for_selector("#teach:enabled")
    assert [one["name"] for one in learning.get("/v1/metrics")["metrics"]] == ["1-trained"]
    assert page.locator("#steps li", has_text="Taught").count() == 0


@pytest.mark.parametrize("kept", [True, False])
def test_adapting_is_compared_and_kept_or_dropped(opened: Opened, learning: PageServer, kept: bool) -> None:
    page = opened(learning)
    search_tanker(page)
    page.fill("#clusters", "one")
    page.click("#adapt")
    assert "at least 2" in text(page, "#banner")
    page.fill("#clusters", "5")
    with page.expect_request("**/v1/adapt") as asked:
        page.click("#adapt")
    assert sent(asked.value)["clusters"] == 5
    page.wait_for_selector("#comparison[open]")
    after = page.locator("#after .name").all_inner_texts()
    page.click("#keep" if kept else "#drop")
    page.wait_for_selector("#adapt:enabled")
    metrics = learning.get("/v1/metrics")
    assert (metrics["current"] != "1-trained") == kept == (len(metrics["metrics"]) == 2)
    if kept:
        assert page.locator("article.card .label").all_inner_texts()[: len(after)] == after
        page.keyboard.press("Control+z")
        page.wait_for_selector("#steps li:first-child:has-text('Searched')")
        assert learning.get("/v1/metrics")["current"] == "1-trained"


def test_a_server_that_only_reads_says_so(opened: Opened, serving: Serving, made: Path) -> None:
    server = serving(Gallery.open(made), access="read")
    page = opened(server)
    search_tanker(page)
    mark(page, 0, "right")
    for button in ("#teach", "#recalibrate", "#adapt"):
        assert page.locator(button).is_disabled()
    assert "--access learn" in text(page, "#learning-told")
    assert page.locator("#again").is_enabled()


def test_marks_that_were_not_searched_with_are_kept(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    chip = search_tanker(page)
    right = mark(page, 1, "right")
    held: list[Any] = []
    page.route("**/v1/search", lambda route: route.fallback() if held else held.append(route))
    page.select_option("[name=background]", "false")
    until_held(page, held)
    empty = mark(page, 2, "empty")
    assert sent(held[0].request)["examples"] == [chip]
    held[0].continue_()
    until(page, "document.querySelectorAll('#searches .search').length === 2")
    settled(page)
    assert text(page, "#again") == "Search again with 1 right, 0 wrong, 1 empty"
    with page.expect_request("**/v1/search") as asked:
        page.click("#again")
    assert sent(asked.value)["examples"] == [chip, right]
    assert sent(asked.value)["counter_examples"] == [empty]


def until_held(page: Page, held: list[Any]) -> None:
    """Wait for a request that a route only keeps."""
    for _ in range(200):
        if held:
            return
        page.wait_for_timeout(50)
    raise AssertionError("nothing was asked")


def test_a_newer_search_is_not_overwritten_by_another_metric(opened: Opened, learning: PageServer) -> None:
    page = opened(learning)
    search_tanker(page)
    held: list[Any] = []
    page.route("**/v1/search", lambda route: route.fallback() if held else held.append(route))
    page.click("#recalibrate")
    until_held(page, held)
    other = page.locator(".card:has(.label:text-is('ferry'))").first
    chip = other.get_attribute("data-id")
    other.locator(".like").click()
    until(page, "chip => document.querySelector('#query-id').textContent === chip", chip)
    settled(page)
    found = cards(page)
    held[0].continue_()
    page.wait_for_selector("#recalibrate:enabled")
    settled(page)
    assert text(page, "#query-id") == chip
    assert cards(page) == found


def test_what_was_learned_renews_the_plane_and_the_slider(opened: Opened, learning: PageServer) -> None:
    page = opened(learning)
    search_tanker(page)
    with page.expect_response("**/v1/embedding-map?limit=2000"):
        page.click("#embeddings summary")
    slide(page, 0.1)
    settled(page)

    def answer(route: Any) -> None:
        route.fulfill(json={**route.fetch().json(), "lowest_rate": 0.001})

    page.route("**/v1/stats", answer)
    with page.expect_response("**/v1/embedding-map?limit=2000"):
        page.click("#recalibrate")
    page.wait_for_selector("#recalibrate:enabled")
    assert text(page, "#rate").startswith("1 in 10")
    page.focus("#slider")
    page.keyboard.press("End")
    assert text(page, "#rate").startswith("1 in 1,000")


def test_a_busy_server_can_be_asked_again(opened: Opened, learning: PageServer) -> None:
    page = opened(learning, expected=("409",))
    search_tanker(page)
    problem = {"type": "urn:lookdown:busy", "title": "busy", "status": 409, "detail": "a job writes to the gallery"}
    page.route("**/v1/metrics/current", lambda route: route.fulfill(status=409, json=problem))
    page.click("#recalibrate")
    page.wait_for_selector("#banner:not([hidden])")
    assert "A job writes to the gallery." in text(page, "#banner")
    page.unroute("**/v1/metrics/current")
    jobs: list[Any] = []
    page.on("request", lambda request: jobs.append(request) if request.url.endswith("/v1/calibrate") else None)
    page.click("#banner button:text('Try again')")
    page.wait_for_selector("#steps li:has-text('Recalibrated')")
    assert jobs == []  # what was done already is not done again


def test_nothing_is_undone_behind_a_dialog_or_during_a_job(
    opened: Opened, learning: PageServer, tmp_path: Path
) -> None:
    page = opened(learning)
    search_tanker(page)
    mark(page, 0, "right")
    page.set_input_files("#file", a_scene(tmp_path))
    page.wait_for_selector("#crop[open]")
    page.keyboard.press("Control+z")
    page.keyboard.press("Escape")
    assert page.locator("article.is-right").count() == 1
    held: list[Any] = []
    page.route("**/v1/calibrate", lambda route: held.append(route))
    page.click("#recalibrate")
    until_held(page, held)
    page.keyboard.press("Control+z")
    assert page.locator("#undo").is_disabled()
    assert page.locator("article.is-right").count() == 1
    held[0].continue_()
    page.wait_for_selector("#undo:enabled")
