"""Filters, maps and downloads of the page."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.service.page.actions import (
    TANKER,
    Opened,
    Serving,
    cards,
    ids,
    search_tanker,
    sent,
    settled,
    slide,
    text,
    until,
)
from tests.service.page_server import PageServer

from lookdown import Gallery

pytestmark = pytest.mark.browser


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


def test_where_narrow_the_search(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    chip = search_tanker(page)
    where: dict[str, Any] = {}

    def filtered(**more: Any) -> None:
        where.update(more)
        settled(page)
        page.wait_for_timeout(50)
        assert cards(page) == ids(reading.search(examples=[chip], k=60, where=where))

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
    after(lambda: page.keyboard.press("Tab"), box=[4.25, 52, 4.75, 52.6])
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
    west, south, east, north = sent(asked.value.request)["where"]["box"]
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
    accepted = server.search(examples=[chip], false_alarm_rate=0.45)["accepted"]
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
