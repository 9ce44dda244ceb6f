from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from tests.lab.demo.conftest import Heard

from lookdown.training.evaluate_run import evaluate_run


class Tags(HTMLParser):
    """Counts what is opened and closed, and keeps every address."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(heard: Heard) -> None:
    tags = Tags()
    tags.feed(heard.told.page.read_text())
    assert tags.open == []
    assert len(tags.addresses) > 2 * 3 * 21
    assert all(address.startswith("data:image/jpeg;base64,") for address in tags.addresses)


def test_its_figures_are_those_of_the_run(heard: Heard) -> None:
    text = heard.told.page.read_text()
    found = evaluate_run(heard.folder / "run").evaluations
    home = re.search(r"GLRT loss</th><td[^>]*>([\d.]+) .*?</td><td[^>]*>([\d.]+) ", text)
    assert home is not None
    for shown, name in zip(home.groups(), ("cosine", "glrt"), strict=True):
        assert abs(float(shown) - 100 * found[name].mean_average_precision) < 0.06
    abroad = evaluate_run(
        heard.folder / "run", ("adapted",), heard.folder / "abroad", adapted=heard.folder / "adapted"
    ).evaluations["adapted"]
    figures = json.loads(json.dumps(heard.told.figures))
    assert abs(figures["abroad"]["GLRT loss, adapted"] - abroad.mean_average_precision) < 1e-4
    assert f"{100 * figures['abroad']['GLRT loss, adapted']:.1f} <small>" in text


def test_right_and_wrong_are_framed_as_they_are(heard: Heard) -> None:
    text = heard.told.page.read_text()
    rows = re.findall(
        r'<div class="ranking"><span>.*?<small>(\d+) of 10 right</small></span>(.*?)</div>', text, flags=re.DOTALL
    )
    assert len(rows) == 2 * 2 * 3
    for right, pictures in rows:
        assert pictures.count('class="right"') == int(right)
        assert pictures.count('class="wrong"') == 10 - int(right)
