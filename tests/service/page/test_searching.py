"""Searching on the page: by a chip, by an image, and back again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.service.galleries import encoded, pixels, use_kinds
from tests.service.page.actions import (
    PASTE,
    Opened,
    Serving,
    a_scene,
    cards,
    ids,
    search_tanker,
    sent,
    settled,
    text,
    until,
)
from tests.service.page_server import PageServer

from lookdown import Gallery

pytestmark = pytest.mark.browser


def test_a_chip_is_clicked_and_what_looks_like_it_is_found(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    chip = search_tanker(page)
    answer = reading.search(examples=[chip], k=60)
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


def test_a_card_says_which_kind_its_hit_is_taken_for(opened: Opened, serving: Serving, gallery: Gallery) -> None:
    use_kinds(gallery)
    server = serving(gallery)
    page = opened(server)
    chip = search_tanker(page)
    answer = server.search(examples=[chip], k=60)
    shown = page.locator("article.card .kind").all_inner_texts()
    assert len(shown) == len(cards(page))
    for line, hit in zip(shown, answer["hits"], strict=False):
        kind, figure = line.rsplit(", ", 1)
        assert kind == (hit["kind"] or "none of these")
        assert figure.endswith(" %")
        assert abs(float(figure.strip("<>% ")) - 100 * hit["kind_probability"]) < 1
    assert page.locator("article.card i").count() == 0


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
    assert cards(page)[:20] == ids(reading.search_image(encoded(pixels(0, 500)), turned=True, k=60))[:20]
    assert page.locator("#query-picture img").evaluate("image => [image.naturalWidth, image.naturalHeight]") == [32, 32]
    assert text(page, "#query-told") == "a part of scene.png"
    with page.expect_request("**/v1/search") as again:
        page.select_option("[name=background]", "false")
    assert isinstance(sent(again.value)["examples"][0], list)  # the embedding, not the image again


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
    assert cards(page)[:20] == ids(reading.search_image(encoded(pixels(1, 600)), turned=True, k=60))[:20]


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
