"""The page in a real browser, against the real service: what a person does, and what they then see."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from PIL import Image
from tests.service.galleries import CHIPS, KINDS, SIDE, encoded, make_gallery, pixels
from tests.service.page_server import PageServer, Watched, chromium, watched

from lookdown import Gallery

pytestmark = pytest.mark.browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

Opened = Callable[..., "Page"]
Serving = Callable[..., PageServer]

TANKER = ".card:has(.label:text-is('tanker'))"
PASTE = """([way, bytes]) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(bytes)], "ship.png", { type: "image/png" }));
    const event = way === "drop"
        ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
        : new ClipboardEvent("paste", { clipboardData: data, bubbles: true });
    document.body.dispatchEvent(event);
}"""


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


def cards(page: Page, *, accepted: bool = False) -> list[str]:
    """Return the ids of the hits as they stand in the grid."""
    found = page.locator("article.card:not(.below)" if accepted else "article.card")
    return [str(one) for one in found.evaluate_all("all => all.map((card) => card.dataset.id)")]


def ids(answer: Any) -> list[str]:
    return [hit["id"] for hit in answer["hits"]]


def search_tanker(page: Page) -> str:
    """Search for the first tanker, and return its id."""
    card = page.locator(TANKER).first
    chip = str(card.get_attribute("data-id"))
    card.click()
    page.wait_for_selector("article.card")
    settled(page)
    return chip


def settled(page: Page) -> None:
    page.wait_for_selector("#found:not([aria-busy])")


def until(page: Page, expression: str, argument: object = None) -> None:
    """Wait for an expression to be true; the page's own policy forbids Playwright's way, which is `eval`."""
    for _ in range(200):
        if page.evaluate(expression, argument):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not in time: {expression} with {argument}")


def text(page: Page, place: str) -> str:
    return page.locator(place).inner_text().strip()


def slide(page: Page, rate: float, lowest: float = 1 / CHIPS, *, let_go: bool = True) -> None:
    """Move the slider to a rate and let it go."""
    place = math.log(rate / 0.5) / math.log(lowest / 0.5)
    page.locator("#slider").evaluate(
        "(slider, [place, types]) => { slider.value = place; for (const type of types)"
        " slider.dispatchEvent(new Event(type, { bubbles: true })); }",
        [place, ["input", "change"] if let_go else ["input"]],
    )


def sent(request: Request) -> dict[str, Any]:
    return dict(request.post_data_json or {})


def mark(page: Page, place: int, how: str) -> str:
    card = page.locator("article.card").nth(place)
    card.locator(f".{how}").click()
    return str(card.get_attribute("data-id"))


def a_scene(tmp_path: Path) -> Path:
    """Return a picture of sea with one tanker in it."""
    sea = np.full((96, 128, 3), 90, np.uint8)
    sea[40 : 40 + SIDE, 60 : 60 + SIDE] = pixels(0, 500)
    file = tmp_path / "scene.png"
    Image.fromarray(sea).save(file)
    return file


# Searching


def test_a_chip_is_clicked_and_what_looks_like_it_is_found(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    chip = search_tanker(page)
    answer = reading.search(chip=chip, k=60)
    assert cards(page)[:20] == ids(answer)[:20]
    assert text(page, "#query-told") == "tanker"
    assert text(page, "#query-id") == chip
    first = page.locator("article.card").first
    hit = answer["hits"][0]
    shown = first.locator("dd").all_inner_texts()
    assert shown[0] == f"{hit['score']:.2f}".replace("-", "\N{MINUS SIGN}")
    assert shown[1].endswith("%")
    assert shown[2].endswith(" ?") != hit["false_alarm_rate"]["supported"]
    assert first.locator(".source").inner_text() == hit["source"]
    until(page, "document.querySelector('article.card img').naturalWidth > 0")
    assert page.locator("#query-picture img").evaluate("image => image.naturalWidth") > 0


def test_names_are_shown_as_text(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    page.locator(".card", has_text="<i>").first.click()
    page.wait_for_selector("article.card")
    assert text(page, "#query-told") == "a/b <i>'"
    assert page.locator("main i").count() == 0


def test_an_image_is_chosen_cut_and_searched_for(opened: Opened, reading: PageServer, tmp_path: Path) -> None:
    page = opened(reading)
    page.set_input_files("#file", a_scene(tmp_path))
    canvas = page.locator("#crop canvas")
    canvas.wait_for()
    assert text(page, "#crop-told") == "whole image, 128 \N{MULTIPLICATION SIGN} 96 pixels"
    frame = canvas.bounding_box()
    assert frame
    scale = frame["width"] / 128
    page.mouse.move(frame["x"] + 60 * scale, frame["y"] + 40 * scale)
    page.mouse.down()
    page.mouse.move(frame["x"] + 92 * scale, frame["y"] + 72 * scale, steps=4)
    page.mouse.up()
    assert text(page, "#crop-told") == "box of 32 \N{MULTIPLICATION SIGN} 32 pixels"
    page.click("#crop-search")
    page.wait_for_selector("article.card")
    assert cards(page)[:20] == ids(reading.search_image(encoded(pixels(0, 500)), k=60))[:20]
    assert page.locator("#query-picture img").evaluate("image => [image.naturalWidth, image.naturalHeight]") == [32, 32]
    assert text(page, "#query-told") == "a part of scene.png"
    with page.expect_request("**/v1/search") as again:
        page.select_option("[name=background]", "false")
    assert "embedding" in sent(again.value)


def test_the_box_is_moved_and_sized_by_keys(opened: Opened, reading: PageServer, tmp_path: Path) -> None:
    page = opened(reading)
    page.set_input_files("#file", a_scene(tmp_path))
    canvas = page.locator("#crop canvas")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    assert text(page, "#crop-told") == "box of 64 \N{MULTIPLICATION SIGN} 48 pixels"
    page.keyboard.press("Shift+ArrowDown")
    assert text(page, "#crop-told") == "box of 64 \N{MULTIPLICATION SIGN} 51 pixels"
    page.keyboard.press("Enter")
    page.wait_for_selector("article.card")
    page.set_input_files("#file", a_scene(tmp_path))
    page.wait_for_selector("#crop[open]")
    page.keyboard.press("Escape")
    assert page.locator("#crop[open]").count() == 0
    assert page.locator("#searches .search").count() == 1


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_an_image_is_dropped_or_pasted(opened: Opened, reading: PageServer, way: str) -> None:
    page = opened(reading)
    page.evaluate(PASTE, [way, list(encoded(pixels(1, 600)))])
    page.wait_for_selector("#crop[open]")
    page.keyboard.press("Enter")
    page.wait_for_selector("article.card")
    assert text(page, "#query-told") == "ship.png"
    assert cards(page)[:20] == ids(reading.search_image(encoded(pixels(1, 600)), k=60))[:20]


def test_one_image_is_asked_about_at_a_time(opened: Opened, reading: PageServer, tmp_path: Path) -> None:
    page = opened(reading)
    page.set_input_files("#file", a_scene(tmp_path))
    page.wait_for_selector("#crop[open]")
    page.evaluate(PASTE, ["paste", list(encoded(pixels(1, 600)))])
    page.wait_for_timeout(200)
    assert text(page, "#crop-told").startswith("whole image, 128")
    page.keyboard.press("Enter")
    page.wait_for_selector("article.card")
    assert text(page, "#query-told") == "scene.png"
    assert page.locator("#searches .search").count() == 1


def test_searches_are_listed_and_gone_back_to(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    search_tanker(page)
    first = cards(page)
    page.locator("article.card").nth(4).locator(".like").click()
    until(page, "document.querySelectorAll('#searches .search').length === 2")
    settled(page)
    second = cards(page)
    assert first != second
    page.locator("#searches .search").last.click()
    until(page, "document.querySelectorAll('#searches .search')[1].ariaCurrent === 'true'")
    assert cards(page) == first
    page.keyboard.press("Control+z")
    until(page, "document.querySelectorAll('#searches .search')[0].ariaCurrent === 'true'")
    assert cards(page) == second
    page.keyboard.press("Control+z")
    until(page, "document.querySelectorAll('#searches .search')[1].ariaCurrent === 'true'")
    page.keyboard.press("Control+z")
    page.wait_for_selector("button.card")
    assert text(page, "#query-told") == "Nothing yet."


# The threshold


def test_the_slider_changes_what_is_accepted_and_what_to_expect(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    chip = search_tanker(page)
    for rate in (0.02, 0.11, 0.32):
        slide(page, rate)
        settled(page)
        answer = reading.search(chip=chip, false_alarm_rate=rate)
        until(page, "n => document.querySelectorAll('article.card:not(.below)').length === n", len(ids(answer)))
        assert cards(page, accepted=True) == ids(answer)
        until(page, "told => document.querySelector('#expected').textContent === told", expectation(answer))
        assert text(page, "#rate").startswith(f"1 in {1 / rate:.2g}")
    slide(page, 1 / CHIPS)
    settled(page)
    assert page.locator("li.line").inner_text() == "below the threshold"
    assert len(cards(page, accepted=True)) < len(ids(answer))
    assert text(page, "#rate").startswith(f"1 in {CHIPS}")


def expectation(answer: Any) -> str:
    """Return what the page says of the figure that the service gives."""
    expected, n = answer["expected_false_hits"], len(answer["hits"])
    low, high = (
        f"{bound:.0f}" if bound >= 10 else f"{bound:.1f}".removesuffix(".0")
        for bound in map(expected.get, ("low", "high"))
    )
    about = f"{expected['value']:.0f}"
    if expected["value"] >= n:
        return f"Expect about {about} false hits ({low} to {high}), and {n} were accepted: all may be false."
    return f"Expect about {about} false of {n} ({low} to {high})."


def test_what_to_expect_follows_the_rate_that_is_attained(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    chip = search_tanker(page)
    slide(page, 0.5)
    settled(page)
    known = [one["rate"] for one in reading.get("/v1/thresholds?metric=1-trained")["rates"]]
    for rate in known[1:30:7]:
        slide(page, rate, let_go=False)
        assert text(page, "#expected") == expectation(reading.search(chip=chip, false_alarm_rate=rate))


def test_a_rate_below_what_was_measured_promises_nothing(opened: Opened, reading: PageServer) -> None:
    page = opened(reading, ready="#found")

    def changed(attained: Any) -> None:
        def answer(route: Any) -> None:
            told = route.fetch().json()
            for one in told["rates"]:
                one.pop("attained")
                if attained:
                    one["attained"] = {**one["threshold"], **attained}
            route.fulfill(json=told)

        page.route("**/v1/thresholds*", answer)
        page.reload()
        page.wait_for_selector(".card")
        search_tanker(page)
        slide(page, 0.05, let_go=False)

    changed({"value": 0.25, "low": 0.2, "high": 0.5})
    rows = CHIPS - 1
    assert f"about {rows * 0.25:.0f} false" in text(page, "#expected")
    assert f"({rows * 0.2:.0f} to {rows * 0.5:.0f})" in text(page, "#expected")
    changed(None)
    assert text(page, "#expected").endswith("are false is not known.")


def test_the_slider_asks_for_more_than_is_at_hand(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    chip = search_tanker(page)
    assert len(cards(page)) <= 60
    page.focus("#slider")
    with page.expect_response("**/v1/search") as asked:
        page.keyboard.press("Home")
    assert sent(asked.value.request)["false_alarm_rate"] == 0.5
    answer = reading.search(chip=chip, false_alarm_rate=0.5)
    until(page, "n => document.querySelectorAll('article.card:not(.below)').length === n", len(ids(answer)))
    assert "or more" not in text(page, "#expected")


def test_more_than_the_server_hands_out_is_counted(opened: Opened, serving: Serving, made: Path) -> None:
    server = serving(Gallery.open(made), hits=61)
    page = opened(server)
    chip = search_tanker(page)
    slide(page, 0.45)
    settled(page)
    answer = server.search(chip=chip, false_alarm_rate=0.45)
    assert answer["truncated"]
    assert text(page, "#found-told").startswith(f"{answer['accepted']} accepted, the best 61 of them shown")
    assert "or more" not in text(page, "#expected")


def test_both_distributions_are_drawn_with_the_threshold(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    search_tanker(page)
    for kind in ("same", "different"):
        assert len(page.locator(f".distributions .{kind}").get_attribute("d") or "") > 100
    places = []
    for rate in (0.4, 0.02):
        slide(page, rate)
        places.append(float(page.locator(".distributions .cut").get_attribute("x1") or "nan"))
    assert places[0] < places[1]


def test_a_metric_without_rates_is_shown_as_such(opened: Opened, serving: Serving, tmp_path: Path) -> None:
    gallery = make_gallery(tmp_path / "g", calibrated=False)
    gallery.adapt(clusters=5)
    page = opened(serving(gallery))
    search_tanker(page)
    assert text(page, "#rate") == "not known"
    assert page.locator("#slider").is_disabled()
    assert "calibrate" in text(page, "#support")
    assert page.locator("article.card.below").count() == 0


def test_rates_of_a_model_are_shown_as_such(opened: Opened, serving: Serving, tmp_path: Path) -> None:
    page = opened(serving(make_gallery(tmp_path / "g", calibrated=False)))
    search_tanker(page)
    assert page.locator("#slider").is_enabled()
    assert (
        text(page, "#support") == "Worked out from a model, not measured. Recalibrate to measure it on labelled chips."
    )


# Marks, and learning by them


def test_marks_change_the_ranking_and_can_be_undone(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    chip = search_tanker(page)
    before = cards(page)
    right, wrong = mark(page, 1, "right"), mark(page, 3, "wrong")
    assert page.locator("#examples li").count() == 2
    with page.expect_response("**/v1/search") as asked:
        page.click("#again")
    assert sent(asked.value.request)["positive"] == [right]
    assert sent(asked.value.request)["negative"] == [wrong]
    until(page, "document.querySelectorAll('#searches .search').length === 2")
    settled(page)
    answer = reading.search(chip=chip, positive=[right], negative=[wrong], k=60)
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
    search_tanker(page)
    right = mark(page, 1, "right")
    held: list[Any] = []
    page.route("**/v1/search", lambda route: route.fallback() if held else held.append(route))
    page.select_option("[name=background]", "false")
    until_held(page, held)
    empty = mark(page, 2, "empty")
    assert sent(held[0].request)["positive"] == []
    held[0].continue_()
    until(page, "document.querySelectorAll('#searches .search').length === 2")
    settled(page)
    assert text(page, "#again") == "Search again with 1 right, 0 wrong, 1 empty"
    with page.expect_request("**/v1/search") as asked:
        page.click("#again")
    assert (sent(asked.value)["positive"], sent(asked.value)["negative"]) == ([right], [empty])


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


# Filters, the maps and files


def test_half_an_area_is_not_searched_with(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    search_tanker(page)
    with page.expect_response("**/v1/search"):
        page.select_option("[name=background]", "false")
    settled(page)
    page.fill("[name=west]", "4.25")
    with page.expect_request("**/v1/search") as asked:
        page.locator("article.card").nth(3).locator(".like").click()
    assert sent(asked.value)["where"] == {"background": False}
    assert "all four sides" in text(page, "#filters-problem")
    assert text(page, "#filters-told") == "not background"


def test_filters_narrow_the_search(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    chip = search_tanker(page)
    where: dict[str, Any] = {}

    def filtered(**more: Any) -> None:
        where.update(more)
        settled(page)
        page.wait_for_timeout(50)
        assert cards(page) == ids(reading.search(chip=chip, k=60, where=where))

    def after(change: Callable[[], object], **more: Any) -> None:
        with page.expect_response("**/v1/search"):
            change()
        page.wait_for_load_state("networkidle")
        filtered(**more)

    after(
        lambda: page.locator("#labels input").nth(0).check(),
        label=[page.locator("#labels input").nth(0).get_attribute("value")],
    )
    where.clear()
    after(lambda: page.click("#filters-form button[type=reset]"))
    after(lambda: page.fill("[name=since]", "2025-03-01"), since="2025-03-01")
    after(lambda: page.fill("[name=until]", "2025-09-30"), until="2025-09-30")
    after(lambda: page.select_option("[name=background]", "false"), background=False)
    assert text(page, "#filters-told") == "2025-03-01 to 2025-09-30, not background"
    page.fill("[name=west]", "4.25")
    page.keyboard.press("Tab")
    assert "all four sides" in text(page, "#filters-problem")
    for side, value in (("south", "52"), ("east", "4.75")):
        page.fill(f"[name={side}]", value)
    page.fill("[name=north]", "52.6")
    after(lambda: page.keyboard.press("Tab"), within=[4.25, 52, 4.75, 52.6])
    page.click("#undo")
    until(page, "document.querySelector('[name=west]').value === ''")


def test_an_area_is_drawn_on_the_map(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    search_tanker(page)
    page.click("#draw-area")
    frame = page.locator("#map svg").bounding_box()
    assert frame
    page.mouse.move(frame["x"] + 40, frame["y"] + 40)
    page.mouse.down()
    page.mouse.move(frame["x"] + 160, frame["y"] + 140, steps=5)
    with page.expect_response("**/v1/search") as asked:
        page.mouse.up()
    west, south, east, north = sent(asked.value.request)["where"]["within"]
    assert -180 <= west < east <= 180
    assert -90 <= south < north <= 90
    assert float(page.input_value("[name=west]")) == west
    until(page, "document.querySelector('#filters-told').textContent === 'in an area'")
    assert page.locator("#map .area path").count() == 1


def test_the_map_and_the_grid_point_at_each_other(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    search_tanker(page)
    slide(page, 0.1)
    page.wait_for_selector("#map .hit")
    placed = page.locator("#map .hit").evaluate_all("all => all.map((hit) => hit.dataset.id)")
    second = next(one for one in cards(page) if one in placed)
    page.locator(f'article.card[data-id="{second}"] .picture').hover()
    assert page.locator("#map .hit.pointed").get_attribute("data-id") == second
    page.locator(f'article.card[data-id="{second}"]').focus()
    page.locator("#map .hit").last.hover(force=True)
    shown = page.locator("article.card.pointed").get_attribute("data-id")
    assert shown in placed
    page.mouse.down()
    page.mouse.up()
    assert page.evaluate("document.activeElement.dataset.id") == shown
    page.locator("#map svg").focus()
    page.keyboard.press("n")
    stepped = page.locator("#map .hit.pointed").get_attribute("data-id")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.id") == stepped


def test_the_map_is_moved_and_zoomed(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    search_tanker(page)
    page.wait_for_selector("#map .hit")

    def labels() -> list[str]:
        page.wait_for_timeout(60)  # it is drawn with the next frame
        return page.locator("#map .graticule text").all_text_contents()

    fitted = labels()
    assert all("°" in label for label in fitted)
    page.locator("#map svg").hover()
    page.mouse.wheel(0, -900)
    near = labels()
    assert near != fitted
    page.locator("#map svg").focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    assert labels() != near
    page.keyboard.press("0")
    assert labels() == fitted


def test_tiles_lie_below_the_map_where_they_are_set(opened: Opened, serving: Serving, made: Path) -> None:
    page = opened(serving(Gallery.open(made), tile_url="http://127.0.0.1:9/{z}/{x}/{y}.png"), expected=("ERR_",))
    search_tanker(page)
    address = str(page.locator("#map .tiles image").first.get_attribute("href"))
    z, x, y = map(int, address.removeprefix("http://127.0.0.1:9/").removesuffix(".png").split("/"))
    assert 0 <= x < 2**z
    assert 0 <= y < 2**z


def test_nothing_is_loaded_from_elsewhere(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    page.wait_for_selector(".card")
    search_tanker(page)
    page.wait_for_timeout(300)
    assert len(asked) > 40
    assert [url for url in asked if not url.startswith((reading.url, "data:", "blob:"))] == []


def test_the_plane_of_embeddings_shows_the_hits(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    search_tanker(page)
    with page.expect_response("**/v1/embedding-map?limit=1&*"):
        page.click("#embeddings summary")
    canvas = page.locator("#plane canvas")
    canvas.scroll_into_view_if_needed()
    page.wait_for_timeout(100)
    frame = canvas.bounding_box()
    assert frame
    for step in range(1, 40):  # somewhere on the way there is a point
        page.mouse.move(frame["x"] + frame["width"] * step / 40, frame["y"] + frame["height"] * step / 40)
        if page.locator("#plane canvas.over").count():
            break
    page.mouse.down()
    page.mouse.up()
    page.click("#pointed button")
    until(page, "document.querySelectorAll('#searches .search').length === 2")


def test_the_plane_is_walked_by_keys(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    search_tanker(page)
    with page.expect_response("**/v1/embedding-map?limit=1&*"):
        page.click("#embeddings summary")
    page.wait_for_timeout(100)
    pointed = page.locator("article.card.pointed")
    page.mouse.move(0, 0)
    page.locator("#plane canvas").focus()
    seen = []
    for key in "nnp":
        page.keyboard.press(key)
        seen.append(pointed.get_attribute("data-id"))
    assert seen[0] == seen[2] != seen[1]
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.id") == seen[0]
    assert page.locator("#pointed button").count() == 1


def test_addresses_stay_short(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)

    def answer(route: Any) -> None:
        told = route.fetch().json()
        for hit in told["hits"]:
            hit["id"] = f"{'long/' * 20}{hit['id']}"
        route.fulfill(json=told)

    asked: list[str] = []

    def note(route: Any) -> None:
        asked.append(route.request.url)
        route.fulfill(json={"points": []})

    page.route("**/v1/search", answer)
    page.route("**/v1/embedding-map*", note)
    page.locator(TANKER).first.click()
    page.wait_for_selector("article.card")
    settled(page)
    page.click("#embeddings summary")
    page.wait_for_timeout(500)
    assert max(map(len, asked)) < 6000
    assert {one for url in asked for one in parse_qs(urlsplit(url).query).get("ids", [])} == set(cards(page))


def test_a_download_that_was_cut_says_so(opened: Opened, serving: Serving, made: Path) -> None:
    server = serving(Gallery.open(made), hits=61)
    page = opened(server)
    chip = search_tanker(page)
    slide(page, 0.45)
    settled(page)
    accepted = server.search(chip=chip, false_alarm_rate=0.45)["accepted"]
    assert accepted > 61
    with page.expect_download():
        page.click("#csv")
    page.wait_for_selector("#banner:not([hidden])")
    assert text(page, "#banner").startswith(f"The file holds the best 61 of {accepted} accepted hits")


def test_what_is_accepted_is_downloaded(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    search_tanker(page)
    slide(page, 0.1)
    settled(page)
    accepted = cards(page, accepted=True)
    with page.expect_download() as csv_file:
        page.click("#csv")
    assert csv_file.value.suggested_filename == "lookdown-tanker.csv"
    with Path(csv_file.value.path()).open(newline="", encoding="utf-8-sig") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["id"].lstrip("'") for row in rows] == accepted
    with page.expect_download() as map_layer:
        page.click("#geojson")
    layer = json.loads(Path(map_layer.value.path()).read_text())
    assert layer["type"] == "FeatureCollection"
    assert {feature["properties"]["id"] for feature in layer["features"]} <= set(accepted)


# What goes wrong


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


def test_filters_that_nothing_meets_say_so(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    search_tanker(page)
    page.fill("[name=since]", "2031-01-01")
    until(page, "document.querySelector('#found-title').textContent === 'No chip was found'")
    assert "Widen or clear" in text(page, "#notes")
    assert page.locator("#csv").is_disabled()


# Everyone can use it


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
