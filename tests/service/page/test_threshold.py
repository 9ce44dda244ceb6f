"""The slider of the page: what is accepted, and what to expect of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.service.galleries import CHIPS, make_gallery
from tests.service.page.actions import (
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


def test_the_slider_changes_what_is_accepted_and_what_to_expect(opened: Opened, reading: PageServer) -> None:
    page = opened(reading)
    chip = search_tanker(page)
    for rate in (0.02, 0.11, 0.32):
        slide(page, rate)
        settled(page)
        answer = reading.search(examples=[chip], false_alarm_rate=rate)
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
        assert text(page, "#expected") == expectation(reading.search(examples=[chip], false_alarm_rate=rate))


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
    answer = reading.search(examples=[chip], false_alarm_rate=0.5)
    until(page, "n => document.querySelectorAll('article.card:not(.below)').length === n", len(ids(answer)))
    assert "or more" not in text(page, "#expected")


def test_more_than_the_server_hands_out_is_counted(opened: Opened, serving: Serving, made: Path) -> None:
    server = serving(Gallery.open(made), hits=61)
    page = opened(server)
    chip = search_tanker(page)
    slide(page, 0.45)
    settled(page)
    answer = server.search(examples=[chip], false_alarm_rate=0.45)
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
