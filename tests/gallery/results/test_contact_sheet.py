"""The page: only our own elements and attributes, whatever the names; complete without a network."""

from __future__ import annotations

import base64
import math
import re
from html.parser import HTMLParser

import pytest
from tests.gallery.results.found import JPEG, NAUGHTY, bare, found, hit, measured, named, naughty

from lookdown.gallery.results.contact_sheet import to_html
from lookdown.gallery.results.hit import Results
from lookdown.gallery.results.wording import expectation, explanations, headline, one_line
from lookdown.metrics.estimate import Estimate

OURS = {
    "html": {"lang"}, "head": set(), "meta": {"charset", "http-equiv", "content", "name"}, "title": set(),
    "style": set(), "body": set(), "header": set(), "div": {"class"}, "h1": set(), "bdi": {"class", "title"},
    "p": set(), "main": set(), "ol": set(), "li": set(), "img": {"src", "alt", "decoding"}, "span": {"class"},
    "dl": set(), "dt": set(), "dd": set(), "footer": set(),
}  # fmt: skip
VOID = {"meta", "img"}


class Page(HTMLParser):
    """What a reader of HTML makes of a page; refuses elements that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.stack: list[str] = []
        self.strange: list[str] = []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), "an attribute twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.stack:
            self.texts[self.stack[-1]][-1] += data

    def handle_comment(self, data: str) -> None:
        self.strange.append(data)

    def handle_pi(self, data: str) -> None:
        self.strange.append(data)

    def unknown_decl(self, data: str) -> None:
        self.strange.append(data)


def test_the_reader_of_the_test_sees_what_a_name_would_bring_in() -> None:
    page = Page("<p><script>alert(1)</script><!-- x --></p>")
    assert "script" in {tag for tag, _ in page.elements}
    assert page.strange == [" x "]


@pytest.mark.parametrize("results", [naughty(), found(hit()), found(bare()), found()])
def test_there_is_nothing_in_the_page_but_our_own(results: Results) -> None:
    page = Page(to_html(results, JPEG))
    assert page.strange == []
    for tag, attributes in page.elements:
        assert tag in OURS
        assert set(attributes) <= OURS[tag]


def test_names_change_no_element() -> None:
    plain = Page(to_html(found(*[named("ship") for _ in NAUGHTY], notes=("so",) * sum(map(bool, NAUGHTY)))))
    wild = Page(to_html(naughty()))

    def shape(page: Page) -> list[tuple[str, tuple[str, ...]]]:
        return [(tag, tuple(attributes)) for tag, attributes in page.elements]

    assert shape(plain) == shape(wild)


def test_names_are_shown_as_they_are() -> None:
    page = Page(to_html(naughty()))
    shown = page.texts["bdi"]
    for name in NAUGHTY:
        assert one_line(name) in shown
    titles = [attributes.get("title") for tag, attributes in page.elements if tag == "bdi"]
    assert titles[1:] == shown[1:]  # the first is the heading
    assert shown[0] == one_line(" ".join(NAUGHTY))


def test_the_policy_forbids_scripts_and_the_network() -> None:
    page = Page(to_html(naughty(), JPEG))
    policies = [attributes for tag, attributes in page.elements if attributes.get("http-equiv")]
    assert policies == [
        {
            "http-equiv": "Content-Security-Policy",
            "content": "default-src 'none'; img-src data:; style-src 'unsafe-inline'",
        }
    ]
    tags = [tag for tag, _ in page.elements]
    assert tags.index("style") > page.elements.index(("meta", policies[0]))
    sources = [attributes["src"] or "" for tag, attributes in page.elements if tag == "img"]
    assert all(re.fullmatch(r"data:image/jpeg;base64,[A-Za-z0-9+/=]+", source) for source in sources)
    (style,) = page.texts["style"]
    assert "url(" not in style
    assert "@import" not in style
    assert "prefers-color-scheme: dark" in style


def test_pictures_are_those_of_the_query_and_of_the_hits() -> None:
    page = Page(to_html(found(hit(thumbnail=b"first"), bare(), hit(thumbnail=b"third")), b"query"))
    pictures = [attributes for tag, attributes in page.elements if tag == "img"]
    assert [base64.b64decode((picture["src"] or "").split(",")[1]) for picture in pictures] == [
        b"query",
        b"first",
        b"third",
    ]
    assert [picture["alt"] for picture in pictures] == ["the query", "hit 1", "hit 3"]
    assert "no picture" in page.texts["div"]
    assert not [tag for tag, _ in Page(to_html(found(bare()))).elements if tag == "img"]


def test_a_hit_has_its_figures_and_where_it_is_from() -> None:
    page = Page(to_html(found(hit(merged=3, false_alarm_rate=measured(1e-6, supported=False)))))
    figures = dict(zip(page.texts["dt"], page.texts["dd"], strict=True))
    assert figures == {"score": "4.250", "posterior": "0.930", "false alarms": "1e-06?", "windows merged": "+3"}
    assert page.texts["bdi"][1:] == [
        "cargo ship", "harbour-001-00037", "archive/harbour-001.tif", "2025-03-04T10:12:00Z",
    ]  # fmt: skip
    assert page.texts["span"] == ["1"]


def test_the_kind_that_a_hit_is_taken_for_is_among_its_figures() -> None:
    page = Page(to_html(found(hit(kind="F-16", kind_probability=0.93), hit(kind_probability=0.62))))
    kinds = [value for name, value in zip(page.texts["dt"], page.texts["dd"], strict=True) if name == "kind"]
    assert kinds == ["F-16, 93 %", "none of these, 62 %"]


def test_what_is_not_known_is_not_shown() -> None:
    page = Page(to_html(found(bare(), bare(background=True), bare(score=math.nan))))
    assert page.texts["dt"] == ["score"] * 3
    assert page.texts["dd"] == ["4.250", "4.250", "-"]
    assert [page.texts["bdi"][place] for place in (1, 4, 7)] == ["no label", "background", "no label"]


def test_it_says_the_same_as_the_table() -> None:
    results = found(
        hit(), hit(), requested_false_alarm_rate=0.01, threshold=Estimate.of_model(3.0, "analytic"), notes=("a <b> c",)
    )
    page = Page(to_html(results))
    assert page.texts["h1"] == [""]  # the query is kept apart within
    assert page.texts["bdi"][0] == "ship.jpg"
    assert page.texts["p"] == [headline(results, "the query"), expectation(results), *explanations(results)]
    assert page.texts["title"] == ["lookdown: ship.jpg"]


def test_an_empty_result_says_what_to_do_and_has_no_empty_list() -> None:
    page = Page(to_html(found(rows_searched=0, expected_false_hits=None)))
    assert "Widen the filter." in page.texts["p"][1]
    assert {"ol", "footer"}.isdisjoint(tag for tag, _ in page.elements)


def test_a_name_that_is_no_text_can_be_written() -> None:
    to_html(found(hit(id="a\udcff"), query="b\udcff")).encode()
