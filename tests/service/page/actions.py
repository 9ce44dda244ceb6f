"""What a person does on the page, and what they then see."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image
from tests.service.galleries import CHIPS, SIDE, pixels
from tests.service.page_server import PageServer

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request

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
