"""Results for a terminal: plain text in aligned columns, without colour and without markup."""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from rich.cells import cell_len, get_character_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from lookdown.gallery.results import wording
from lookdown.gallery.results.hit import Hit, Results

__all__ = ["cut", "table"]

_GAP = 2  # columns of the terminal between two of the table
_DATE = re.compile(r"\d{4}-\d\d-\d\dT")
_LEAST_WIDTH = {"id": 10, "label": 6, "kind": 14, "scene": 8, "time": 10}  # of names, which may be cut; numbers may not
_DROPPED = ("scene", "time", "merged", "kind", "label")  # in this order, where there is no room for all
_ALWAYS = ("rank", "id", "score")


def table(results: Results, *, width: int = 80, limit: int | None = None) -> str:
    """Return what was searched, the first `limit` hits in lines of `width` columns, and what the figures mean.

    A column that is empty in every row is left out. Where the rest does not fit, names are cut in the middle. Where
    that is not enough, columns are dropped and the text says which.
    """
    width = max(width, 20)
    hits = results.hits[:limit]
    sentences = [wording.expectation(results), *wording.explanations(results)]
    blocks = [_rendered([Text(wording.headline(results, cut(wording.one_line(results.query), width)))], width)]
    if hits:
        columns = _columns(hits)
        dropped = [name for name in _DROPPED if _least_width(columns) > width and columns.pop(name, [])]
        blocks.append(_rendered([_grid(columns)], max(width, _least_width(columns))))
        if dropped:
            sentences.append(f"No room for {', '.join(dropped)}: widen the terminal, or write a file.")
    if len(hits) < len(results):
        blocks[-1] += f"\n... and {len(results) - len(hits):,} more"
    return "\n\n".join([*blocks, _rendered([Text(sentence) for sentence in sentences], width)])


def cut(text: str, width: int) -> str:
    """Return text in at most `width` columns; the middle is cut out, since names differ at their ends."""
    if cell_len(text) <= width:
        return text
    tail = _beginning(text[::-1], (width - 1) // 2)[::-1]
    while tail and not get_character_cell_size(tail[0]):  # an accent whose letter was cut off
        tail = tail[1:]
    return f"{_beginning(text, width // 2)}…{tail}"


def _beginning(text: str, width: int) -> str:
    return text[: bisect_right(list(accumulate(map(get_character_cell_size, text))), width)]


@dataclass(frozen=True, slots=True)
class _Name:
    """Text that rich may narrow down to a least width."""

    text: str
    least: int

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        length = cell_len(self.text)
        return Measurement(min(self.least, length), length)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        if cell_len(self.text) > width and _DATE.match(self.text):
            yield Text(self.text[:10])  # the day; half of a time would say nothing
        else:
            yield Text(cut(self.text, width), no_wrap=True)


def _columns(hits: tuple[Hit, ...]) -> dict[str, list[str]]:
    columns = {
        "rank": [str(hit.rank) for hit in hits],
        "id": [wording.one_line(hit.id) for hit in hits],
        "score": [wording.score_text(hit.score) for hit in hits],
        "posterior": [wording.posterior_text(hit.posterior) for hit in hits],
        "false\nalarms": [wording.rate_text(hit.false_alarm_rate) for hit in hits],
        "label": [_label(hit) for hit in hits],
        "kind": [wording.kind_text(hit.kind, hit.kind_probability) for hit in hits],
        "scene": [wording.one_line(hit.scene) for hit in hits],
        "time": [wording.ABSENT if hit.time is None else wording.one_line(hit.time) for hit in hits],
        "merged": [f"+{hit.merged}" if hit.merged else "" for hit in hits],
    }
    return {
        name: texts
        for name, texts in columns.items()
        if name in _ALWAYS or any(text not in ("", wording.ABSENT) for text in texts)
    }


def _label(hit: Hit) -> str:
    return wording.one_line(hit.label) if hit.label is not None else "background" if hit.background else wording.ABSENT


def _least_width(columns: dict[str, list[str]]) -> int:
    """Return the width of the table where every name is cut as far as it may be."""
    widths = (max(_longest(name.split("\n")), _least(name, texts)) for name, texts in columns.items())
    return sum(widths) + _GAP * (len(columns) - 1)


def _least(name: str, texts: list[str]) -> int:
    return min(_longest(texts), _LEAST_WIDTH.get(name, _longest(texts)))


def _longest(texts: list[str]) -> int:
    return max(map(cell_len, texts))


def _grid(columns: dict[str, list[str]]) -> Table:
    grid = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="none")
    cells: list[list[RenderableType]] = []
    for name, texts in columns.items():
        least = _least(name, texts)
        if name in _LEAST_WIDTH:
            grid.add_column(name, vertical="bottom", min_width=least)
            cells.append([_Name(text, least) for text in texts])
        else:
            grid.add_column(name, vertical="bottom", no_wrap=True, justify="right")
            cells.append([Text(text) for text in texts])
    for row in zip(*cells, strict=True):
        grid.add_row(*row)
    return grid


def _rendered(parts: list[RenderableType], width: int) -> str:
    """Return what rich would print to a file."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None, force_terminal=False, force_jupyter=False)
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip("\n").split("\n"))
