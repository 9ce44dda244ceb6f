"""Results for a terminal: plain text in aligned columns, without colour and without markup."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from lookdown.gallery.results.hit import Hit, Results
from lookdown.gallery.results.plain_text import cells, cut, one_line
from lookdown.gallery.results.wording import (
    ABSENT,
    expectation,
    explanations,
    headline,
    posterior_text,
    rate_text,
    score_text,
)

__all__ = ["table"]

_GAP = "  "
_DATE = re.compile(r"\d{4}-\d\d-\d\dT")
_LEAVES = ("scene", "time", "merged", "label")  # in this order, where there is no room for all


def table(results: Results, *, width: int = 80, limit: int | None = None) -> str:
    """Return what was searched, the first `limit` hits in lines of `width` columns, and what the figures mean.

    A column that is empty in every row is left out. Where the rest does not fit, names are cut in the middle; where
    that is not enough, columns leave and the text says which.
    """
    width = max(width, 20)
    shown = results.hits[:limit]
    sentences = [expectation(results), *explanations(results)]
    blocks = [_wrapped([headline(results, cut(one_line(results.query), width))], width)]
    if shown:
        columns, left = _fit(_columns(shown), width)
        blocks.append(_lines(columns))
        if left:
            sentences.append(f"No room for {', '.join(left)}: widen the terminal, or write a file.")
    if len(shown) < len(results):
        blocks[-1] += f"\n... and {len(results) - len(shown):,} more"
    return "\n\n".join([*blocks, _wrapped(sentences, width)])


@dataclass(frozen=True, slots=True)
class _Column:
    """Cells below a title of two lines; one with a `least` width may be cut down to that."""

    name: str
    texts: tuple[str, ...]
    title: tuple[str, str]
    least: int | None
    width: int

    @classmethod
    def of(cls, name: str, texts: Iterable[str], *, above: str = "", least: int | None = None) -> Self:
        lines = tuple(texts)
        return cls(name, lines, (above, name), least, max(map(cells, (above, name, *lines))))

    def capped(self, cap: int) -> int:
        """Return how wide it is if texts take no more than `cap`, or than the least they need."""
        if self.least is None or self.width <= cap:
            return self.width
        return min(self.width, self.least if self.name == "time" else max(self.least, cap))

    def narrowed(self, width: int) -> _Column:
        texts = (self._short(text, width) for text in self.texts)
        return self.of(self.name, texts, above=self.title[0], least=self.least)

    def lines(self) -> list[str]:
        """Return title and cells, text to the left and numbers to the right."""
        spaces = [(text, " " * (self.width - cells(text))) for text in (*self.title, *self.texts)]
        return [text + space if self.least else space + text for text, space in spaces]

    def _short(self, text: str, width: int) -> str:
        if cells(text) > width and self.name == "time" and _DATE.match(text):
            return text[:10]  # half of a time says nothing, the day does
        return cut(text, width)


def _columns(hits: tuple[Hit, ...]) -> list[_Column]:
    columns = [
        _Column.of("rank", map(str, range(1, len(hits) + 1))),
        _Column.of("id", (one_line(hit.id) for hit in hits), least=10),
        _Column.of("score", (score_text(hit.score) for hit in hits)),
        _Column.of("posterior", (posterior_text(hit.posterior) for hit in hits)),
        _Column.of("alarms", (rate_text(hit.false_alarm_rate) for hit in hits), above="false"),
        _Column.of("label", (_label(hit) for hit in hits), least=6),
        _Column.of("scene", (one_line(hit.scene) for hit in hits), least=8),
        _Column.of("time", (ABSENT if hit.time is None else one_line(hit.time) for hit in hits), least=10),
        _Column.of("merged", (f"+{hit.merged}" if hit.merged else "" for hit in hits)),
    ]
    always = ("rank", "id", "score")
    return [
        column for column in columns if column.name in always or any(text not in ("", ABSENT) for text in column.texts)
    ]


def _label(hit: Hit) -> str:
    return one_line(hit.label) if hit.label is not None else "background" if hit.background else ABSENT


def _fit(columns: list[_Column], width: int) -> tuple[list[_Column], list[str]]:
    """Cut the widest texts until all columns fit; return them, and the names of those that had to leave."""
    left = []
    for name in _LEAVES:
        if _total(columns, cap=0) <= width:
            break
        if any(column.name == name for column in columns):
            columns = [column for column in columns if column.name != name]
            left.append(name)
    cap = max(column.width for column in columns)
    while cap > 0 and _total(columns, cap) > width:
        cap -= 1
    return [column.narrowed(column.capped(cap)) for column in columns], left


def _total(columns: list[_Column], cap: int) -> int:
    return sum(column.capped(cap) for column in columns) + len(_GAP) * (len(columns) - 1)


def _lines(columns: list[_Column]) -> str:
    lines = [_GAP.join(line).rstrip() for line in zip(*(column.lines() for column in columns), strict=True)]
    return "\n".join(lines if lines[0] else lines[1:])


def _wrapped(sentences: list[str], width: int) -> str:
    return "\n".join(line for sentence in sentences for line in textwrap.wrap(sentence, width, break_on_hyphens=False))
